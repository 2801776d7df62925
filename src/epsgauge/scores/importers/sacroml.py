"""SACRO-ML: the arrays of one attack, report_arrays_<id>_<instance>.npz of its output, with a row per record."""

from __future__ import annotations

from typing import Any

from epsgauge.errors import InvalidInput
from epsgauge.scores.importers.importer import Importer
from epsgauge.scores.importers.source import Source, flat

NAMES = ("member_prob", "member")
KEPT_AS = tuple(f"individual.{name}" for name in NAMES)  # in a file


class SacroML(Importer):
    """Its report shows member_prob as the chance to be a member; it attacks one target model."""

    name = "sacroml"
    tool = "SACRO-ML"
    wants = (
        "an attack that ran with report_individual=True, its file report_arrays_<id>_<instance>.npz, the folder that "
        "has one such file, or a mapping with member_prob and member"
    )
    of_one_model = True

    def columns(self, source: Source) -> dict[str, Any]:
        if source.is_folder:
            files = [name for name in source.names if name.startswith("report_arrays_") and name.endswith(".npz")]
            if len(files) != 1:
                has = f"{len(files)}: {', '.join(files[:20])}. Give one of them" if files else "none"
                raise InvalidInput(
                    f"{source.name} must have one file report_arrays_<id>_<instance>.npz, but has {has}."
                )
            source = source.part(files[0])
        if source.path is not None:
            held = source.fields(KEPT_AS, ())
            if not held:
                raise InvalidInput(f"{source.name} has no row per record. Run the attack with report_individual=True.")
            held = dict(zip(NAMES, source.fields(KEPT_AS).values(), strict=True))
        else:
            of_attack = getattr(source.given, "result", None)  # of LIRAAttack
            held = (source if of_attack is None else Source(of_attack, source.wants)).fields(NAMES)
        return {"bit": flat(held["member"], "member"), "score": flat(held["member_prob"], "member_prob")}

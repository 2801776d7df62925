"""Several runs over each other: their distribution functions of ε, by the rules of `epsgauge compare`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from epsgauge.attacks.table import ATTACKS
from epsgauge.auditing.compare import RULES, Comparison, Rule, compare
from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.figures.charts import CHARTS
from epsgauge.figures.ladder import draw, ladder, pipelines_of
from epsgauge.reporting.viewer.calculator import number
from epsgauge.reporting.viewer.runs import Folder
from epsgauge.reporting.viewer.seen import UNLOGGED, Seen
from epsgauge.reporting.viewer.standing import results_key

KEPT = 8
MOST = 12  # runs in one picture


class Overlays:
    """The last comparisons. `compare` logs a look at each run, so that the same one is not made twice; who sees one
    that was made before has looked too.
    """

    def __init__(self, folder: Folder, seen: Seen) -> None:
        self.folder = folder
        self.seen = seen
        self._kept: OrderedDict[Any, Comparison] = OrderedDict()

    def values(self, session: str, ids: list[str], query: Mapping[str, str]) -> dict[str, Any]:
        """What the page shows: which runs can be chosen, and the picture or why there is none."""
        ids = list(dict.fromkeys(ids))
        baseline = query.get("baseline", "")
        ids.sort(key=lambda run_id: run_id != baseline)  # the baseline comes first, and the others stay in order
        standings = [self.folder.standing(run_id) for run_id in self.folder.ids()]
        asked = {s.id for s in standings if s.id in ids and not self.seen.may_see(session, s) and not s.trouble}
        values: dict[str, Any] = {
            "standings": standings,
            "chosen": ids,
            "baseline": ids[0] if ids else "",
            "unopened": [s for s in standings if s.id in asked],
            "attacks": tuple(ATTACKS),
            "query": {name: query.get(name, "")[:40] for name in ("rule", "attack", "delta", "level")},
            "found": None,
            "drawn": None,
            "ladder": None,
            "unlogged": None,
            "trouble": None,
        }
        if not ids or asked:
            return values
        try:
            found, unlogged = self._compared(session, ids, query)
        except EpsgaugeError as error:
            return {**values, "trouble": str(error)}
        return {
            **values,
            "found": found,
            "drawn": CHARTS["cdfs"].drawn(found),
            "ladder": draw(ladder(pipelines_of(found)), prefix="overlay-") if found.of_adversaries else None,
            "unlogged": UNLOGGED if unlogged else None,
        }

    def _compared(self, session: str, ids: list[str], query: Mapping[str, str]) -> tuple[Comparison, bool]:
        """The comparison, with a look of this session at each run; True where one could not be logged."""
        if len(ids) > MOST:
            raise InvalidInput(f"at most {MOST} runs are overlaid, but got {len(ids)}. Choose fewer.")
        rule: Rule = next((name for name in RULES if name == query.get("rule")), "auto")
        settings: dict[str, Any] = {n: number(n, query[n]) for n in ("delta", "level") if query.get(n)}
        if query.get("attack"):
            settings["attack"] = query["attack"]
        runs = [self.folder.open(run_id) for run_id in ids]
        key = (tuple(results_key(run) for run in runs), rule, str(settings))
        found = self._kept.get(key)
        if found is None:
            before = [len(run.looks) for run in runs]
            found = self._kept[key] = compare(runs, rule=rule, **settings)
            for run_id, run, n in zip(ids, runs, before, strict=True):
                if len(run.looks) > n:
                    self.seen.was_logged(session, run_id, run.brief)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        logged = [self.seen.look(session, run_id, run.brief) for run_id, run in zip(ids, runs, strict=True)]
        return found, not all(logged)

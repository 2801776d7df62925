"""report(): an audit, a comparison or four counts as one file to read, as Markdown, or as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal, get_args

from epsgauge.auditing.audit import Audit
from epsgauge.auditing.cohorts import Cohorts
from epsgauge.auditing.compare import Comparison
from epsgauge.errors import InvalidInput
from epsgauge.files import replace
from epsgauge.methods.intervals import Intervals
from epsgauge.numbers import json_ready
from epsgauge.plain import spelled
from epsgauge.probing.result import Probe
from epsgauge.reporting import contents, estimate, record, redo
from epsgauge.reporting.estimate import Answer
from epsgauge.stats.posterior import Posterior

Format = Literal["html", "md", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
Source = Audit | Comparison | Intervals | Posterior | Answer


def report(
    source: Source,
    *,
    out: str | os.PathLike[str] = "report.html",
    format: Format | None = None,
    claimed: float | None = None,
    probe: Probe | None = None,
    cohorts: Cohorts | None = None,
) -> Path:
    """Write a report and return where it is.

    `source` is an audit, a comparison, or the intervals or the posterior of one tally, beside which `claimed` is a
    promised value. The report of an audit can show a `probe` of the same pipeline, and `cohorts` of the same scores.
    HTML is one file that needs nothing else; the suffix of `out` says which format, or `format` does.
    """
    target = Path(out)
    kind = checked(target, format)
    text = written(source, kind, claimed=claimed, probe=probe, cohorts=cohorts, out=str(target))
    try:
        replace(target, text)
    except OSError as error:
        raise InvalidInput(f"the report could not be written to {str(target)!r}: {error.strerror}.") from None
    return target


def checked(path: Path, format: Format | None = None) -> Format:
    """Whether a report can go there, and as what: the given format, or what the suffix says."""
    if not path.parent.is_dir():
        raise InvalidInput(f"a report's folder must exist, but got {str(path.parent)!r}. Make it first.")
    if path.is_dir():
        raise InvalidInput(f"a report must be a file, but {str(path)!r} is a folder. Add a name, say report.html.")
    if format is not None:
        return format
    suffix = path.suffix.lstrip(".").lower()
    for kind in FORMATS:
        if suffix == kind:
            return kind
    known = ", ".join("." + kind for kind in FORMATS)
    raise InvalidInput(f"a report's file must end in {known}, but got {str(path)!r}. Or name the format (--format).")


def written(
    source: Source,
    format: Format,
    *,
    claimed: float | None = None,
    probe: Probe | None = None,
    cohorts: Cohorts | None = None,
    out: str = redo.OUT,
) -> str:
    """The text of a report, which says that it is the file `out`."""
    if format not in FORMATS:
        raise InvalidInput(f"format must be one of {', '.join(FORMATS)}, but got {format!r}.")
    thing = _known(source, claimed)
    if probe is not None:
        _check_probe(thing, probe)
    elif isinstance(thing, Audit) and isinstance(thing.verdict.basis.probe, Probe):
        probe = thing.verdict.basis.probe
    if cohorts is not None:
        _check_cohorts(thing, cohorts)
    if format == "json":
        parts = {"probe": probe, "cohorts": cohorts}
        more = {name: part.to_json() for name, part in parts.items() if part is not None}
        values = json_ready(_values(thing, out) | more)
        return spelled(json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"
    if isinstance(thing, Audit):
        said = contents.of_audit(thing, probe, cohorts, out)
    elif isinstance(thing, Comparison):
        said = contents.of_comparison(thing, out)
    else:
        said = contents.of_counts(thing, out)
    if format == "md":
        from epsgauge.reporting.markdown import markdown

        return markdown(said)
    from epsgauge.reporting import pictures
    from epsgauge.reporting.html import html

    if isinstance(thing, Comparison):
        return html(said, pictures.of_comparison(thing))
    return html(said, pictures.of_subject(thing, cohorts))


def _known(source: Source, claimed: float | None) -> Audit | Comparison | Answer:
    """Counts become an answer; of anything else a report cannot be made."""
    if isinstance(source, (Audit, Comparison, Answer)):
        if claimed is not None:
            raise InvalidInput(
                "claimed goes with counts alone: an audit judges the claim of its settings. Leave it out."
            )
        return source
    if isinstance(source, Intervals):
        return answer_of(source.posterior, source.level, claimed, tuple(row.method for row in source))
    if isinstance(source, Posterior):
        return answer_of(source, 0.90, claimed)
    raise InvalidInput(
        f"a report is of an audit, a comparison, intervals or a posterior, but got {type(source).__name__}. Audit a "
        "run or scores first: eg.report(eg.audit(...))."
    )


def _check_probe(thing: Audit | Comparison | Answer, probe: Probe) -> None:
    """It is shown beside the audit of the same training."""
    if not isinstance(thing, Audit):
        raise InvalidInput("a probe goes with the report of an audit, but this is of something else. Leave it out.")
    accounted = None if thing.run is None else thing.run.privacy
    if accounted is not None and accounted != probe.privacy:
        raise InvalidInput(
            f"the probe must be of the run's training, for which {accounted} is accounted, but it is of one with "
            f"{probe.privacy}. Probe the plan of the run."
        )


def _check_cohorts(thing: Audit | Comparison | Answer, cohorts: Cohorts) -> None:
    """They are groups of what is audited."""
    if not isinstance(thing, Audit):
        raise InvalidInput("cohorts go with the report of an audit, but this is of something else. Leave them out.")
    theirs = cohorts.cohorts[0].audit.adjacency
    if theirs != thing.adjacency:
        raise InvalidInput(
            f"cohorts must be those of the scores that are audited, whose adjacency is {thing.adjacency}, but theirs "
            f"is {theirs}. Audit the same scores."
        )


def answer_of(
    posterior: Posterior, level: float, claimed: float | None = None, further: tuple[str, ...] = ()
) -> Answer:
    """All that one tally says."""
    if posterior.shape:
        raise InvalidInput(f"a report is of one tally, but this posterior has the shape {posterior.shape}. Index it.")
    if claimed is not None:
        from epsgauge.stats import checks

        check = checks.delta if posterior.quantity == "delta" else checks.eps
        claimed = float(check(claimed, "claimed"))
    return Answer(posterior, level, claimed, further=further)


def _values(thing: Audit | Comparison | Answer, out: str) -> dict[str, Any]:
    """What `--json` of the other commands prints, and what was run."""
    if isinstance(thing, Audit):
        return {**thing.to_json(), "what_was_run": record.of_audit(thing, out)}
    if isinstance(thing, Comparison):
        return {**thing.to_json(), "what_was_run": record.of_comparison(thing, out)}
    return {**estimate.to_json(thing), "what_was_run": record.of_counts(thing, out)}

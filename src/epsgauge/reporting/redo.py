"""The commands that make a report again: of a run, of a table of scores, of a comparison, of four counts."""

from __future__ import annotations

import shlex
from typing import Any

from epsgauge.auditing.audit import Audit
from epsgauge.auditing.compare import Comparison
from epsgauge.reporting.estimate import Answer
from epsgauge.scores.origin import Origin
from epsgauge.scores.rules import Given
from epsgauge.scores.said import OPTION
from epsgauge.settings import OF_A_RULE, AuditSettings, changed
from epsgauge.stats.tally import CELLS

OUT = "report.html"
# Settings that `epsgauge audit` and `epsgauge report` have as options, and those of `epsgauge scores`.
OPTIONS = (
    *("delta", "level", "attack", "fit_models", "fit_pairs", "percentile", "threshold", "target_fpr"),
    *("verdict_method", "verdict_level", "pooled_guesses", "pooled_number"),
    *("claimed_eps", "claimed_delta", "claimed_mu", "claimed_adjacency"),
)
OF_SCORES = tuple(name for name in OPTIONS if name not in ("attack", "percentile"))


def of_audit(audit: Audit, out: str = OUT) -> list[str]:
    """From the plan, or the file of scores, to this report, which is the file `out`."""
    if audit.sampled is not None:
        return [audit.sampled.command]
    if audit.run is None:
        return _of_scores(audit, out)
    folder = str(audit.run.path)
    control = ["--control"] if audit.run.plan.control else []
    n_models = ["--models", str(audit.run.plan.n_models)] if audit.run.plan.trains_script else []
    begin = f"epsgauge run {audit.run.plan_file} {shlex.join([*control, *n_models, '--out', folder])}"
    given = differing(audit.run.plan.audit, audit.settings)
    options = _options(given, OPTIONS)
    if options is None or audit.run.unsealed:
        unsealed = ", unsealed=True" if audit.run.unsealed else ""
        return [begin, _python(f"eg.Run.open({folder!r}{unsealed})", given, out)]
    return [begin, shlex.join(["epsgauge", "report", folder, *options, "-o", out])]


def of_comparison(found: Comparison, out: str = OUT) -> list[str]:
    """The rules of its runs say how they were chosen."""
    first = found.runs[0].audit
    folders = [str(run.audit.run.path) for run in found.runs if run.audit.run is not None]
    if first.run is not None:
        given = differing(first.run.plan.audit, _asked(found))
        if set(given) - {"rule", "attack", *OF_A_RULE}:
            given |= {"family_wise": True} if found.family.divided else {}
            source = f"[{', '.join(f'eg.Run.open({folder!r})' for folder in folders)}]"
            return [_python(source, given, out, "compare")]
    words = ["epsgauge", "compare", *folders]
    if first.run is not None and first.settings.attack != first.run.plan.audit.attack:
        words += ["--attack", str(first.settings.attack)]
    fixed = isinstance(first.judged.choice, Given)
    if fixed and first.settings.percentile is not None:
        words += ["--percentile", f"{first.settings.percentile!r}"]
    elif not fixed and found.asked != "auto":
        words += ["--rule", found.asked]
    if first.settings.target_fpr is not None:
        words += ["--target-fpr", f"{first.settings.target_fpr!r}"]
    words += ["--family-wise"] if found.family.divided else []
    return [shlex.join([*words, "--report", out])]


def of_counts(answer: Answer, out: str = OUT) -> list[str]:
    post = answer.posterior
    words = ["epsgauge", "estimate"]
    for cell in CELLS:
        words += [f"--{cell}", str(int(getattr(post.tally, cell)))]
    if post.quantity != "eps":
        words += ["--quantity", post.quantity]
    fixed = {"eps": "delta", "delta": "eps"}.get(post.quantity)
    if fixed is not None:
        words += [f"--{fixed}", f"{float(post.family.parameter):g}"]
    elif answer.eps_if_gaussian is not None:
        words += ["--delta", f"{float(answer.eps_if_gaussian.family.parameter):g}"]
    words += ["--level", f"{answer.level:g}"]
    if answer.claimed is not None:
        words += [f"--claimed-{post.quantity}", f"{answer.claimed!r}"]
    if post.prior != (0.5, 0.5):
        words += ["--prior", *(f"{shape:g}" for shape in post.prior)]
    return [shlex.join([*words, "--report", out])]


def differing(base: AuditSettings, used: AuditSettings) -> dict[str, Any]:
    """What to change in `base` to get `used`."""
    new = {name: getattr(used, name) for name in AuditSettings.model_fields}
    new = {name: value for name, value in new.items() if value != getattr(base, name)}
    given = {name: value for name, value in new.items() if value is not None}
    try:
        return given if changed(base, given) == used else new
    except ValueError:
        return new


def _asked(found: Comparison) -> AuditSettings:
    """The settings of the first run, with levels as they were before they were divided."""
    settings = found.runs[0].audit.settings
    return _whole(settings, found.family.n) if found.family.divided else settings


def _whole(settings: AuditSettings, n: int) -> AuditSettings:
    """With levels as they were before they were divided by n."""
    whole = {name: round(1 - n * (1 - getattr(settings, name)), 12) for name in ("level", "verdict_level")}
    return settings.model_copy(update=whole)


def _of_scores(audit: Audit, out: str) -> list[str]:
    table = audit.evidence.scores
    origin = table.origin or Origin("FILE")
    in_file = table.taken_as is None or (table.origin is None and table.taken_as != "orthogonal")  # by its column model
    of_rows = [] if in_file or table.taken_as is None else [OPTION[table.taken_as]]
    way = {"kept": ["--keep-direction"], "either": ["--either-way"]}.get(audit.direction or "", [])
    if origin.coins is not None:
        named = [word for theirs in origin.names.values() for word in ("--score-column", theirs)]
        return [shlex.join(["epsgauge", "scores", origin.file, "--coins", origin.coins, *named, "--report", out])]
    begin, end = ["epsgauge", "scores", origin.file], [*of_rows, *origin.options, *way]
    if audit.declaration is not None:
        return [shlex.join([*begin, *end, "--declared", str(audit.declaration.file), "--report", out])]
    used = audit.settings if audit.direction != "either" else _whole(audit.settings, 2)
    given = differing(AuditSettings(), used)
    options = _options(given, OF_SCORES)
    seed = getattr(audit.judged.choice, "seed", None)
    if options is None:
        said: dict[str, Any] = {"adjacency": table.adjacency, "bits": table.bits, "models": table.taken_as}
        said = {name: value for name, value in said.items() if value not in (None, "unknown")} | origin.arguments
        read = "".join(f", {name}={value!r}" for name, value in said.items())
        more = {"seed": seed} if seed else {}
        more |= {"direction": audit.direction} if audit.direction else {}
        return [_python(f"{origin.reader}({origin.file!r}{read})", given | more, out)]
    of_bits = [] if table.bits == "unknown" else ["--bits", table.bits]
    words = [*begin, "--adjacency", table.adjacency, *of_bits, *end, *options]
    return [shlex.join([*words, *(["--seed", str(seed)] if seed else []), "--report", out])]


def _options(given: dict[str, Any], known: tuple[str, ...]) -> list[str] | None:
    """The settings as options; None where the command line cannot say them."""
    values = dict(given)
    rule = values.pop("rule", None)
    if any(name not in known or value is None for name, value in values.items()):
        return None
    said = {
        "split": "fit_models" in values,
        "split-pairs": "fit_pairs" in values,
        "given": bool({"percentile", "threshold"} & set(values)),
    }
    if rule is not None and not said.get(rule, True):
        return None
    out = ["--same-data"] if rule == "same-data" else []
    for name, value in values.items():
        out += [f"--{name.replace('_', '-')}", str(value)]
    return out


def _python(source: str, given: dict[str, Any], out: str, function: str = "audit") -> str:
    said = "".join(f", {name}={value!r}" for name, value in given.items())
    code = f"import epsgauge as eg; eg.report(eg.{function}({source}{said}), out={out!r})"
    return shlex.join(["python", "-c", code])

"""Every way through an audit, and what each must say. `python tests/recorded/cases.py` records it anew."""

from __future__ import annotations

import json
from pathlib import Path

from epsgauge.auditing.audit import audit, audit_run
from epsgauge.auditing.calibration import calibrate
from epsgauge.auditing.calibration_scenarios import SCENARIOS
from epsgauge.auditing.compare import compare
from epsgauge.auditing.forecast import forecast
from epsgauge.errors import InvalidInput
from epsgauge.numbers import json_ready
from epsgauge.runner.view import Run
from epsgauge.scores.table import Scores

FOLDER = Path(__file__).parent
EXPECTED = FOLDER / "expected.json"
METHODS = ["bayes", "jeffreys", "clopper-pearson", "exact", "pooled", "one-run", "anytime", "simultaneous"]
SUBSTITUTE = {"claimed_delta": 1e-5, "claimed_adjacency": "substitute"}
MU = {"claimed_mu": 0.3, "claimed_adjacency": "substitute"}
PAIRS = {"rule": "split-pairs"}
OWN = [  # as their plans declare them
    *("rr", "rr-failed", "rr-given", "rr-unfinished", "rr-stopped", "rr-extended", "rr-recoded", "rr-refit", "added"),
    *("laplace", "pairs", "pairs-failed", "pairs-unfinished", "pairs-anytime", "many", "one-run", "mu", "mu-pairs"),
    *("same-data", "seen-z0", "digits", "digits-control"),
]
CHANGED = [
    *((name, {"verdict_method": method}) for name in ("rr", "pairs") for method in METHODS),
    *(("pairs-failed", {"verdict_method": method}) for method in ("exact", "one-run", "anytime", "simultaneous")),
    *((name, {"rule": "same-data"}) for name in ("rr", "rr-failed", "pairs", "pairs-unfinished")),
    *((name, {"delta": 0.01}) for name in ("rr", "rr-unfinished", "pairs", "many", "pairs-anytime")),
    *((name, {"claimed_eps": 0.1, **SUBSTITUTE}) for name in ("rr", "rr-failed", "rr-extended", "pairs", "many")),
    ("rr", {"claimed_eps": 0.2, "claimed_delta": 1e-3, "claimed_adjacency": "add-remove"}),
    *((name, MU) for name in ("rr", "rr-failed", "rr-unfinished", "pairs", "pairs-failed", "many")),
    *(("pairs", {"pooled_guesses": guesses}) for guesses in ("all", "positive", "negative", "top", "top-positive")),
    ("pairs-failed", {"pooled_guesses": "top", "pooled_number": 40}),
    ("pairs-failed", {"pooled_guesses": "top-positive", "pooled_number": 190}),
    ("one-run", {"pooled_guesses": "top", "pooled_number": 60}),
    ("rr", {"rule": "given", "threshold": 0.0}),
    ("pairs", {"rule": "given", "percentile": 30.0}),
    ("pairs", {"attack": "difference", "level": 0.95, "verdict_level": 0.9}),
    ("pairs", {"attack": "loss", "target_fpr": 0.2}),
    ("pairs", {"search": "bayes"}),
    ("pairs", PAIRS),
    ("pairs-failed", {**PAIRS, "fit_pairs": 2, "verdict_method": "anytime"}),
]
TABLES = [
    *(("one", {"verdict_method": method, "claimed_eps": 0.3, **SUBSTITUTE}) for method in METHODS),
    *(("four", {"verdict_method": method, "claimed_eps": 0.3, **SUBSTITUTE}) for method in METHODS),
    *((name, {}) for name in ("one", "four", "few-models", "unfair", "dealt", "perfect")),
    *((name, MU) for name in ("one", "four", "few-models")),
    *((name, PAIRS) for name in ("four", "few-models", "dealt")),
    *((name, {"rule": "given", "threshold": 0.5}) for name in ("one", "four", "unfair", "perfect")),
    *((name, {"rule": "same-data", "claimed_eps": 0.3, **SUBSTITUTE}) for name in ("one", "four", "perfect")),
    ("unfair", {"verdict_method": "anytime"}),
    ("dealt", {"verdict_method": "anytime", "claimed_eps": 0.0, **SUBSTITUTE}),
    ("perfect", {"claimed_eps": 8.0, **SUBSTITUTE, "verdict_method": "jeffreys"}),
    ("one", {"rule": "given", "threshold": -9.0, "verdict_method": "bayes", "delta": 0.0}),
]
NO_COINS = [
    *((name, {"claimed_eps": 0.3, **SUBSTITUTE}, bits) for name in ("one", "four") for bits in ("dealt", "unknown")),
    *((name, {"rule": "same-data", "claimed_eps": 0.3, **SUBSTITUTE}, "dealt") for name in ("one", "four")),
    ("few-models", PAIRS, "unknown"),
    ("dealt", MU, "dealt"),
]
FORECAST = [
    *(("rr", {"verdict_method": method}) for method in METHODS),
    *(("pairs", {"verdict_method": method}) for method in METHODS),
    *((name, {}) for name in ("many", "one-run", "mu", "mu-pairs", "same-data", "digits")),
    ("pairs", {"pooled_guesses": "top-positive", "pooled_number": 30}),
    ("pairs", {"pooled_guesses": "positive"}),
    ("many", MU),
]
COMPARED = [(("rr", "rr-failed"), {"rule": "best"}), (("pairs", "pairs-failed"), {"percentile": 30.0})]
CALIBRATED = [*METHODS, "gaussian", "clusters"]


def results():
    """What every case says, by its name, one at a time."""
    for name in OWN:
        yield name, lambda name=name: _of_audit(audit_run(Run.open(FOLDER / name)))
    for name, changes in CHANGED:
        yield _name(name, changes), lambda n=name, c=changes: _of_audit(audit_run(Run.open(FOLDER / n), c))
    for name, changes in TABLES:
        yield _name(f"{name}.csv", changes), lambda n=name, c=changes: _of_audit(audit(_scores(n), **c))
    for name, changes, bits in NO_COINS:
        said = _name(f"{name}.csv bits={bits}", changes)
        yield said, lambda n=name, c=changes, b=bits: _of_audit(audit(_scores(n, b), **c))
    for name, changes in FORECAST:
        yield _name(f"forecast {name}", changes), lambda n=name, c=changes: _of_forecast(n, c)
    for names, options in COMPARED:
        yield _name(f"compare {' '.join(names)}", options), lambda n=names, o=options: _of_comparison(n, o)
    for name in CALIBRATED:
        few = SCENARIOS[::4] if name in ("exact", "gaussian") else SCENARIOS  # which take a moment for each tally
        yield f"calibrate {name}", lambda n=name, s=few: calibrate(n, runs=4, seed=1, scenarios=s).to_json()
    for name in ("bayes", "clopper-pearson", "pooled"):
        yield f"calibrate {name} exactly", lambda name=name: calibrate(name, exact=True).to_json()


def said(result):
    """As it stands in the file; what cannot be judged says why."""
    try:
        found = result()
    except InvalidInput as error:
        found = {"error": str(error)}
    text = json.dumps(json_ready(found), default=list)
    return json.loads(text.replace(f"{FOLDER}/", ""))  # wherever the project is


def recorded():
    return json.loads(EXPECTED.read_text(encoding="utf-8"))


def _name(name, changes):
    return " ".join([name, *(f"{key}={value}" for key, value in changes.items())])


def _scores(name, bits="coins"):
    return Scores.read(FOLDER / f"{name}.csv", adjacency="substitute", bits=bits)


def _of_audit(found):
    return {"json": found.to_json(), "text": str(found).splitlines()}


def _of_forecast(name, changes):
    plan = Run.open(FOLDER / name).plan.with_audit(**changes)
    found = forecast(plan)
    names = (
        "n_fit n_judged n_guesses n_trained method counts largest_verdict largest_credible claim claim_text warnings"
    )
    return {key: getattr(found, key) for key in names.split()}


def _of_comparison(names, options):
    out = compare([_unlogged(name) for name in names], **options).to_json()
    return {
        **out,
        "runs": [{k: v for k, v in run.items() if k != "cdf"} for run in out["runs"]],
        "grid": len(out["grid"]),
    }


def _unlogged(name):
    """A run whose looks are not written into the recorded folder."""
    run = Run.open(FOLDER / name)
    object.__setattr__(run, "log_look", lambda *args: True)
    return run


def main():
    from rich.progress import track

    found = {name: said(result) for name, result in track(list(results()))}
    EXPECTED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

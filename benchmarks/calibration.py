"""How often a "lower bound" is above the truth: every method of ours, and those of peers on the same kind of draws.

Peers run in an environment of their own, `.venv-peers`, in one process each; draws travel to them as .npz.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from epsgauge.auditing.calibration import calibrate
from epsgauge.auditing.calibration_bounds import Bounder
from epsgauge.auditing.calibration_result import Certificate, ScenarioResult
from epsgauge.auditing.calibration_scenarios import Scenario
from epsgauge.auditing.calibration_sources import Answers, LaplaceScores, NormalScores
from epsgauge.methods.table import METHODS
from epsgauge.stats.arrays import Floats

LEVEL = 0.95
ENVIRONMENT = Path(__file__).parent.parent / ".venv-peers"
PACKAGES = ("jax-privacy==2.0.0", "privacy-estimates", "opake-auditing", "torch==2.13.0")

# 1,000 scores with fair bits; those that need a rule get one that was fixed beforehand.
PEER_SCENARIOS = (
    Scenario("no leak", NormalScores(1.0, leak=0.0), 1e-5, 0.5, 500, 500),
    Scenario("randomised response, ε = 1", Answers(1.0), 1e-5, 0.5, 500, 500),
    Scenario("Laplace, ε = 1", LaplaceScores(1.0), 1e-5, 0.3, 500, 500),
    Scenario("Gaussian, μ = 1", NormalScores(1.0), 1e-5, 0.3, 500, 500),
)
OURS = ("exact", "clopper-pearson", "pooled", "simultaneous")

# A peer's program reads scores and bits (runs, N) from a .npz and prints one bound a run, as JSON.
READ = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
given = np.load(sys.argv[1])
delta, threshold = float(given["delta"]), float(given["threshold"])
def say(bound):
    found, failed = [], None
    for s, b in zip(given["scores"][: int(sys.argv[2])], given["bits"]):
        try:
            found.append(float(bound(s, b)))
        except Exception as error:
            found.append(None)
            failed = f"{type(error).__name__}: {error}"
    print(json.dumps({"bounds": found, "failed": failed}))
"""
JAX = """
from jax_privacy import auditing
say(lambda s, b: auditing.CanaryScoreAuditor(s[b == 1], s[b == 0]).CALL)
"""
OPAKE = """
import opake.auditing as auditing
from opake.random import key
CoinFlip = type(auditing.coin_flip(range(4), num_canaries=4, key=key(0)))
def bound(s, b):
    ids, heads = np.arange(len(s)), b == 1
    flip = CoinFlip(len(s), ids, heads, ids[heads], ids[~heads])
    scores = auditing.canary_scores(s, canary_indices=ids)
    return auditing.one_run(scores, coin_flip=flip).eps_delta().epsilon_at(delta=delta, significance=0.05)
say(bound)
"""
AUTHORS = """
from privacy_estimates import AttackResults, compute_eps_lo_hi
def bound(s, b):
    said, one = s >= threshold, b == 1
    cells = {"FN": ~said & one, "FP": said & ~one, "TN": ~said & ~one, "TP": said & one}
    counts = AttackResults(**{name: int(cell.sum()) for name, cell in cells.items()})
    return compute_eps_lo_hi(count=counts, delta=delta, alpha=0.1, method="METHOD")[0]
say(bound)
"""
PEERS = {
    "jax-privacy, Clopper-Pearson": JAX.replace("CALL", "epsilon_clopper_pearson(significance=0.05, delta=delta)"),
    "jax-privacy, raw counts": JAX.replace("CALL", "epsilon_raw_counts(delta=delta)"),
    "jax-privacy, GDP": JAX.replace("CALL", "epsilon_from_gdp(significance=0.05, delta=delta)"),
    "jax-privacy, one run": JAX.replace("CALL", "epsilon_one_run(significance=0.05, delta=delta)"),
    "opake, one run": OPAKE,
    "privacy-estimates, beta": AUTHORS.replace("METHOD", "beta"),
    "privacy-estimates, jeffreys": AUTHORS.replace("METHOD", "jeffreys"),
    "privacy-estimates, joint-beta": AUTHORS.replace("METHOD", "joint-beta"),
}
SLOW = "privacy-estimates, joint-beta"


def peers(names: list[str], runs: int, slow_runs: int, limit: float) -> None:
    """One line a bound and scenario: how often it is above the ε of the fixed rule, and above the mechanism's."""
    python = _environment()
    print(f"{'':32}{'above rule':>12}{'mechanism':>11}{'mean':>8}{'runs':>6}")
    for scenario in PEER_SCENARIOS:
        drawn = scenario.draw(runs, 0, fair=True)
        rule, truth = (
            float(scenario.source.rule_eps(scenario.threshold, scenario.delta)),
            scenario.source.eps_at(scenario.delta, 1),
        )
        print(f"{scenario.name}, ε of the rule {rule:.3f}, of the mechanism {truth:.3f}, δ = {scenario.delta:g}")
        for name in OURS:
            low, thresholds = Bounder.of(name, LEVEL).bounds(drawn, scenario.delta)
            of_rule = scenario.source.rule_eps(thresholds, scenario.delta)
            _line(f"epsgauge, {name}", low, of_rule, truth)
        with tempfile.TemporaryDirectory() as folder:
            draws = Path(folder) / "draws.npz"
            np.savez(
                draws,
                scores=drawn.scores[:, :, 0],
                bits=drawn.bits[:, :, 0],
                delta=scenario.delta,
                threshold=scenario.threshold,
            )
            for name in names:
                _peer(python, name, draws, slow_runs if name == SLOW else runs, limit, np.array(rule), truth)


def _peer(python: Path, name: str, draws: Path, runs: int, limit: float, rule: Floats, truth: float) -> None:
    if not runs:
        return
    command = [str(python), "-c", READ + PEERS[name], str(draws), str(runs)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        print(f"  {name:30} no answer within {limit:.0f} s", flush=True)
        return
    if done.returncode:
        print(f"  {name:30} {done.stderr.strip().splitlines()[-1]}", flush=True)
        return
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    found = np.array([x for x in answer["bounds"] if x is not None], float)
    if answer["failed"]:
        print(f"  {name}: {len(answer['bounds']) - len(found)} runs failed, the last with {answer['failed']}")
    if len(found):
        # which rule a bound rests on is known where the rule was given
        _line(name, found, rule if name.startswith("privacy-estimates") else None, truth)


def _line(name: str, found: Floats, rule: Floats | None, truth: float) -> None:
    above = "" if rule is None else f"{np.mean(found > rule + 1e-9):.1%}"
    print(
        f"  {name:30}{above:>12}{np.mean(found > truth + 1e-9):>11.1%}{np.mean(found):8.2f}{len(found):6}", flush=True
    )


def _environment() -> Path:
    """The peers' own Python, made with pip when it is first needed."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def ours(methods: list[str], runs: int, exact_runs: int) -> dict[str, Certificate]:
    found = {}
    for name in methods:
        start = time.process_time()
        found[name] = calibrate(name, runs=exact_runs if name == "exact" else runs, level=LEVEL)
        spent = time.process_time() - start
        print(f"{name}: {found[name].runs} runs, passed {found[name].passed}, {spent:.0f} s of CPU time", flush=True)
    return found


def tables(found: dict[str, Certificate]) -> None:
    """Markdown, one row per scenario and one column per method."""
    columns: dict[str, Callable[[ScenarioResult], str]] = {
        "share of runs above the rule's ε, %": lambda s: (
            f"{100 * s.above_rule.value:.1f} ± {100 * s.above_rule.error:.1f}"
        ),
        "share of runs above the mechanism's ε, %": lambda s: f"{100 * s.above_mechanism.value:.1f}",
        "mean bound": lambda s: f"{s.mean_bound.value:.2f}",
        "power against half of the rule's ε, %": lambda s: "" if s.power is None else f"{100 * s.power.value:.0f}",
    }
    names = dict.fromkeys(s.name for c in found.values() for s in c.scenarios)
    for title, cell in columns.items():
        print(f"\n{title}\n\n| scenario | δ | ε of rule, mechanism | {' | '.join(found)} |")
        print("|---|---|---|" + "---|" * len(found))
        for name in names:
            rows = {m: next((s for s in c.scenarios if s.name == name), None) for m, c in found.items()}
            some = next(s for s in rows.values() if s is not None)
            texts = ("" if s is None else f"({cell(s)})" if s.result == "outside" else cell(s) for s in rows.values())
            print(f"| {name} | {some.delta:g} | {some.rule_eps:.2f}, {some.mechanism_eps:.2f} | {' | '.join(texts)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--exact-runs", type=int, default=100, help="runs of the exact bound, which takes longer")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), help="of ours; none leaves them out")
    parser.add_argument("--peers", nargs="*", default=list(PEERS), help="names of peers' bounds; none leaves them out")
    parser.add_argument("--peer-runs", type=int, default=100)
    parser.add_argument("--slow-runs", type=int, default=0, help=f"runs of {SLOW}, 40 s each or more")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for a peer and scenario")
    args = parser.parse_args()
    if args.methods:
        tables(ours(args.methods, args.runs, args.exact_runs))
    if args.peers:
        peers(args.peers, args.peer_runs, args.slow_runs, args.limit)


if __name__ == "__main__":
    main()

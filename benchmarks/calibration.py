"""How often a "lower bound" is above the truth: every method of ours, and those of peers on the same kind of draws.

Peers run in an environment of their own, `.venv-peers`, in one process each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from peers import OPAKE, bounds, by_authors, by_jax_privacy, environment

from epsgauge.auditing.calibration import calibrate
from epsgauge.auditing.calibration_bounds import Bounder
from epsgauge.auditing.calibration_result import Certificate, ScenarioResult
from epsgauge.auditing.calibration_scenarios import Draws, Scenario
from epsgauge.auditing.calibration_sources import Answers, LaplaceScores, NormalScores
from epsgauge.methods.table import METHODS
from epsgauge.stats.arrays import Floats

LEVEL = 0.95

# 1,000 scores with fair bits; those that need a rule get one that was fixed beforehand.
PEER_SCENARIOS = (
    Scenario("no leak", NormalScores(1.0, leak=0.0), 1e-5, 0.5, 500, 500),
    Scenario("randomised response, ε = 1", Answers(1.0), 1e-5, 0.5, 500, 500),
    Scenario("Laplace, ε = 1", LaplaceScores(1.0), 1e-5, 0.3, 500, 500),
    Scenario("Gaussian, μ = 1", NormalScores(1.0), 1e-5, 0.3, 500, 500),
)
OURS = ("exact", "clopper-pearson", "pooled", "simultaneous")

PEERS = {
    "jax-privacy, Clopper-Pearson": by_jax_privacy("epsilon_clopper_pearson(significance=0.05, delta=delta)"),
    "jax-privacy, raw counts": by_jax_privacy("epsilon_raw_counts(delta=delta)"),
    "jax-privacy, GDP": by_jax_privacy("epsilon_from_gdp(significance=0.05, delta=delta)"),
    "jax-privacy, one run": by_jax_privacy("epsilon_one_run(significance=0.05, delta=delta)"),
    "opake, one run": OPAKE,
    "privacy-estimates, beta": by_authors("beta"),
    "privacy-estimates, jeffreys": by_authors("jeffreys"),
    "privacy-estimates, joint-beta": by_authors("joint-beta"),
}
SLOW = "privacy-estimates, joint-beta"


def peers(names: list[str], runs: int, slow_runs: int, limit: float) -> None:
    """One line a bound and scenario: how often it is above the ε of the fixed rule, and above the mechanism's."""
    python = environment()
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
        for name in names:
            some = np.arange(runs)[: slow_runs if name == SLOW else runs]
            _peer(python, name, scenario, drawn.pick(some), limit)


def _peer(python: Path, name: str, scenario: Scenario, drawn: Draws, limit: float) -> None:
    if not len(drawn):
        return
    answer = bounds(
        python,
        PEERS[name],
        drawn.scores[:, :, 0],
        drawn.bits[:, :, 0],
        delta=scenario.delta,
        threshold=scenario.threshold,
        limit=limit,
    )
    if answer.why:
        print(f"  {name}: {answer.n_failed} runs failed, the last with {answer.why}", flush=True)
    if len(answer.bounds):
        # which rule a bound rests on is known where the rule was given
        given = name.startswith("privacy-estimates")
        rule = scenario.source.rule_eps(scenario.threshold, scenario.delta) if given else None
        _line(name, answer.bounds, rule, scenario.source.eps_at(scenario.delta, 1))


def _line(name: str, found: Floats, rule: Floats | None, truth: float) -> None:
    above = "" if rule is None else f"{np.mean(found > rule + 1e-9):.1%}"
    print(
        f"  {name:30}{above:>12}{np.mean(found > truth + 1e-9):>11.1%}{np.mean(found):8.2f}{len(found):6}", flush=True
    )


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
    parser.add_argument(
        "--methods",
        nargs="*",
        default=[name for name, m in METHODS.items() if not m.of_dpsgd],
        help="of ours; none leaves them out",
    )
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

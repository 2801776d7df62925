"""One training, end to end: the commands of the page, a small language model, and Theorem 11 by enumeration."""

import importlib.util
import itertools
import json
import re
import shlex
import shutil
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from command_line import ask, refused, told

import epsgauge as eg
from epsgauge.bounds.gaussian import ranked_mu
from epsgauge.bounds.ranked import Ranked
from epsgauge.methods.needs_of_one_run import _drawn

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "train-once.md").read_text(encoding="utf-8")
STUDY = ROOT / "studies" / "train_once"


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem + "_once", path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def commands():
    block = re.search(r"```sh\n(.*?)```", PAGE, re.DOTALL)[1]
    return [shlex.split(line) for line in block.strip().splitlines()]


@pytest.mark.filterwarnings("ignore")  # of Opacus
def test_the_four_commands_find_a_training_without_noise(tmp_path):
    """As the page has them, with fewer canaries; the noise that the claim rests on was forgotten."""
    pytest.importorskip("opacus")
    made, trained, judged, reported = commands()
    assert trained == ["python", "train.py", "coins.csv", "scores.csv"]
    example = module(ROOT / "examples" / "train_once" / "train.py")
    few = [{"1000": "240", "8": "1"}.get(word, word) for word in made[1:]]
    with chdir(tmp_path):
        ask(*few, "--seed", "1")
        coins = eg.read_coins("coins.csv")
        scores, eps = example.train(coins, example.sentences(60), noise=0.0, epochs=15, batch=60)
        assert np.isinf(eps)
        coins.write_scores(scores, "scores.csv")
        done = told(*judged[1:])
        assert done.returncode == 1, done.stdout + done.stderr
        assert "Violation" in done.stdout
        assert "guaranteed" in done.stdout
        ask(*reported[1:])
        assert coins.declaration.digest[:12] in Path("report.html").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore")  # of Opacus
def test_the_example_with_noise_is_no_violation(tmp_path):
    pytest.importorskip("opacus")
    example = module(ROOT / "examples" / "train_once" / "train.py")
    coins = eg.coins(tmp_path / "coins.csv", canaries=100, kind="random-words", seed=2, claimed_eps=8.0)
    scores, eps = example.train(coins, example.sentences(40), noise=1.5, epochs=2, batch=30)
    assert 0 < eps < 8
    found = eg.audit(coins.scores(dict(zip(coins.ids, scores, strict=True))), direction="kept")
    assert found.verdict.kind in ("no objection", "cannot decide")


# The study


def test_the_page_has_what_the_scores_of_the_study_say(tmp_path):
    shutil.copytree(STUDY, tmp_path, dirs_exist_ok=True)  # an audit notes next to a declaration that it was used
    results, study = json.loads((STUDY / "results.json").read_text(encoding="utf-8")), module(STUDY / "study.py")
    study.HERE = tmp_path
    rows = results["rows"]
    for row in rows:
        rates = study.rates(row["kind"], row["noise"])
        assert rates == {name: row[name] for name in rates}
    assert study.bound(rows[0]["kind"], rows[0]["noise"]) == rows[0]["eps"]
    assert PAGE.split("<!-- kinds -->\n")[1].split("<!-- end -->")[0].strip() == study.table(rows)
    spent = PAGE.split("<!-- spent -->\n")[1].split("<!-- end -->")[0]
    for noise, eps in results["setting"]["eps"].items():
        assert eps is None or f"{eps} with noise {noise}" in spent


# How many canaries


def test_size_of_one_run_says_what_draws_confirm():
    """The command of the page and its answer."""
    command, *rows = re.search(r"\$ epsgauge (size --one-run.*?)\n\.\.\.", PAGE, re.DOTALL)[1].splitlines()
    said = [line.split() for line in ask(*shlex.split(command)).splitlines()]
    assert [row.split() for row in rows] == said[: len(rows)]
    n = int(said[1][1])
    bits, scores = _drawn(n, 2 * 1.2815515655446004, 99)  # a draw that the search did not see, of accuracy 0.9
    table = eg.Scores(np.zeros(n, int), np.arange(n), bits, scores, "add-remove", bits="coins", taken_as="one")
    assert eg.audit(table, rule="split-pairs").verdict.bound.value > 2 - 0.5


def test_size_of_one_run_needs_a_bound():
    said = refused("size", "--one-run", "--accuracy", 0.9, "--half-width", 0.1, "--delta", 1e-5)
    assert "--one-run needs --lower-bound" in said


# Theorem 11


def largest(law, d):
    """The largest Pr[D ≤ d] over all guesses and orders that are functions of the output; weights are 1 and ½.

    `law[y1, y2, b1, b2]` is the chance of an output and bits.
    """
    total = 0.0
    for y in itertools.product(range(law.shape[0]), range(law.shape[1])):
        best = 0.0
        for guess in itertools.product((0, 1), repeat=2):
            for first in (0, 1):
                weight = (1.0, 0.5) if first == 0 else (0.5, 1.0)
                lost = [[weight[0] * (b1 != guess[0]) + weight[1] * (b2 != guess[1]) for b2 in (0, 1)] for b1 in (0, 1)]
                best = max(best, float((law[y] * (np.array(lost) <= d)).sum()))
        total += best
    return total


def product(one):
    """Of two bits, each with an output of its own: `one[y, b]` is Pr[y | b]."""
    return 0.25 * np.einsum("ac,bd->abcd", one, one)


RESPONSE = np.array([[0.7, 0.1], [0.1, 0.7], [0.2, 0.2]])


@pytest.mark.parametrize("d", [0.0, 0.5, 1.0])
def test_no_training_on_outputs_of_their_own_shows_more(d):
    """What a training makes of both outputs together: the second depends on the first, and some become one."""
    own, most = product(RESPONSE), largest(product(RESPONSE), d)
    for shift in itertools.product(range(3), repeat=3):
        mixed = np.zeros_like(own)
        for y1, y2 in itertools.product(range(3), repeat=2):
            mixed[y1, (y2 + shift[y1]) % 3 if y1 else min(y2, 1)] += own[y1, y2]
        assert largest(mixed, d) <= most + 1e-12
    assert most < 1.0 or d == 1.0


def test_outputs_that_fail_together_show_more():
    """The same for each bit alone, but both are given away at once: the condition is needed."""
    p = 0.2
    seen = np.array([[p, 0.0], [0.0, p], [1 - p, 1 - p]])  # a bit, or nothing
    together = np.zeros((3, 3, 2, 2))
    for b1, b2 in itertools.product((0, 1), repeat=2):
        together[b1, b2, b1, b2] += 0.25 * p
        together[2, 2, b1, b2] += 0.25 * (1 - p)
    for b in (0, 1):
        alone = together[:, :, b].sum(axis=(1, 2)) / together[:, :, b].sum()
        assert alone == pytest.approx(seen[:, b])
    assert largest(together, 0.0) > largest(product(seen), 0.0) + 0.03


def test_one_training_refutes_the_truth_as_seldom_as_the_level_says(monkeypatch):
    """Where records' gradients depend on all updates before, and so on all bits."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    bench = module(ROOT / "benchmarks" / "train_once.py")
    runs, mu = 30, 0.6
    above = [ranked_mu(Ranked.of(bench.ranked(*bench.trained(100, mu, seed))), level=0.5) > mu for seed in range(runs)]
    assert sum(above) / runs <= 0.5 + 3 * np.sqrt(0.25 / runs)
    assert sum(above) > 0

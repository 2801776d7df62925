"""The command line as a person and a script use it."""

import json
import os
import subprocess
import sys

import pytest
from command_line import ask, process, told

import epsgauge as eg
from epsgauge.bounds.exact import exact_lower_bound

COUNTS = ["--tp", "31", "--tn", "996", "--fp", "5", "--fn", "968"]
ESTIMATE = ["estimate", *COUNTS, "--delta", "1e-5"]


def test_table():
    out = ask(*ESTIMATE, "--claimed-eps", "4")
    for text in ("[1.086, 2.655]", "[0.682, 3.119]", "[0.600, 3.294]", "credible", "guaranteed", "median 1.798"):
        assert text in out
    assert "Pr[ε > 4] = 0.000137" in out
    assert "█" in out
    assert "each sample comes from a model trained independently" in out


def test_warnings_are_shown():
    out = ask("estimate", "--tp", "2", "--tn", "487", "--fp", "0", "--fn", "511", "--delta", "1e-5")
    assert "hardly moved from the" in " ".join(out.split())
    assert "∞" in out


def test_json():
    answer = json.loads(ask(*ESTIMATE, "--claimed-eps", "2", "--level", "0.9", "--json"))
    assert answer["tally"] == {"tp": 31, "tn": 996, "fp": 5, "fn": 968}
    assert (answer["delta"], answer["level"], answer["quantity"]) == (1e-5, 0.9, "eps")
    post = eg.estimate(eg.Tally(**answer["tally"]), delta=1e-5)
    assert answer["median"] == pytest.approx(post.median())
    assert answer["mass_at_zero"] == pytest.approx(post.mass_at_zero)
    assert (answer["claimed_eps"], answer["exceeds"]) == (2, pytest.approx(post.exceeds(2.0)))
    assert [m["method"] for m in answer["methods"]] == ["bayes", "jeffreys", "clopper-pearson", "exact"]
    assert [m["promise"] for m in answer["methods"]] == ["credible", "estimate", "guaranteed", "guaranteed"]
    bayes = answer["methods"][0]
    assert (bayes["low"], bayes["high"]) == (pytest.approx(1.0858981), pytest.approx(2.6546098))
    assert bayes["width"] == pytest.approx(bayes["high"] - bayes["low"])
    assert all(m["assumptions"] for m in answer["methods"])
    assert answer["warnings"] == []


def test_json_without_a_claim_and_with_infinity():
    args = ["--tp", "2", "--tn", "487", "--fp", "0", "--fn", "511", "--delta", "1e-5", "--json"]
    answer = json.loads(ask("estimate", *args))
    assert (answer["claimed_eps"], answer["exceeds"]) == (None, None)
    cp = answer["methods"][2]
    assert (cp["low"], cp["high"], cp["width"]) == (0, "inf", "inf")
    assert cp["against_clopper_pearson"] is None
    assert len(answer["warnings"]) == 3


def test_json_of_the_other_quantities():
    delta = json.loads(
        ask("estimate", *COUNTS, "--quantity", "delta", "--eps", "1", "--claimed-delta", "0.01", "--json")
    )
    assert (delta["quantity"], delta["eps"], delta["claimed_delta"]) == ("delta", 1, 0.01)
    assert 0 < delta["exceeds"] < 1
    mu = json.loads(ask("estimate", *COUNTS, "--quantity", "mu", "--delta", "1e-5", "--json"))
    assert mu["quantity"] == "mu"
    assert mu["eps_if_gaussian"]["low"] == pytest.approx(1.7048944)
    assert any("Gaussian DP" in w for w in mu["warnings"])


def test_json_alone_goes_to_standard_output():
    done = process(*ESTIMATE, "--json")
    json.loads(done.stdout)
    assert done.stderr == ""


def test_mu_prints_its_assumption_and_eps():
    out = ask("estimate", *COUNTS, "--quantity", "mu", "--delta", "1e-5")
    assert "ε at δ = 1e-05 under Gaussian DP" in out
    assert "trade-off curve is that of Gaussian DP" in " ".join(out.split())


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--tp", "-1"], "error: tp must be a whole number, 0 or more, but got -1."),
        (["--tp", "1.5"], "error: tp must be a whole number, 0 or more, but got 1.5."),
        (["--tp", "many"], "error: tp must be a whole number, 0 or more, but got 'many'."),
        (["--tp", "nan"], "error: tp must not be NaN, but got nan."),
        (["--delta", "1.5"], "error: delta must be in [0, 1), but got 1.5."),
        (["--level", "1"], "error: level must be in (0, 1), but got 1.0."),
        (["--prior", "0", "1"], "error: prior must be two shapes from 0.1 to 1e+09, but got 0 at index 0."),
        (["--quantity", "delta"], "error: --delta is what --quantity delta estimates. Leave it out, and give --eps."),
        (["--eps", "1"], "error: --eps goes with --quantity delta, but the quantity is eps."),
        (["--claimed-mu", "1"], "error: --claimed-mu goes with --quantity mu, but the quantity is eps."),
        (["--claimed-eps", "-1"], "error: claimed_eps must be finite, 0 or more, but got -1.0."),
        (
            ["--figure", "/nowhere/at/all.svg"],
            "error: a figure's folder must exist, but got '/nowhere/at'. Make it first.",
        ),
        (["--figure", "p.xyz"], "error: a figure's file must end in .svg, but got 'p.xyz'."),
        (["--figure", "/proc/x.svg"], "error: the figure could not be written to '/proc/x.svg': "),
        (["--level", "0.9999999999999999"], "error: level must be at least 2e-12 away from 0 and 1, but got"),
        (["--delta", "abc"], "error: Invalid value for '--delta': "),
        (["--quantity", "z"], "error: Invalid value for '--quantity': "),
        (["--nonsense"], "error: No such option: --nonsense"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(args, message):
    done = told(*ESTIMATE, *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_missing_delta():
    done = process("estimate", *COUNTS)
    assert done.returncode == 2
    assert done.stderr == "error: delta is needed for this quantity, but was not given. Add for example --delta 1e-5.\n"


def test_usage_errors_exit_2_without_traceback():
    for args in (["estimate", "--tp", "1"], ["nonsense"]):
        done = told(*args)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1


def test_a_claimed_delta_is_a_probability():
    done = told("estimate", *COUNTS, "--quantity", "delta", "--eps", "1", "--claimed-delta", "5")
    assert (done.returncode, done.stderr) == (2, "error: claimed_delta must be in [0, 1), but got 5.0.\n")


def test_an_old_terminal_gets_question_marks_and_no_traceback():
    done = subprocess.run(
        [sys.executable, "-m", "epsgauge", *ESTIMATE],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0
    assert b"[1.086, 2.655]" in done.stdout
    assert done.stderr == b""


def test_a_reader_who_leaves_early_is_no_error():
    command = f"{sys.executable} -m epsgauge {' '.join(ESTIMATE)} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, encoding="utf-8")
    assert done.stderr == ""


@pytest.mark.parametrize("width", [50, 60, 80, 120])
def test_numbers_are_never_cut(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    big = ["--tp", "600000000", "--tn", "600000000", "--fp", "400000000", "--fn", "400000000"]
    for counts, text in ((COUNTS, "[1.086, 2.655]"), (big, "[0.405397, 0.405548]")):
        out = ask("estimate", *counts, "--delta", "1e-12" if counts is big else "1e-5", "--claimed-eps", "1000")
        assert text in out
        assert "…" not in out
        assert "claimed 1000 ▸" in out


def test_figure(tmp_path):
    target = tmp_path / "posterior.svg"
    ask(*ESTIMATE, "--figure", str(target))
    assert target.read_text(encoding="utf-8").lstrip().startswith("<?xml")


def test_size():
    answer = json.loads(ask("size", "--accuracy", "0.6", "--half-width", "0.15", "--delta", "1e-5", "--json"))
    assert [m["n_samples"] for m in answer["methods"][:3]] == [544, 1423, 1478]
    assert "prior alone" in ask("size", "--accuracy", "0.9", "--lower-bound", "0.1", "--delta", "1e-5")
    out = ask("size", "--accuracy", "0.6", "--lower-bound", "2", "--delta", "1e-5")
    assert "none: 1e+08 are not enough" in out


def test_size_has_the_methods_that_judge():
    wanted = ("size", "--fnr", "0.5", "--fpr", "0.02", "--lower-bound", "1.5", "--json", "--delta")
    of_scores, of_runs = _judging(*wanted, "1e-3")  # whatever δ costs
    assert (of_scores["method"], of_runs["method"]) == ("exact", "weighted")
    at, below = (
        exact_lower_bound(_expected(n, 0.5, 0.02), delta=1e-3, level=0.90, direction="right")
        for n in (of_scores["n_samples"], of_scores["n_samples"] * 9 // 10)
    )
    assert below < 1.5 < at
    of_scores, of_runs = _judging(*wanted, "0")
    assert (of_scores["judges"], of_scores["method"]) == ("scores", "exact")
    assert (of_runs["judges"], of_runs["method"]) == ("runs", "weighted")
    assert of_scores["n_samples"] < of_runs["n_samples"] < 2 * of_scores["n_samples"]


def _judging(*args):
    return [m for m in json.loads(ask(*args))["methods"] if m["judges"]]


def _expected(n, fnr, fpr):
    half = n // 2
    fn, fp = round(half * fnr), round(half * fpr)
    return eg.Tally(tp=half - fn, tn=half - fp, fp=fp, fn=fn)


def test_help_and_version():
    assert "estimate" in ask("--help")
    assert ask("--version").strip() == f"epsgauge {eg.__version__}"

"""Whole runs: which way the scores of a network point, data of either kind, large reference sets, the progress bar."""

import io
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import epsgauge as eg
from epsgauge.data.digits import digits
from epsgauge.reporting import progress
from epsgauge.reporting.progress import Bar
from epsgauge.runner.executors import InProcess

GAMES = {
    "substitute": {},
    "add-remove": {"adjacency": "add-remove"},
    "z0": {"base": "resampled", "pairs": "fresh", "sees": "z0"},
}


def played(folder, *, watch=None, **values):
    return eg.run(eg.Plan(name="path", **values), out=folder, executor=InProcess(), watch=watch)


@pytest.mark.parametrize("game", GAMES)
def test_an_overfit_network_is_found_out_the_right_way_round(tmp_path, game):
    """TPR > FPR by far, and nothing is folded: 30 digits learnt by heart."""
    run = played(
        tmp_path / "run",
        n_models=16,
        data="digits",
        trainer={"use": "sgd", "model": "mlp", "epochs": 40, "batch_size": 15, "learning_rate": 0.5},
        game={"train_size": 30, "pairs_per_model": 6, "reference_size": 99, **GAMES[game]},
        audit={"rule": "same-data"},
    )
    for attack in ("percentile", "loss") + (("difference",) if game == "substitute" else ()):
        tally = eg.audit(run, attack=attack).judged.tally
        assert float(tally.fnr + tally.fpr) < 0.8, attack


def test_a_dataset_gives_the_signals_of_its_arrays(tmp_path, monkeypatch):
    """Arrays and a map-style dataset of the same points, under DP-SGD, with and without a point."""
    (tmp_path / "as_dataset.py").write_text(
        "import torch\nfrom epsgauge.data.digits import digits\n"
        "def data():\n"
        "    return torch.utils.data.TensorDataset(*map(torch.from_numpy, digits()))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    common = {
        "n_models": 3,
        "trainer": {"use": "dpsgd", "model": "logistic", "epochs": 1, "batch_size": 20, "noise_multiplier": 1.0},
        "game": {"train_size": 60, "reference_size": 20, "challenge": "average", "adjacency": "add-remove"},
        "audit": {"attack": "loss", "fit_models": 1},
    }
    runs = [
        played(tmp_path / "arrays", data="digits", **common),
        played(tmp_path / "dataset", data="as_dataset:data", **common),
    ]
    first, second = (run.signals() for run in runs)
    assert first["reference"].tobytes() == second["reference"].tobytes()
    assert first["loss"].tobytes() == second["loss"].tobytes()
    assert np.isnan(first["loss"][..., 0]).all()
    assert all(run.privacy == eg.DPSGD(sample_rate=20 / 60, noise_multiplier=1.0, steps=3) for run in runs)
    assert len(digits()[0]) == 1797


def test_a_large_reference_set_is_kept_as_a_sketch(tmp_path):
    run = played(
        tmp_path / "run",
        n_models=4,
        data={"use": "zeros", "size": 3000},
        trainer={"use": "laplace", "eps": 1.0},
        game={"train_size": 10, "reference_size": 2500, "challenge": "average"},
        audit={"fit_models": 1},
    )
    assert run.signals()["reference"].shape == (4, 1000)


PLAN = {
    "n_models": 120,
    "data": {"use": "zeros", "size": 50},
    "trainer": {"use": "laplace", "eps": 2.0},
    "game": {"train_size": 20, "reference_size": 10, "challenge": "explicit", "canaries": "zeros"},
    "audit": {"attack": "difference", "fit_models": 20},
}


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("blind", [True, False])
def test_the_bar_shows_the_posterior_so_far_and_logs_every_look(tmp_path, monkeypatch, terminal, blind):
    for name in ("SECONDS_BETWEEN_LOOKS", "SECONDS_BETWEEN_LINES"):
        monkeypatch.setattr(progress, name, 0.0)
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=110, highlight=False)
    plan = eg.Plan(name="path", **PLAN)
    with Bar(plan, console, blind=blind) as bar:
        run = eg.run(plan, out=tmp_path / "run", executor=InProcess(), watch=bar)
        bar.progress.refresh()
    shown = out.getvalue()
    assert "120/120" in shown
    assert ("ε " in shown) == (not blind)
    if not terminal:  # a bar is drawn when its time has come, a line after each model
        assert ("choosing the rule" in shown) == (not blind)
    kinds = [look["kind"] for look in run.looks]
    assert (len(kinds) > 5 and set(kinds) == {"live"}) if not blind else kinds == []
    final = eg.audit(run)
    assert final.level_kept  # it went on to the number that was planned
    if not blind:
        ends = final.posterior.interval(0.9)
        assert f"ε {final.posterior.median():.2f} [{ends.low:.2f}, {ends.high:.2f}]" in shown


def test_a_run_that_goes_on_says_so_and_counts_what_it_had(tmp_path):
    plan = eg.Plan(name="path", **PLAN)

    class Stops(Bar):
        def finished_one(self, outcome, progress):
            super().finished_one(outcome, progress)
            if progress.n_done == 50:
                raise KeyboardInterrupt

    out = io.StringIO()
    console = Console(file=out, width=110)
    with Stops(plan, console) as bar:
        with pytest.raises(KeyboardInterrupt):
            eg.run(plan, out=tmp_path / "run", executor=InProcess(), watch=bar)
        bar.stopped(tmp_path / "run")
    with Bar(plan, console) as bar:
        run = eg.run(plan, out=tmp_path / "run", executor=InProcess(), watch=bar)
    assert "run the same command to continue" in " ".join(out.getvalue().split())
    assert "resuming after 50 of 120 models" in out.getvalue()
    assert bar.live.posterior().tally == eg.audit(run).judged.tally


def test_torch_is_not_needed_to_audit(tmp_path):
    """Whoever reads a run directory needs none of the libraries that made it."""
    run = played(tmp_path / "run", **PLAN)
    import subprocess

    block = "; ".join(f"sys.modules[{name!r}] = None" for name in ("torch", "opacus", "sklearn", "dp_accounting"))
    code = f"import sys; {block}; import epsgauge as eg; print(repr(eg.audit(eg.Run.open({str(run.path)!r}))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert done.stdout.startswith("<Audit of path: "), done.stderr


def test_a_given_percentile_means_the_same_to_who_sees_z0(tmp_path):
    """Guess 0 iff z0's loss is strictly below the percentile; the verdict names that percentile."""
    run = played(
        tmp_path / "run",
        n_models=40,
        data="digits",
        trainer={"use": "sgd", "model": "logistic", "epochs": 3, "batch_size": 15},
        game={"train_size": 30, "reference_size": 49, **GAMES["z0"]},
        audit={"rule": "given", "percentile": 20.0},
    )
    found, signals = eg.audit(run), run.signals()
    below = signals["loss"][:, 0, 0] < signals["reference"][:, 9]  # the tenth smallest of 49
    assert found.judged.tally == eg.Tally.from_guesses(signals.bits[:, 0], (~below).astype(int))
    assert "percentile 20 fixed beforehand" in found.adversary.rule
    assert found.to_json()["rule"]["percentile"] == 20


def test_runs_with_one_seed_are_compared_on_models_that_had_no_say(tmp_path):
    """Equal seeds share bits and noise: the numbers that chose the rule are judged in no run."""
    runs = [played(tmp_path / str(k), **{**PLAN, "n_models": 60 + k}) for k in (0, 1)]
    found = eg.compare(runs)
    assert [set(r.audit.judged.judged.models) for r in found.runs] == [set(range(20, 60)), set(range(20, 61))]
    other = played(tmp_path / "z", **{**PLAN, "game": {"train_size": 20, "reference_size": 10, "challenge": "average"}})
    with pytest.raises(eg.InvalidInput, match="must have one challenge, but have explicit, average"):
        eg.compare([runs[0], other], rule="shared")


@pytest.mark.long
def test_the_canary_of_the_demo_is_found(tmp_path):
    """The demo's plan with less noise, so that few models suffice: a guaranteed bound above 0, and below the claim."""
    shipped = eg.Plan.read(Path(__file__).parent.parent / "examples" / "digits-canary.toml")
    less = {**shipped.trainer.identity(), "noise_multiplier": 1.5}
    plan = shipped.changed(trainer=less, n_models=140, audit={**shipped.audit.model_dump(), "fit_models": 40})
    found = eg.audit(eg.run(plan, out=tmp_path / "run", executor=InProcess()))
    assert found["clopper-pearson"].promise == "guaranteed"
    assert 0 < found.verdict.bound.value < found.claim.eps
    assert found.claim.source == "accountant"


def test_runs_that_are_compared_share_their_points_and_nothing_else(tmp_path):
    """One points_seed and different seeds: the same pool for every m, and independent models."""
    common = {
        "data": {"use": "zeros", "size": 200},
        "trainer": {"use": "laplace", "eps": 2.0},
        "audit": {"attack": "loss", "fit_models": 20},
    }
    of_all = {"train_size": 30, "challenge": "average", "pool_size": 40, "reference_size": 10, "points_seed": 7}
    runs = [
        played(
            tmp_path / str(m),
            seed=m,
            n_models=n,
            game={**of_all, "pairs_per_model": m},
            **common,
        )
        for m, n in ((1, 60), (6, 21))
    ]
    pools = [set(run.signals().pairs.ravel()) for run in runs]
    assert pools[0] <= pools[1]
    assert len(pools[1]) == 40
    found = eg.compare(runs)
    assert [r.audit.judged.n_models for r in found.runs] == [40, 21]
    same = played(
        tmp_path / "same",
        seed=1,
        n_models=15,
        game={"train_size": 30, "pairs_per_model": 6, "pool_size": 40, "reference_size": 10},
        **{**common, "audit": {"attack": "loss", "fit_models": 5}},
    )
    with pytest.raises(eg.InvalidInput, match="has no model that is independent of the 20 used to pick the threshold"):
        eg.compare([runs[0], same], rule="shared")

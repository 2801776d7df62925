"""The package as others see it: its public names, what it imports, what it does not."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import epsgauge as eg

PUBLIC = [
    "Attack",
    "Audit",
    "Coins",
    "DPSGD",
    "Dask",
    "EpsgaugeError",
    "Given",
    "Interval",
    "Intrinsic",
    "InvalidInput",
    "KnownPrivacy",
    "MechanismGame",
    "Method",
    "MissingExtra",
    "Plan",
    "Posterior",
    "Probe",
    "Ray",
    "Run",
    "SameData",
    "Scores",
    "Split",
    "SplitPairs",
    "Submitit",
    "Tally",
    "assert_private",
    "audit",
    "card",
    "cohorts",
    "coins",
    "compare",
    "declare",
    "estimate",
    "estimate_delta",
    "estimate_mu",
    "import_scores",
    "intervals",
    "intrinsic",
    "largest_eps",
    "merge",
    "probe",
    "read_coins",
    "report",
    "run",
    "sample_size",
    "verify",
    "watching",
]
# Callbacks, which are classes of a training library's own.
OF_A_LIBRARY = ("epsgauge.integrations.hugging_face", "epsgauge.integrations.lightning")
HEAVY = ["torch", "matplotlib", "ray", "dask", "distributed", "sklearn", "pandas", "opacus", "dp_accounting"]


def test_the_exact_list_of_public_names():
    assert sorted(eg.__all__) == PUBLIC
    assert dir(eg) == sorted([*PUBLIC, "__version__"])


def test_no_submodule_shadows_a_public_name():
    """Import everything, then use each name: a folder called `estimate` would have replaced the function."""
    for module in pkgutil.walk_packages(eg.__path__, "epsgauge."):
        importlib.import_module(module.name)
    for name in PUBLIC:
        assert callable(getattr(eg, name)), name
    tally = eg.Tally(tp=5, tn=6, fp=3, fn=4)
    assert eg.estimate(tally, delta=1e-5).median() > 0
    assert eg.estimate_delta(tally, eps=0.1).median() > 0
    assert eg.estimate_mu(tally).median() > 0
    assert len(list(eg.intervals(tally, delta=1e-5))) == 3
    assert eg.sample_size(accuracy=0.7, half_width=0.5, delta=1e-5) > 0
    assert eg.largest_eps(100, delta=1e-5) > 0
    scores = eg.Scores.from_in_out([2.0, 3.0, 4.0], [0.0, 1.0, 2.0], adjacency="substitute", models="independent")
    assert eg.audit(scores, delta=1e-5, rule="given", threshold=1.5).judged.tally == eg.Tally(tp=3, tn=2, fp=1, fn=0)


def test_unknown_names():
    with pytest.raises(AttributeError, match="has no attribute 'estimte'"):
        eg.estimte  # noqa: B018


def loaded_after(code):
    probe = f"import sys; {code}; print(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", probe], capture_output=True, encoding="utf-8", check=True).stdout.split()
    )


def test_importing_epsgauge_loads_nothing():
    loaded = loaded_after("import epsgauge")
    assert "numpy" not in loaded
    assert "scipy" not in loaded


def test_the_core_runs_without_heavy_libraries():
    code = "import epsgauge as eg; eg.estimate(eg.Tally(tp=5, tn=6, fp=3, fn=4), delta=0).interval(0.9)"
    assert not loaded_after(code) & {*HEAVY, "rich", "typer", "jinja2", "starlette", "uvicorn"}


def test_the_command_line_starts_without_numpy():
    assert "numpy" not in loaded_after("import epsgauge.cli.main")


def test_a_worker_starts_without_what_judges_its_models():
    assert not loaded_after("import epsgauge.runner.play") & {"scipy.special", "scipy.fft", "unittest.mock", "asyncio"}


def test_every_module_imports_where_heavy_libraries_are_missing():
    block = "; ".join(f"sys.modules[{name!r}] = None" for name in HEAVY)
    names = "[m.name for m in pkgutil.walk_packages(epsgauge.__path__, 'epsgauge.')]"
    walk = f"[importlib.import_module(name) for name in {names} if name not in {OF_A_LIBRARY!r}]"
    code = f"import sys; {block}; import epsgauge, pkgutil, importlib; {walk}"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


@pytest.mark.parametrize("module", OF_A_LIBRARY)
def test_what_belongs_to_a_library_says_that_it_is_missing(module):
    code = f"import sys; sys.modules['lightning'] = sys.modules['transformers'] = None; import {module}"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, encoding="utf-8")
    assert "MissingExtra: these callbacks need" in done.stderr
    assert "Install it with: pip install" in done.stderr

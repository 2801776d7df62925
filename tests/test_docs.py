"""The documentation leaves nothing public out, and its pipelines run; `make docs` builds it and checks the site."""

import dataclasses
import re
import shlex
import shutil
import sys
from contextlib import chdir
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from command_line import told
from tiny_runs import played

import epsgauge as eg
from epsgauge.auditing.gate import FAIL_ON
from epsgauge.auditing.verdict import Ruling
from epsgauge.cli.main import app
from epsgauge.games.adversary import AdversarySettings
from epsgauge.games.settings import GameSettings
from epsgauge.methods.method import Asked
from epsgauge.methods.table import METHODS, default_method
from epsgauge.runner.plan import ExecutionSettings, Plan
from epsgauge.settings import AuditSettings

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
TEMPLATE = ROOT / "src/epsgauge/cli/templates/opacus"


def test_what_counts_as_loaded(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    from check_site import loads

    assert loads('<script src="https://x.org/a.js"></script><img src="//x.org/i.png">') == [
        "https://x.org/a.js",
        "//x.org/i.png",
    ]
    assert loads("<style>@import 'https://x.org/a.css'; b { src: url(http://x.org/f.woff) }</style>")
    assert loads('<a href="https://x.org">x</a><img src="a.png"><link href="_static/a.css">') == []


def test_the_table_of_methods_says_what_the_code_says():
    table = (DOCS / "numbers.md").read_text(encoding="utf-8").split("<!-- methods -->")[1].split("<!-- end -->")[0]
    rows = re.findall(r"^\| (?:\[)?([^|\]]+?)(?:\]\(\S+\))? \| `([\w-]+)` \| \*\*(\w+)\*\* \|", table, re.MULTILINE)
    assert rows == [(method.label, method.name, method.promise) for method in METHODS.values()]


def test_links_of_the_readme_and_contributing():
    for name in ("README.md", "CONTRIBUTING.md"):
        links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / name).read_text(encoding="utf-8"))
        assert links
        assert [link for link in links if not (ROOT / link).exists()] == []


# The reference


def test_the_reference_has_every_public_name():
    named = re.findall(
        r"^\.\. auto\w+:: epsgauge\.(\w+)", (DOCS / "reference.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(named) == sorted(eg.__all__)


@pytest.mark.parametrize("kind", [eg.Audit, eg.Run])
def test_the_reference_has_every_field(kind):
    table = (
        (DOCS / "reference.md").read_text(encoding="utf-8").split(f"| field of `{kind.__name__}` |")[1].split("\n\n")[0]
    )
    named = {name for row in table.split("\n")[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == {field.name for field in dataclasses.fields(kind)}


@pytest.mark.parametrize(
    ("title", "keys"),
    [
        ("The plan itself", {*Plan.model_fields, "small"} - {"folder", "read_from"}),
        ("`[game]`", set(GameSettings.model_fields)),
        ("`[adversary]`", set(AdversarySettings.model_fields)),
        ("`[audit]`", set(AuditSettings.model_fields)),
        ("`[execution]`", set(ExecutionSettings.model_fields)),
    ],
)
def test_every_key_of_a_plan_is_explained(title, keys):
    section = (DOCS / "plan.md").read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    named = {key for row in re.findall(r"^\| (`.+?) \|", section, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)}
    assert named == keys


def test_every_command_is_in_the_table():
    named = re.findall(r"^\| `epsgauge (\w+)", (DOCS / "commands.md").read_text(encoding="utf-8"), re.MULTILINE)
    have = {c.name or c.callback.__name__ for c in app.registered_commands}
    have |= {group.name or group.typer_instance.info.name for group in app.registered_groups}
    assert set(named) == have


# The page on other systems

SYSTEMS = re.findall(
    r"^\| ([^|]+) \| [^|]+ \| [^|]+ \| `epsgauge ([^`]+)` \|$", (DOCS / "systems.md").read_text(encoding="utf-8"), re.M
)
PEERS = [
    "privacy-estimates",
    "jax_privacy",
    "PrivacyGuard",
    "LeakPro",
    "SACRO-ML",
    "opake-auditing",
    "TF-Privacy",
    "DP-Auditorium",
    "DP-Sniper",
    "Delta-Siege",
    "StatDP",
    "Opacus",
    "dp-recorder",
    "dpsgd-auditbench",
    "mia_conversion_satml",
    "bb-audit-dpsgd",
    "pategan-audit",
    "dpmm",
]


def test_every_system_has_a_row_and_every_row_a_command():
    page = (DOCS / "systems.md").read_text(encoding="utf-8")
    assert len(SYSTEMS) == len(re.findall(r"^\| (?!system|tool|-)", page, re.MULTILINE))
    named = " ".join(name for name, _ in SYSTEMS)
    assert [peer for peer in PEERS if peer not in named] == []


@pytest.mark.parametrize("command", dict.fromkeys(command for _, command in SYSTEMS))
def test_commands_of_other_systems_run(command):
    with chdir(ROOT):
        done = told(*shlex.split(command))
    assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr


# The page on Opacus


def blocks(page, language):
    return re.findall(
        rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def test_the_first_pipeline_is_that_of_init():
    template = (TEMPLATE / "mypipeline.py").read_text(encoding="utf-8")
    assert template.split('"""\n\n')[1] == blocks("opacus.md", "py")[0]


def test_the_pipeline_with_a_canary_runs(tmp_path, monkeypatch):
    """As the page has it, with fewer models."""
    shutil.copy(TEMPLATE / "train.py", tmp_path)
    _, canary = blocks("opacus.md", "py")
    (tmp_path / "mypipeline.py").write_text((TEMPLATE / "mypipeline.py").read_text(encoding="utf-8") + canary)
    head = (
        (TEMPLATE / "plan.toml")
        .read_text(encoding="utf-8")
        .split("[game]")[0]
        .replace("n_models = 1000", "n_models = 4")
    )
    (tmp_path / "plan.toml").write_text(head + blocks("opacus.md", "toml")[1])
    for name in ("mypipeline", "train"):  # of another test's folder
        monkeypatch.delitem(sys.modules, name, raising=False)
    run = played(Plan.read(tmp_path / "plan.toml"), tmp_path / "run")
    assert run.n_done == 4
    audit = eg.audit(run, rule="given", threshold=0.5)
    assert audit.claim.eps == pytest.approx(2.745, abs=0.001)


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["docs/start.md", "docs/verdict.md"])
def test_pages_list_every_verdict(page):
    kinds = [kind for kind in get_args(Ruling) if " by " not in kind]
    assert [kind for kind in kinds if not re.search(rf"\*\*{kind}( by this adversary)?\*\*", text_of(page))] == []


@pytest.mark.parametrize(
    "page", ["CHANGELOG.md", "README.md", *(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/*.md"))]
)
def test_gates_fail_on_words_that_there_are(page):
    named = re.findall(r"--fail-on ([a-z]+(?:,[a-z]+)*)", text_of(page))
    assert {word for each in named for word in each.split(",")} <= set(FAIL_ON)


def test_the_first_interval_is_the_printed_one():
    start = text_of("docs/start.md")
    low, high = re.search(r"lies between ([\d.]+) and ([\d.]+) with", start).groups()
    assert f"[{low}, {high}]" in start


def test_every_method_that_judges_runs_is_named_where_models_are_counted():
    asked = (
        Asked("split", 1, by_mu=False),
        Asked("split", 1, by_mu=False, of_dpsgd=True),
    )
    judges = {default_method(each).name for each in asked}
    assert judges >= {"weighted", "curve"}
    assert [name for name in judges if f"*{name}*" not in text_of("docs/how-many.md")] == []


def test_what_stays_guaranteed_on_the_same_data_is_what_help_and_page_say():
    rng = np.random.default_rng(0)
    for bits, guaranteed in (("coins", {"weighted", "simultaneous"}), ("unknown", {"simultaneous"})):
        bit = rng.integers(0, 2, 400)
        scores = eg.Scores(np.arange(400), np.zeros(400, int), bit, rng.normal(bit, 1), "substitute", bits=bits)
        rows = eg.audit(scores, rule="same-data", delta=1e-5).rows
        assert {row.method for row in rows if row.promise == "guaranteed"} == guaranteed
    (row,) = [line for line in text_of("docs/verdict.md").splitlines() if line.startswith("| `same-data`")]
    assert "that of `simultaneous` and, if bits are coins, those of `weighted`, `curve` and `gaussian`" in row
    assert "Only the simultaneous" not in told("audit", "--help").stdout


def test_the_page_on_scores_names_the_judge_of_one_model():
    shown = text_of("docs/scores.md").split("## All guesses are about one model")[1].split("## ")[0]
    judge = re.search(r"\n\('([a-z-]+)', 'guaranteed'", shown)[1]
    assert f"*{judge}*" in shown.split("```")[0]
    for bits in ("dealt", "unknown"):
        (row,) = [line for line in text_of("docs/scores.md").splitlines() if line.startswith(f"| `{bits}`")]
        assert "except *weighted*, *pooled* and *one-run*" in row

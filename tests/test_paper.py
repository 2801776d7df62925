"""The paper's tables and examples: recomputed against reference values, and marked where the paper differs."""

from __future__ import annotations

import io
import json
import math
import pkgutil
import re
import sys
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from epsgauge.cli import reproduce
from epsgauge.cli.main import main
from epsgauge.methods.table import QUICK
from epsgauge.paper import convergence, figures, notes, printed
from epsgauge.paper.compare import NOTHING, Compared, rounds_to, value_of
from epsgauge.paper.examples import Example
from epsgauge.paper.record import record
from epsgauge.paper.reproduction import Reproduction, reproduction
from epsgauge.paper.terminal import show

# Computed once with ball arithmetic (Arb, 140 bits) and rounded to double precision; some examples have fewer digits.
REFERENCE = json.loads((Path(__file__).parent / "reference" / "paper.json").read_text(encoding="utf-8"))
ROWS = REFERENCE["tables"]["rows"]
EXAMPLES = {example["name"]: example for example in REFERENCE["examples"]}
REFERENCE_NAMES = {"bayes": "bayes", "jeffreys": "jeffreys", "clopper-pearson": "cp"}


@pytest.fixture(scope="module")
def found() -> Reproduction:
    return reproduction()


def near(value: float, reference: float | str) -> bool:
    """To 1e-9, or to half of the last digit if the reference has few."""
    wanted = float(reference)
    if math.isinf(wanted):
        return value == wanted
    digits = len(repr(reference).partition(".")[2])
    return abs(value - wanted) <= max(1e-9, 0.5 * 10.0**-digits if digits <= 6 else 0.0)


def items(found: Reproduction, name: str) -> dict[str, Compared]:
    example: Example = next(e for e in found.examples if e.name == name)
    return {item.label: item.compared for item in example.items}


# Tables


@pytest.mark.parametrize("reference", ROWS, ids=[f"{r['table']}-{r['m']}" for r in ROWS])
def test_every_row_is_that_of_the_reference(found: Reproduction, reference: dict[str, Any]) -> None:
    table = next(t for t in found.tables if t.name == reference["table"])
    row = next(r for r in table.rows if r.m == reference["m"])
    assert [int(getattr(row.tally, c)) for c in ("tp", "tn", "fp", "fn")] == [
        reference[c] for c in ("tp", "tn", "fp", "fn")
    ]
    assert int(row.tally.n_samples) == reference["N"]
    for method, name in REFERENCE_NAMES.items():
        cells = row.methods[method]
        low, high = reference["recomputed"][name]
        assert near(cells.low.recomputed, low)
        assert near(cells.high.recomputed, high)
        assert [value_of(c.printed or "") for c in (cells.low, cells.high)] == [
            float(p) for p in reference["paper"][name]
        ]


def test_the_settings_are_those_of_the_reference() -> None:
    assert REFERENCE["tables"]["delta"] == printed.DELTA
    assert 1 - REFERENCE["tables"]["alpha"] == pytest.approx(printed.LEVEL)
    assert len(ROWS) == sum(len(t.rows) for t in printed.TABLES) == 24


def test_widths_and_percentages_follow_from_the_reference(found: Reproduction) -> None:
    for reference in ROWS:
        table = next(t for t in found.tables if t.name == reference["table"])
        row = next(r for r in table.rows if r.m == reference["m"])
        ends = {m: [float(e) for e in reference["recomputed"][name]] for m, name in REFERENCE_NAMES.items()}
        width = {m: high - low for m, (low, high) in ends.items()}
        for method, cells in row.methods.items():
            assert near(cells.width.recomputed, width[method])
            if cells.vs_cp is None:
                assert method == "clopper-pearson"
            elif math.isinf(width["clopper-pearson"]):
                assert math.isnan(cells.vs_cp.recomputed)
            else:
                assert cells.vs_cp.recomputed == pytest.approx(
                    100 * (width[method] / width["clopper-pearson"] - 1), abs=1e-6
                )


def test_the_summary_repeats_the_rows_with_m_1() -> None:
    firsts = {(r.tp, r.tn, r.fp, r.fn): r for t in printed.TABLES for r in t.rows if r.m == 1}
    assert len(firsts) == len(printed.SUMMARY.rows) == len(printed.SUMMARY_LABELS)
    for row in printed.SUMMARY.rows:
        twin = firsts[row.tp, row.tn, row.fp, row.fn]
        for name, method in row.methods.items():
            assert method.vs_cp == twin.methods[name].vs_cp
            assert method.width == twin.methods[name].width
            # the summary prints 0.005 where Table 8 prints 0.0054
            assert rounds_to(value_of(twin.methods[name].low), method.low)


def test_printed_widths_are_differences_of_printed_ends_but_for_two_slips() -> None:
    slips = [
        (table.name, row.m, name)
        for table in (*printed.TABLES, printed.SUMMARY)
        for row in table.rows
        for name, method in row.methods.items()
        if not rounds_to(value_of(method.high) - value_of(method.low), method.width)
    ]
    assert slips == [("cifar-avg-nodp", 10, "clopper-pearson"), ("cifar-avg-dp10", 1000, "jeffreys")]


# Marks


def rounded_agrees(cell: Compared) -> bool:
    """The slow, obvious twin of `Compared.agrees`: round in decimal and compare the digits."""
    if cell.printed == NOTHING:
        return math.isnan(cell.recomputed)
    if cell.printed == "inf" or math.isinf(cell.recomputed):
        return cell.printed == "inf" and math.isinf(cell.recomputed)
    assert cell.printed is not None
    return Decimal(cell.recomputed).quantize(Decimal(cell.printed), ROUND_HALF_UP) == Decimal(cell.printed)


def test_a_difference_is_marked_exactly_where_the_digits_differ(found: Reproduction) -> None:
    cells = [cell for table in (found.summary, *found.tables) for cell in table.cells()]
    assert len(cells) == 66 + 264
    for cell in cells:
        assert cell.agrees == rounded_agrees(cell), cell
        assert (cell.note is not None) == cell.differs, cell
    assert sum(cell.differs for table in found.tables for cell in table.cells()) == 62
    assert sum(cell.differs for cell in found.summary.cells()) == 12


def test_every_mark_is_explained_and_every_explanation_is_used(found: Reproduction) -> None:
    for cell in found.cells():
        assert (cell.note is not None) == cell.differs
    assert set(found.notes) == set(notes.NOTES)
    assert list(found.numbers.values()) == list(range(1, len(notes.NOTES) + 1))
    for text in notes.NOTES.values():
        assert text.endswith(".")
        assert len(text) < 240


def test_the_known_errata_are_marked(found: Reproduction) -> None:
    marked = {
        (table.name, row.m, method, field): cell
        for table in found.tables
        for row in table.rows
        for method, cells in row.methods.items()
        for field, cell in (("low", cells.low), ("high", cells.high), ("width", cells.width), ("vs_cp", cells.vs_cp))
        if cell is not None and cell.differs
    }
    ends = {key: cell.note for key, cell in marked.items() if key[3] in ("low", "high")}
    assert ends == {
        ("sst2-nodp", 1, "bayes", "low"): "integration",
        ("sst2-nodp", 1, "jeffreys", "low"): "up",
        ("sst2-nodp", 10, "bayes", "low"): "integration",
        ("sst2-nodp", 100, "bayes", "low"): "integration",
        ("sst2-nodp", 1000, "bayes", "low"): "integration",
        ("sst2-dp4", 10, "bayes", "low"): "corner",
        ("cifar-avg-nodp", 100, "jeffreys", "low"): "up",
        ("cifar-avg-nodp", 1000, "jeffreys", "low"): "up",
        ("cifar-worst-nodp", 100, "bayes", "low"): "integration",
        ("cifar-worst-dp10", 1, "bayes", "low"): "corner",
        ("cifar-worst-dp10", 10, "bayes", "low"): "corner",
        ("cifar-worst-dp10", 10, "bayes", "high"): "corner",
        ("cifar-worst-dp10", 100, "bayes", "low"): "corner",
        ("cifar-worst-dp10", 100, "bayes", "high"): "corner",
        ("cifar-avg-dp10", 10, "bayes", "low"): "integration",
    }
    slips = {key for key, cell in marked.items() if cell.note == "slip"}
    assert slips == {
        ("cifar-avg-nodp", 10, "clopper-pearson", "width"),
        ("cifar-avg-nodp", 10, "bayes", "vs_cp"),
        ("cifar-avg-nodp", 10, "jeffreys", "vs_cp"),
        ("cifar-avg-dp10", 1000, "jeffreys", "width"),
    }


@pytest.mark.parametrize(
    ("text", "number", "agrees"),
    [
        ("0.90", 0.8951, True),
        ("0.90", 0.892, False),
        ("0.9", 0.892, True),
        ("-40", -40.49, True),
        ("-40", -41.8, False),
        ("inf", math.inf, True),
        ("inf", 7.0, False),
        ("5.9", math.inf, False),
        (NOTHING, math.nan, True),
        (NOTHING, 0.5, False),
    ],
)
def test_agreement_is_at_the_printed_digits(text: str, number: float, agrees: bool) -> None:
    assert Compared(text, number).agrees is agrees


def test_a_number_near_a_tie_is_shown_with_enough_digits() -> None:
    assert Compared("0.62", 0.62503).recomputed_text == "0.62503"
    assert Compared("2.9", 2.94976).recomputed_text == "2.9498"
    assert Compared("1.08", 1.0859).recomputed_text == "1.086"


# Examples


def test_the_worked_example_is_that_of_the_reference(found: Reproduction) -> None:
    got = items(found, "worked-example")
    for label, name in (
        ("Bayesian 95 %", "worked example Bayesian"),
        ("Clopper-Pearson 95 %", 'worked example "Jeffreys"'),
    ):
        low, high = EXAMPLES[name]["recomputed"]
        assert near(got[f"{label}, ε−"].recomputed, low)
        assert near(got[f"{label}, ε+"].recomputed, high)
    low, high = EXAMPLES['worked example "Jeffreys"']["true_jeffreys_same_params"]
    assert near(got["Jeffreys 95 %, ε−"].recomputed, low)
    assert near(got["Jeffreys 95 %, ε+"].recomputed, high)
    rectangle, between = EXAMPLES["coverage of rectangle / region (worked example)"]["recomputed"]
    assert got["mass in the rectangle of rates, %"].recomputed / 100 == pytest.approx(rectangle, abs=1e-9)
    assert got["mass between its two regions, %"].recomputed / 100 == pytest.approx(between, abs=1e-9)
    assert got["mass between the Bayesian regions, %"].recomputed == pytest.approx(95, abs=1e-7)
    assert got["Bayesian 90 %, as the paper says, ε−"].note == "label-bayes"
    assert got["Jeffreys 90 %, as the paper says, ε+"].note == "label-jeffreys"


def test_the_perfect_attack_is_that_of_the_reference(found: Reproduction) -> None:
    got, wanted = items(found, "perfect-attack"), EXAMPLES["100% accuracy, 2000 trials (1000 per class)"]["recomputed"]
    assert near(got["Clopper-Pearson, two-sided"].recomputed, wanted["cp_two_sided"])
    assert near(got["Clopper-Pearson, one-sided"].recomputed, wanted["cp_one_sided"])
    assert near(got["Jeffreys, one-sided"].recomputed, wanted["jeffreys_one_sided"])
    assert near(got["Bayesian, lower end of the credible interval"].recomputed, wanted["bayes_lower_95"])
    assert all(cell.agrees for cell in got.values())


def test_the_corner_case_is_that_of_the_reference(found: Reproduction) -> None:
    got, (value, term) = items(found, "corner-case"), EXAMPLES["CP corner case"]["recomputed"]
    assert near(got["Eq. 1 at (FNR+, FPR+)"].recomputed, value)
    assert near(got["its finite term at (FNR+, 0)"].recomputed, term)
    minimum = got["its minimum over the rectangle"]
    assert near(minimum.recomputed, value)
    assert minimum.note == "minimum"


def test_the_numbers_of_samples_are_those_of_the_reference(found: Reproduction) -> None:
    got = items(found, "sample-sizes")
    wanted = EXAMPLES["Fig interval size, balanced acc .6, +-0.15, alpha .1"]["recomputed"]
    assert {name: got[QUICK[name].label].recomputed for name in QUICK} == {
        name: wanted[REFERENCE_NAMES[name]] for name in QUICK
    }


def test_the_first_panel_of_convergence_is_that_of_the_reference(found: Reproduction) -> None:
    low, high = EXAMPLES["convergence (a), 4 trials"]["recomputed"]
    ours = [item.compared for item in next(e for e in found.examples if e.name == "convergence").items[:2]]
    assert near(ours[0].recomputed, low)
    assert near(ours[1].recomputed, high)


def test_the_other_examples(found: Reproduction) -> None:
    assert [round(c.recomputed, 1) for c in items(found, "narrower").values()] == [35.0, 41.8]
    assert [c.recomputed for c in items(found, "numbers-of-samples").values()] == [2000, 7777]
    assert items(found, "advantage-bound")["largest distance"].recomputed < 1e-12
    # by 4·10⁶ draws of both rates: 0.8979 and 0.3938, each to 1e-4
    assert [c.recomputed for c in items(found, "density-formula").values()] == pytest.approx([0.8979, 0.3938], abs=2e-4)
    errors = items(found, "heuristic-errors")
    assert [label for label, c in errors.items() if c.differs] == [
        "CIFAR-10 average, ε = 10, m = 100",
        "CIFAR-10 average, ε = 10, m = 1000",
    ]


def test_the_tallies_found_for_convergence_fit_what_is_printed() -> None:
    assert [[float(e) for e in pair] for pair in convergence.PRINTED[1:]] == EXAMPLES["convergence (b,c,d)"]["paper"]
    for tally, interval in zip(convergence.FOUND, convergence.PRINTED, strict=True):
        assert convergence.fits(tally, interval).all()
    cells = [[int(getattr(t, c)) for t in convergence.FOUND] for c in ("tp", "tn", "fp", "fn")]
    assert all(sorted(counts) == counts for counts in cells)  # one growing experiment could have given them


def test_the_search_finds_them() -> None:
    assert convergence.search(10, convergence.PRINTED[1]) == []
    assert convergence.search(20, convergence.PRINTED[1])[0] == convergence.FOUND[1]


# What is printed


def test_the_json_is_the_documented_structure(
    found: Reproduction, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("epsgauge.paper.reproduction.reproduction", lambda: found)
    run("reproduce", "tables", "--json")
    out = capsys.readouterr().out
    got = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert got == json.loads(json.dumps(record(found)))
    assert list(got) == ["delta", "level", "printed", "differing", "summary", "tables", "examples", "notes"]
    assert [t["name"] for t in got["tables"]] == [t.name for t in printed.TABLES]
    cells = []
    for table in (got["summary"], *got["tables"]):
        assert list(table) == ["name", "number", "title", "rows"]
        for row in table["rows"]:
            assert list(row) == ["label", "m", "tally", "n_samples", "methods"]
            assert list(row["methods"]) == ["bayes", "jeffreys", "clopper-pearson"]
            for name, method in row["methods"].items():
                assert list(method) == ["low", "high", "width", "vs_clopper_pearson_percent"]
                assert (method["vs_clopper_pearson_percent"] is None) == (name == "clopper-pearson")
                cells += [cell for cell in method.values() if cell is not None]
    cells += [item for example in got["examples"] for item in example["items"]]
    for cell in cells:
        assert {"printed", "recomputed", "agrees", "note"} <= set(cell)
        assert cell["agrees"] == (cell["note"] is None)
        assert cell["note"] is None or cell["note"] in got["notes"]
    assert sum(not cell["agrees"] for cell in cells) == got["differing"] == 88
    trivial = got["tables"][1]["rows"][0]["methods"]["clopper-pearson"]["high"]
    assert trivial == {"printed": "inf", "recomputed": "inf", "agrees": True, "note": None}
    nothing = got["tables"][1]["rows"][0]["methods"]["bayes"]["vs_clopper_pearson_percent"]
    assert nothing == {"printed": None, "recomputed": None, "agrees": True, "note": None}


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_terminal_shows_every_difference_and_fits(found: Reproduction, width: int) -> None:
    console = Console(width=width, record=True, file=io.StringIO())
    show(found, console)
    text = console.export_text()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    body, legend = text.split("Notes  why a number differs")
    assert body.count(" ≠ ") - 1 == sum(cell.differs for cell in found.cells())  # the first line explains the sign
    for number, sentence in enumerate(found.notes.values(), start=1):
        assert f"{number} " in legend
        assert " ".join(sentence.split()) in " ".join(legend.split())
    assert "62 differ" in text


def test_an_unknown_figure_lists_the_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        run("reproduce", "figures", "-o", str(tmp_path), "--only", "histogram")
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert "'histogram'" in error
    assert all(name in error for name in figures.NAMES)


@pytest.mark.parametrize("name", ["a-file", "a-file/below"])
def test_out_must_be_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / "a-file").write_text("mine")
    with pytest.raises(SystemExit) as stop:
        run("reproduce", "figures", "-o", str(tmp_path / name), "--only", "region")
    assert stop.value.code == 2
    assert "--out must be a folder" in capsys.readouterr().err
    assert (tmp_path / "a-file").read_text(encoding="utf-8") == "mine"


def test_the_help_names_the_figures() -> None:
    assert reproduce.NAMES.replace(" or ", ", ").split(", ") == list(figures.NAMES)


def run(*arguments: str) -> None:
    """The command in this process; good ends are not errors."""
    before, sys.argv = sys.argv, ["epsgauge", *arguments]
    try:
        main()
    except SystemExit as stop:
        if stop.code not in (0, None):
            raise
    finally:
        sys.argv = before


def test_the_page_about_the_paper_names_what_exists() -> None:
    page = (Path(__file__).parent.parent / "docs" / "paper.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`((?:stats|figures|paper)\.[\w.]+)`", page))
    assert len(names) >= 20
    for name in names:
        assert pkgutil.resolve_name(f"epsgauge.{name}") is not None
    for figure in figures.NAMES:
        assert f"`{figure}`" in page
    for table in (*printed.TABLES, printed.SUMMARY):
        assert f"`{table.name}`" in page

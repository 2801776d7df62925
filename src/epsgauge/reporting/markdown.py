"""A report as Markdown, for a pull request or an issue: the answer, the tables, what was run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from epsgauge.auditing.decision import Step
from epsgauge.numbers import duration, short
from epsgauge.plain import SENTENCE, plain, quiet
from epsgauge.probing.result import UNSEEN
from epsgauge.reporting.page import Page
from epsgauge.reporting.toml import to_toml
from epsgauge.stats.tally import CELLS

# A blank of no width: after it what hosts turn into a mention, a number of an issue or a link is text.
APART = "&#8203;"


def markdown(page: Page) -> str:
    """Names that hold Markdown or HTML stay text."""
    parts = [f"# {line(page.title)}: {line(page.name)}", line(" · ".join(page.about))]
    parts.append(f"**{line(page.answer.sentence)}**")
    if page.decision is not None:
        parts += [line(page.decision.meaning), _steps(page.decision.steps)]
    parts.append(line(page.answer.rest))
    if page.numbers:
        parts.append(table(("", "", ""), [(n.label, n.value, n.note) for n in page.numbers]))
    if page.beside:
        parts.append(table(("Run", *page.columns), [(run.label, *run.cells) for run in page.beside]))
        parts.append(_list(f"{run.label}: {run.answer.sentence} {run.answer.rest}" for run in page.beside))
    if page.probe is not None:
        rows = [(f.name, f.shown, f.sentence) for f in page.probe.findings]
        parts += ["## Probe", line(page.probe.sentence), table(("Finding", "Result", "What was seen"), rows)]
        parts.append(line(UNSEEN))
    if page.methods is not None:
        parts += ["## Bounds and intervals", *_methods(page)]
    if page.tallies:
        parts += ["## Tally", _tallies(page)]
    if page.facts:
        parts += ["## Attack", _list(f"{label}: {text}" for label, text in page.facts)]
    if page.cohorts is not None:
        parts += ["## Groups", *(line(sentence) for sentence in page.cohorts.said)]
        parts.append(table(page.cohorts.columns, page.cohorts.rows))
    parts += ["## Warnings", _list(page.warnings) if page.warnings else "None."]
    parts += ["## What was run", _fenced("\n".join(page.ran["commands"]), "bash")]
    run = page.ran.get("run")
    runs = page.ran.get("runs", []) if run is None else [run]
    if "accountant" in page.ran:
        parts.append(_list([f"Claim judged: {page.claim}", *_promised(page.ran["accountant"])]))
    if page.settings is not None:
        parts.append(_fenced(to_toml(page.settings), "toml"))
    for each in runs:
        parts += [
            f"### {line(plain(each['plan']['name']))}",
            _list(_run(each)),
            _fenced(to_toml(each["plan"]), "toml"),
        ]
    made = page.ran["report"]
    parts.append(f"Written by epsgauge {made['epsgauge']} on {made['time']}.")
    return "\n\n".join(part for part in parts if part) + "\n"


def _steps(steps: Sequence[Step]) -> str:
    """Next steps, the most useful first."""
    said = (f"{line(s.text)} `{plain(s.command).replace('`', '')}`" if s.command else line(s.text) for s in steps)
    return "\n".join(f"{number}. {text}" for number, text in enumerate(said, 1))


def _methods(page: Page) -> list[str]:
    methods = page.methods
    if methods is None:
        return []
    rows = [(each.label, each.text, each.level, each.promise, each.assumes, each.note) for each in methods.lines]
    intervals = table(("Method", "ε", "Level", "Promise", "Assumes", "Note"), rows)
    return [intervals, _list(f"{word}: {text}" for word, text in (*methods.meanings, *methods.assumptions))]


def _tallies(page: Page) -> str:
    rows = [(c.title, *(str(int(getattr(c.tally, cell))) for cell in CELLS), c.fnr, c.fpr) for c in page.tallies]
    return table(("", "TP", "TN", "FP", "FN", "FNR", "FPR"), rows)


def _promised(accountant: dict[str, Any]) -> list[str]:
    lines = [f"Adjacency of the game: {accountant['adjacency_of_the_game']}"]
    if accountant["inputs"]:
        inputs = [f"{name} {value}" for name, value in accountant["inputs"].items() if name != "kind"]
        lines.append(f"{'Proven' if accountant['source'] == 'known' else 'Accountant’s inputs'}: {', '.join(inputs)}")
    for adjacency, eps in accountant["eps"].items():
        if eps is not None:
            lines.append(f"Promised ({adjacency}): ε = {short(eps)} at δ = {accountant['delta']:g}")
    return lines


def _run(run: dict[str, Any]) -> list[str]:
    models, by_bit, revision = run["models"], run["failed_pairs_by_bit"], run["revision"]
    each = "" if run["seconds_per_model"] is None else f"; {duration(run['seconds_per_model'])} per model (median)"
    versions = ", ".join(f"{name} {version}" for name, version in run["packages"].items())
    commit = "not known"
    if revision:
        commit = revision["commit"] + (" with changes that were not committed" if revision["dirty"] else "")
    seen = [f"{look['time']} {look['kind']} ({look['n_done']} done)" for look in run["looks"]]
    looks = "; ".join(seen) if len(seen) <= 3 else f"{len(seen)}, the first {seen[0]}, the last {seen[-1]}"
    return [
        f"Run directory: {run['path']}",
        f"Models: {models['planned']} planned, {models['done']} done, {models['failed']} failed{each}",
        f"Failed pairs: {by_bit['0']} with b = 0, {by_bit['1']} with b = 1",
        f"Seeds: {run['seed']} for the models, {run['points_seed']} for the points",
        f"Begun {run['begun']}" + (f", resumed {', '.join(map(str, run['resumed']))}" if run["resumed"] else ""),
        f"Revision: {commit}",
        f"Versions: Python {run['python']}, {versions}",
        f"Fingerprint: {run['fingerprint']}",
        *(each["sentence"] for each in run["declarations"]),
        f"Looks: {looks or 'none'}",
    ]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Names of columns, and rows of texts, which stay text."""
    lines = [head, ["---"] * len(head), *([line(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {line(item)}" for item in items)


def _fenced(text: str, language: str) -> str:
    """In a fence that is longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{quiet(text).rstrip()}\n{fence}"


def line(text: str) -> str:
    """One line of letters: no HTML, link, mention, emphasis, formula, cell of a table, nor heading or list."""
    safe = escape(" ".join(plain(text, SENTENCE).split()), quote=False)
    safe = re.sub(r"[\\`*_~|#$]", r"\\\g<0>", safe)
    safe = re.sub(r"\](?=[(\[:])", r"]\\", safe)  # a link, an image, or where one leads
    safe = re.sub(r"^([-+=]|\[(?=[ xX]\]))", r"\\\1", safe)
    safe = re.sub(r"^(\d+)([.)])(?= |$)", r"\1\\\2", safe)
    return re.sub(r"@(?=\w)|#(?=\d)|:(?=//)|\bwww(?=\.)|\bmailto:|\bxmpp:", rf"\g<0>{APART}", safe, flags=re.IGNORECASE)

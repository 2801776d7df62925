"""`epsgauge demo`: one training, right and with a bug, under adversaries of growing power."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.run import INCOMPLETE, Blind, Workers, watched
from epsgauge.cli.terminal import AsJson, console, print_json

INTRO = "An adversary guesses which of two records a model was trained on. The better it guesses, the larger ε must be."
# Pipelines, and for each the plans with what their adversary is called and does.
STORY = {
    "DP-SGD on handwritten digits": {
        "digits": ("average record", "Two digits, drawn at random. The adversary sees their losses."),
        "digits-canary": ("best canary", "It plants the record that leaks most, and sees its loss."),
        "digits-updates": ("every update", "It plants a gradient, and sees every noisy update."),
    },
    "The same with a bug: half the noise": {
        "digits-bug": (
            "average record",
            "The clipping norm was doubled, the noise was not. The weakest adversary.",
        ),
        "digits-bug-updates": ("every update", "The strongest adversary."),
    },
}
OUTRO = "A short bar does not mean that ε is small: the bug is there, whether the adversary sees it or not."


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the run directories.")] = Path(
        "runs"
    ),
    workers: Workers = None,
    blind: Blind = False,
    as_json: AsJson = False,
) -> None:
    """Train DP-SGD models on handwritten digits and attack them, from weak to strong. Run it again to resume."""
    from epsgauge.auditing.audit import audit
    from epsgauge.figures.ladder import ladder
    from epsgauge.reporting.demo import show_finding, show_step, write_page
    from epsgauge.reporting.ladder import show_ladder
    from epsgauge.runner.plan import Plan

    audits, failed, screen = {}, False, console(quiet=as_json)
    screen.print(INTRO)
    for title, adversaries in STORY.items():
        screen.print(f"\n{title}", style="bold")
        for name, (who, does) in adversaries.items():
            show_step(who, does, screen)
            with as_file(files("epsgauge.cli").joinpath("plans")) as folder:
                done = watched(Plan.read(folder / f"{name}.toml"), out / name, workers=workers, blind=blind)
            failed = failed or bool(done.n_failed)
            audits[name] = audit(done)
            show_finding(audits[name], screen)
    found = {title: {who: audits[name] for name, (who, _) in of.items()} for title, of in STORY.items()}
    page = write_page(found, out / "demo.html", intro=INTRO, outro=OUTRO)
    if as_json:
        print_json({name: each.to_json() for name, each in audits.items()})
    show_ladder(ladder(found), screen)
    screen.print(f"\n{OUTRO}\n")
    screen.out(f"the same as a page: {page}")
    screen.out(f"the whole verdict:  epsgauge audit {out / name}")
    screen.out("your own pipeline:  epsgauge init --opacus DIR")
    if failed:
        raise typer.Exit(INCOMPLETE)

"""`epsgauge probe`: what the accountant assumes of a script's or a plan's training, tested by short trainings."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from epsgauge.cli.run import Small
from epsgauge.cli.terminal import AsJson, console, print_json

REFUTED = 1
SCRIPT = "script"  # where the words of a script are kept


class WithScript(TyperCommand):
    """What follows a script on the command line is for the script, as after `python`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = next((i for i, word in enumerate(args) if word == "-m" or word.endswith((".py", ".ipynb"))), None)
        if first is not None:
            module = args[first] == "-m"
            ctx.meta[SCRIPT] = (module, args[first + module : first + module + 1], args[first + module + 1 :])
            args = [*args[:first], *(ctx.meta[SCRIPT][1] or ["module"])]
        return list(super().parse_args(ctx, args))


def probe(
    ctx: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A script (.py, .ipynb or -m MODULE) with its options, or a plan.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Also write JSON, for `report --probe`.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="CHECK", help="Make only this check, such as noise, or that of a code such as P101."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Make a few short trainings: for loops whose steps take seconds.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Seed of the trainings. [default: the plan's, or 0]")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(metavar="δ", help="Of a script. [default: what it asks its accountant for]")
    ] = None,
    adjacency: Annotated[
        str | None, typer.Option(metavar="KIND", help="Of a script: add-remove (the default) or substitute.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Of one training of a script. [default: 600]")
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Tensors with the records, if a script has no DataLoader: x,y.")
    ] = None,
    noise_multiplier: Annotated[
        float | None, typer.Option(metavar="σ", help="Of a script without an accountant of Opacus.")
    ] = None,
    sample_rate: Annotated[float | None, typer.Option(metavar="q", help="The same.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, metavar="N", help="The same. [default: those it makes]")] = None,
    claimed_eps: Annotated[float | None, typer.Option(metavar="ε", help="The ε that a script is to spend.")] = None,
    small: Small = False,
    as_json: AsJson = False,
) -> None:
    """Test noise, clipping, sampling and steps of a training script, which is not edited, or of a plan.

    Options for epsgauge come before the script: `epsgauge probe --quick train.py --epochs 3`. Exits with 1 if anything
    is not what the accountant assumes.
    """
    from epsgauge.errors import InvalidInput
    from epsgauge.probing.checks import named
    from epsgauge.probing.result import Probe
    from epsgauge.reporting.probe import Line, show

    if out is not None and not out.parent.is_dir():  # before the trainings, and not after
        raise InvalidInput(f"the folder of --out must exist, but got {str(out.parent)!r}. Make it first.")
    named(only or ())
    words = shlex.quote(target)

    def probed(line: Line) -> Probe:
        nonlocal words
        if SCRIPT in ctx.meta:
            from epsgauge.adjacency import checked
            from epsgauge.scripts.messages import Order
            from epsgauge.scripts.session import probe_script
            from epsgauge.stats import checks

            module, given, arguments = ctx.meta[SCRIPT]
            if not given:
                raise InvalidInput("-m must be followed by a module, but got nothing. Write -m package.train.")
            _none_of({"--small": small}, "a script")
            words = shlex.join([*(["-m"] if module else []), target, *arguments])
            order = Order(
                target,
                tuple(arguments),
                module,
                delta=None if delta is None else checks.one("delta", checks.delta(delta)),
                adjacency=checked(adjacency or "add-remove"),
                only=tuple(only or ()),
                quick=quick,
                seed=seed or 0,
                seconds=600.0 if timeout is None else checks.positive("timeout", timeout),
                data=data or "",
                noise_multiplier=noise_multiplier,
                sample_rate=sample_rate,
                steps=steps,
                claimed_eps=claimed_eps,
            )
            return probe_script(order, line)
        from epsgauge.runner.plan import Plan
        from epsgauge.runner.probed import probe_plan

        own = {"--delta": delta, "--adjacency": adjacency, "--timeout": timeout, "--data": data, "--steps": steps}
        own |= {"--noise-multiplier": noise_multiplier, "--sample-rate": sample_rate, "--claimed-eps": claimed_eps}
        _none_of(own, "a plan, which states it")
        plan = Plan.read(Path(target), small=small)
        return probe_plan(plan, only=only or (), quick=quick, seed=seed, progress=line)

    with Line(console(err=True)) as line:
        found = probed(line)
    if as_json:
        print_json(found.to_json())
    else:
        show(found, console(), words)
    if out is not None:
        found.save(out)
    if found.refuted:
        raise typer.Exit(REFUTED)


def _none_of(options: dict[str, Any], what: str) -> None:
    from epsgauge.errors import InvalidInput

    for name, value in options.items():
        if value:
            raise InvalidInput(f"{name} is not for {what}. Leave it out.")

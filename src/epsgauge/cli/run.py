"""`epsgauge run`: trains the models of a script or a plan; the same command resumes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from epsgauge.cli.script import order_of, with_options
from epsgauge.cli.terminal import AsJson, console, print_json, say
from epsgauge.errors import InvalidInput

if TYPE_CHECKING:
    from epsgauge.runner.crew import Cluster
    from epsgauge.runner.plan import Plan
    from epsgauge.runner.view import Run
    from epsgauge.scripts.messages import Order

Workers = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Number of worker processes. [default: one per core]")
]
Small = Annotated[bool, typer.Option("--small", help="Use the values of the plan's table [small].")]
Blind = Annotated[bool, typer.Option("--blind", help="Hide the posterior while the models train.")]

INCOMPLETE = 3


@with_options
def run(
    ctx: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A script (.py, .ipynb or -m MODULE) with its options, or a plan.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Run directory; created if missing.")],
    workers: Workers = None,
    small: Small = False,
    control: Annotated[
        bool, typer.Option("--control", help="Train without noise, to see whether the attack finds anything at all.")
    ] = False,
    probe: Annotated[
        bool, typer.Option("--probe", help="Begin with a probe, also in a short run, unless the plan forbids it.")
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Train failed models again.")] = False,
    accept_changed_code: Annotated[
        bool, typer.Option("--accept-changed-code", help="Continue even if your code has changed.")
    ] = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Go on even if the first models all fail the same way.")
    ] = False,
    blind: Blind = False,
    stop_when: Annotated[
        str | None,
        typer.Option(metavar="WHAT", help='Stop early: "violation", or for example "width<0.5".'),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Train on a Dask cluster, for example tcp://scheduler:8786."),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help='Train on a Ray cluster: "auto", or for example ray://head:10001.'),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            metavar="N or A:B",
            help="How many models of a script, 300 unless given. Of a plan: only models A to B − 1; `epsgauge merge` "
            "merges the parts.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train the models of a script, which is not edited, or of a plan. Run it again to resume.

    `epsgauge run train.py --epochs 3 --out runs/a`: --out and --models may follow the script; other options for
    epsgauge come before it.
    """
    from epsgauge.runner.hopeless import AllFail

    order = order_of(ctx, small=small)
    if order is None:
        from epsgauge.runner.plan import Plan

        plan = Plan.read(Path(target), small=small)
    else:
        plan, models = _plan_of(order, out, models), None
    if control:
        plan = plan.changed(control=True)
    if probe and plan.probe is None:
        plan = plan.changed(probe=True)
    try:
        done = watched(
            plan,
            out,
            workers=workers,
            blind=blind,
            retry_failed=retry_failed,
            accept_changed_code=accept_changed_code,
            keep_going=keep_going,
            stop_when=stop_when,
            executor=_cluster(dask, ray, workers),
            models=None if models is None else _models(models, plan),
        )
    except AllFail as error:
        say(f"error: {error}", err=True)
        raise typer.Exit(INCOMPLETE) from None
    status = done.status()
    if as_json:
        print_json(status)
    else:
        from epsgauge.reporting.status import show

        show(status, console())
        say(f"next: epsgauge audit {out}", err=True)
    if done.n_failed:
        raise typer.Exit(INCOMPLETE)


def _plan_of(order: Order, out: Path, models: str | None) -> Plan:
    """Read from a training of the script, or from the run that is resumed."""
    from epsgauge.reporting.probe import Line
    from epsgauge.runner.script_plan import resumed_plan, script_plan

    if models is not None and not (models.isascii() and models.isdigit() and int(models)):
        raise InvalidInput(f"--models must be a whole number above 0 for a script, but got {models!r}.")
    n_models = None if models is None else int(models)
    held = resumed_plan(order, out, n_models)
    if held is not None:
        return held
    with Line(console(err=True)) as line:
        return script_plan(order, folder=Path.cwd(), n_models=n_models, told=line)


def _models(text: str, plan: Plan) -> range:
    first, colon, end = text.partition(":")
    if not colon or any(number and not (number.isascii() and number.isdigit()) for number in (first, end)):
        raise InvalidInput(f"--models must be two whole numbers as 0:500, but got {text!r}.")
    found = range(int(first or 0), int(end or plan.n_models))
    if not found.start < found.stop <= plan.n_models:
        raise InvalidInput(f"--models must be within 0:{plan.n_models}, the models of the plan, but got {text!r}.")
    return found


def _cluster(dask: str | None, ray: str | None, workers: int | None) -> Cluster | None:
    """Where else than on this machine models are trained."""
    given = [name for name, value in (("--dask", dask), ("--ray", ray), ("--workers", workers)) if value is not None]
    if len(given) > 1:
        raise InvalidInput(
            f"only one of --dask, --ray and --workers can be given, but got {' and '.join(given)}. A cluster has its "
            "own workers."
        )
    if dask is not None:
        from epsgauge.runner.on_dask import Dask

        return Dask(dask)
    if ray is not None:
        from epsgauge.runner.on_ray import Ray

        return Ray(ray)
    return None


def watched(
    plan: Plan,
    out: Path,
    *,
    workers: int | None = None,
    blind: bool = False,
    retry_failed: bool = False,
    accept_changed_code: bool = False,
    keep_going: bool = False,
    stop_when: str | None = None,
    executor: Cluster | None = None,
    models: range | None = None,
) -> Run:
    """Run with a progress bar on standard error."""
    from epsgauge.auditing.stopping import StopWhen
    from epsgauge.reporting.progress import Bar
    from epsgauge.runner.progress import Enough
    from epsgauge.runner.run import run as run_plan
    from epsgauge.runner.view import Run

    stop = None if stop_when is None else StopWhen.parse(stop_when, plan)
    with Bar(plan, console(err=True), blind=blind, stop=stop) as bar:
        try:
            return run_plan(
                plan,
                out=out,
                workers=workers,
                executor=executor,
                models=models,
                retry_failed=retry_failed,
                accept_changed_code=accept_changed_code,
                keep_going=keep_going,
                watch=bar,
            )
        except Enough:
            bar.enough(out)
            return Run.open(out)
        except KeyboardInterrupt:
            bar.stopped(out)
            raise

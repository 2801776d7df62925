"""A script with its options on the command line, and what must be stated about one that does not use Opacus."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand

from epsgauge.errors import InvalidInput
from epsgauge.scripts.command import Command

if TYPE_CHECKING:
    from epsgauge.scripts.messages import Order

_SCRIPT = "script"  # where a command keeps it
OPTIONS = {
    "delta": (float, "δ", "Of a script. [default: what it asks its accountant for]"),
    "adjacency": (str, "KIND", "Of a script: add-remove (the default) or substitute."),
    "timeout": (float, "SECONDS", "Of one training of a script. [default: 600]"),
    "data": (str, "NAMES", "Tensors with the records, if a script has no DataLoader: x,y."),
    "noise_multiplier": (float, "σ", "Of a script without an accountant of Opacus."),
    "sample_rate": (float, "q", "The same."),
    "steps": (int, "N", "The same. [default: those it makes]"),
    "claimed_eps": (float, "ε", "The ε that a script is to spend."),
}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options above, which `order_of` reads from its context."""

    @functools.wraps(command)
    def given(ctx: typer.Context, **values: Any) -> None:
        ctx.obj = {name: values.pop(name) for name in OPTIONS}
        command(ctx=ctx, **values)

    signature = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[kind | None, typer.Option(metavar=metavar, help=text)],
        )
        for name, (kind, metavar, text) in OPTIONS.items()
    ]
    whole = [*signature.parameters.values(), *added]
    given.__signature__ = signature.replace(parameters=whole)  # type: ignore[attr-defined]
    given.__annotations__ = {parameter.name: parameter.annotation for parameter in whole}
    return given


class WithScript(TyperCommand):
    """What follows a script on the command line is for the script, as after `python`."""

    takes: ClassVar[tuple[tuple[str, ...], ...]] = ()  # options that are ours after it too, if they came not before

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = next((i for i, word in enumerate(args) if word == "-m" or word.endswith((".py", ".ipynb"))), None)
        if first is not None:
            module = args[first] == "-m"
            ours, target, rest = args[:first], args[first + module : first + module + 1], args[first + module + 1 :]
            for spellings in self.takes:
                if not any(word.split("=")[0] in spellings for word in ours):
                    taken, rest = _taken(rest, spellings)
                    ours = [*ours, *taken]
            ctx.meta[_SCRIPT] = Command("".join(target), tuple(rest), module)
            args = [*ours, *(target or ["module"])]
        return list(super().parse_args(ctx, args))


class WithOut(WithScript):
    """`epsgauge run train.py --epochs 3 --out runs/a`."""

    takes = (("--out", "-o"), ("--models",))


def _taken(words: list[str], spellings: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """An option with its value, and the other words."""
    for i, word in enumerate(words):
        name, equals, _ = word.partition("=")
        if name in spellings:
            end = i + (1 if equals else 2)
            return words[i:end], [*words[:i], *words[end:]]
    return [], words


def order_of(ctx: typer.Context, *, small: bool = False, **more: Any) -> Order | None:
    """What is asked of the script that the command line names; None if it names a plan."""
    from epsgauge.scripts.messages import Order

    command: Command | None = ctx.meta.get(_SCRIPT)
    given = {name: value for name, value in ctx.obj.items() if value is not None}
    if command is None:
        for name in given:
            raise InvalidInput(f"--{name.replace('_', '-')} is for a script: a plan states it. Leave it out.")
        return None
    if not command.target:
        raise InvalidInput("-m must be followed by a module, but got nothing. Write -m package.train.")
    if small:
        raise InvalidInput("--small is for a plan, but got a script. Leave it out.")
    return Order(command.target, command.arguments, command.module, **given, **more)

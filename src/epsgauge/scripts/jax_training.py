"""JAX in a script: it is ended with a sentence when it first asks for a gradient, as its training cannot be forked."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsgauge.errors import InvalidInput
from epsgauge.references import is_users
from epsgauge.trainers.after_import import AfterImport

if TYPE_CHECKING:
    from epsgauge.scripts.stage import Stage


def install(stage: Stage) -> None:
    AfterImport({"jax": functools.partial(_refuse, stage)}).start()


def _refuse(stage: Stage, jax: Any) -> None:
    """Gradients that the user's own code asks for, and not a library while it is imported."""
    for name in ("grad", "value_and_grad"):
        original = getattr(jax, name)

        @functools.wraps(original)
        def called(*args: Any, original: Any = original, **more: Any) -> Any:
            if is_users(Path(sys._getframe(1).f_code.co_filename)):
                raise InvalidInput(
                    f"{stage.name} trains with JAX, whose threads are lost when a process forks, so it cannot be "
                    "replayed as it is. Call its loop from train(data, *, seed, watch=None) of a plan, inside `with "
                    "eg.watching(watch, weights=params) as steps:`, with `params = steps(params)` at the end of each "
                    "step: docs/trainers.md, JAX."
                )
            return original(*args, **more)

        setattr(jax, name, called)

"""A training with torch: where its records enter, and in a child its seeds, its records and its steps."""

from __future__ import annotations

import functools
import gc
import math
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.probing.recorder import Enough, Recorder
from epsgauge.scripts.after_step import LOOKED, ByWeights, Moves
from epsgauge.scripts.following import Following
from epsgauge.trainers.watching import watching

if TYPE_CHECKING:
    from epsgauge.scripts.stage import Stage, Training


# The seed of what a script does not seed, if it is started again.
ELSEWHERE = 20


def install(stage: Stage) -> None:
    """Hold a script that does not use Opacus where it begins to iterate over its training set.

    Which loader that is, a child finds out, which goes on to the first step. With `--data`, it is held where it makes
    its optimiser.
    """
    if find_spec("torch") is None:
        return
    from torch.optim import Optimizer
    from torch.utils.data import DataLoader

    if stage.order.data:
        make = Optimizer.__init__

        @functools.wraps(make)
        def made(optimizer: Any, *args: Any, **more: Any) -> None:
            if not stage.held:
                named = Named(stage.order.data, stage.name)
                stage.hold(named.columns(), functools.partial(_with_named, stage, named))
            make(optimizer, *args, **more)

        Optimizer.__init__ = made  # type: ignore[method-assign, assignment]
        return
    begun, entry = list[Any](), list[int | None]()
    iterate = DataLoader.__iter__

    @functools.wraps(iterate)
    def iterated(loader: Any) -> Any:
        begun.append(loader)
        if stage.held or stage.scouting:
            stage.facts["entry"] = len(begun)
            return iterate(loader)
        if not entry:
            entry.append(stage.scout(_until_a_step))
            stage.facts["entry"] = 1  # of the child
        if entry[0] != len(begun):
            return iterate(loader)
        return stage.hold(loader.dataset, functools.partial(_with_loader, stage, loader, iterate))

    DataLoader.__iter__ = iterated  # type: ignore[method-assign]


def _until_a_step(stage: Stage) -> None:
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    register_optimizer_step_pre_hook(lambda *_: stage.leave(enough=True))


def _with_loader(stage: Stage, loader: Any, iterate: Callable[[Any], Any], training: Training) -> Any:
    begin(stage, training, loader)
    if loader.batch_size is not None:
        stage.facts["rate"] = min(1.0, loader.batch_size / len(loader.dataset))
    return iterate(loader)


def _with_named(stage: Stage, named: Named, training: Training) -> None:
    if training.data is not None:
        named.put(training.data)
    begin(stage, training)


def begin(stage: Stage, training: Training, loader: Any = None) -> None:
    """With the seed and, in a loader, the records of this training."""
    if training.data is not None and loader is not None:
        put_records(loader.dataset, training.data)
    if training.again:
        stage.randomness.begin_again(ELSEWHERE)
    if training.seed is not None:
        stage.randomness.begin(training.seed)
        if getattr(loader, "generator", None) is not None:
            loader.generator.manual_seed(training.seed)
    watch_steps(stage, training)


class Named:
    """Arrays or tensors of the script, by their names."""

    def __init__(self, names: str, script: str) -> None:
        self._places = [name.rpartition(":")[::2] for name in names.split(",")]
        self._script = script

    def columns(self) -> tuple[Any, ...]:
        return tuple(np.array(self._get(*place)) for place in self._places)

    def put(self, columns: Any) -> None:
        """Other records, in place if there are as many."""
        for place, new in zip(self._places, columns, strict=True):
            old = self._get(*place)
            if hasattr(old, "new_tensor"):
                new = old.new_tensor(new)
            if len(new) == len(old):
                old[...] = new
            else:
                setattr(self._module(place[0]), place[1], new)

    def _module(self, name: str) -> Any:
        return sys.modules.get(name or "__main__")

    def _get(self, module: str, name: str) -> Any:
        found = getattr(self._module(module), name, None)
        if not hasattr(found, "__array__"):
            raise InvalidInput(
                f"--data must name arrays or tensors that {self._script} has when it makes its optimiser, but "
                f"{name!r} is {'not there' if found is None else type(found).__name__}."
            )
        return found


def put_records(dataset: Any, data: Any) -> None:
    """Have a data set hold other records, for all loaders that read it, those that the script made before, too."""

    class Records(type(dataset)):  # type: ignore[misc]
        def __len__(self) -> int:
            return len(data)

        def __getitem__(self, index: Any) -> Any:
            return data[index]

        def __getitems__(self, indices: Any) -> Any:
            return [data[index] for index in indices]

    try:
        dataset.__class__ = Records
    except TypeError:
        raise InvalidInput(
            f"the records of a script must be in a data set of its own class, but they are in a "
            f"{type(dataset).__name__}. Use torch.utils.data.TensorDataset."
        ) from None


def watch_steps(stage: Stage, training: Training) -> None:
    """Show the watch every step until this child leaves. If the model is to stand still, no step moves it."""
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    watch, before = training.watch, dict[Any, Any]()
    shown: Any = watch if not isinstance(watch, Recorder) else _Leaving(stage, watch)
    watch.begin()

    def see(optimizer: Any, *_: Any) -> None:
        if stage.model is None:
            stage.model = _model_of(optimizer)
        if not watch.n_steps:
            stage.facts["seedings"] = stage.randomness.chosen

    def keep(optimizer: Any, *_: Any) -> None:
        for group in optimizer.param_groups:
            before.update({p: p.detach().clone() for p in group["params"]})

    def put_back(*_: Any) -> None:
        for p, old in before.items():
            p.detach().copy_(old)
        before.clear()

    def leave(*_: Any) -> None:
        if watch.n_steps >= (training.steps or math.inf):
            stage.leave(enough=True)

    register_optimizer_step_pre_hook(see)
    if stage.by_weights:
        stage.last = ByWeights(stage.name, shown, training.max_grad_norm, leave).show
        return
    register_optimizer_step_post_hook(leave)
    if isinstance(watch, Following) and training.steps == LOOKED:
        Moves(lambda: stage.facts.update(by_weights=True))
    if isinstance(watch, Recorder) and watch.stands_still:
        register_optimizer_step_pre_hook(keep)
        register_optimizer_step_post_hook(put_back)
    # until the child ends
    stage.open.enter_context(watching(shown, max_grad_norm=training.max_grad_norm))


class _Leaving:
    """A watch that ends the child when it has seen enough: nothing of the script is run after it."""

    def __init__(self, stage: Stage, watch: Recorder) -> None:
        self._stage, self._watch = stage, watch

    def __call__(self, *args: Any, **more: Any) -> Any:
        try:
            return self._watch(*args, **more)
        except Enough:
            self._stage.leave(enough=True)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._watch, name)


def _model_of(optimizer: Any) -> Any:
    """The largest module that has a parameter of this optimiser, or its parameters."""
    from torch import nn

    params = [p for group in optimizer.param_groups for p in group["params"]]
    found = [thing for thing in gc.get_objects() if issubclass(type(thing), nn.Module)]
    own = [module for module in found if any(p is params[0] for p in module.parameters())]
    return max(own, key=lambda module: sum(1 for _ in module.modules())) if own else params

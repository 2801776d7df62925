"""What a trainer is: anything with `train` and `losses`, or one function `observe`; and how a game calls it."""

from __future__ import annotations

import dataclasses
import inspect
import random
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.privacy import Privacy
from epsgauge.stats.arrays import Floats
from epsgauge.trainers.known_start import knowing_start
from epsgauge.trainers.opacus_patches import prepare
from epsgauge.trainers.watch import Watch

RESERVED = ("reference", "population")  # channels with the losses on reference points
# One loss per point; or channels by their names, with these losses as "loss". A channel with one row for each point is
# about the points, and those of the pairs are kept; any other is about the model, and is kept as it is.
Seen = ArrayLike | Mapping[str, ArrayLike]


@runtime_checkable
class Trainer(Protocol):
    """Trains a model and says its loss on each of some points.

    `data` and `points` are what the plan's data gives for some indices: a tuple of arrays, or a `Subset` of a
    map-style dataset. torch, NumPy and random are seeded before `train` is called. One that takes `random_state` in
    place of `seed` gets a number below 2^32, as scikit-learn wants it. A `train` that also takes
    `size` is told the nominal number of points, from which sampling rate and steps are to be computed: in an
    add-remove game `len(data)` is one less where the point is left out, and the mechanism must not show that. One that
    takes `watch` shows every step to the adversary of a plan who sees more than losses: see `Watch`.
    """

    def train(self, data: Any, *, seed: int) -> Any: ...

    def losses(self, model: Any, points: Any) -> Seen: ...


@runtime_checkable
class Observer(Protocol):
    """The same in one call, where training and evaluation cannot be told apart."""

    def observe(self, data: Any, points: Any, *, seed: int) -> Seen: ...


@runtime_checkable
class Accountable(Protocol):
    """Knows what it promises when trained on n points; None where it promises nothing."""

    def privacy(self, n: int) -> Privacy | None: ...


@runtime_checkable
class Quietable(Protocol):
    """Can be had without its noise, for a control."""

    def without_noise(self) -> Any: ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """Shapes of a group of models that are trained together: they do not depend on the models that are in it."""

    size: int
    width: int  # of a padded batch


@runtime_checkable
class Many(Protocol):
    """Can train the models of a group together; a model comes out the same whoever else is in its group.

    `group` is asked once, when a run is created, with some points; None means one at a time. In `train_many` a data set
    that is None keeps its slot, and no model of it is wanted. A `train_many` that takes `watches` gets one for each
    model where the plan's adversary has them.
    """

    def group(self, points: Any, *, size: int) -> Group | None: ...

    def train_many(self, datas: Sequence[Any], *, seeds: Sequence[int], size: int, group: Group) -> Sequence[Any]: ...


@dataclasses.dataclass(frozen=True)
class Function:
    """A plain function `observe(data, points, *, seed) -> losses` as an observer."""

    function: Any

    def observe(self, data: Any, points: Any, **more: Any) -> Seen:
        seen: Seen = self.function(data, points, **more)
        return seen


class Unasked:
    """A trainer without `losses`, or a plain function `train`: enough for a probe, and where a watch sees updates."""

    def __init__(self, given: Any) -> None:
        self.given = given
        self.train = given if inspect.isfunction(given) else given.train
        if isinstance(given, Accountable):
            self.privacy = given.privacy
        if has_noise_switch(given):
            self.without_noise = lambda: Unasked(_silenced(given))

    def losses(self, model: Any, points: Any) -> Seen:
        return {}


def as_trainer(thing: Any, name: str, *, losses: bool = True) -> Trainer | Observer:
    """`thing` if it can train; a function of data and points becomes an observer. `losses`: must it have these?"""
    if isinstance(thing, (Trainer, Observer)) and not isinstance(thing, type):
        return thing
    only_trains = inspect.isfunction(thing) and not _takes_points(thing)
    if inspect.isfunction(thing) and not only_trains:
        return Function(thing)
    if only_trains or (callable(getattr(thing, "train", None)) and not isinstance(thing, type)):
        if not losses:
            return Unasked(thing)
        raise InvalidInput(
            f"an audit by losses needs losses(model, points), one float per point, but trainer {name} can only train. "
            'Add it, or use adversary.preset = "white-box" or `epsgauge probe`, which need none.'
        )
    raise InvalidInput(
        f"trainer {name} must have train(data, *, seed) and losses(model, points), or observe(data, points, *, seed), "
        f"but {type(thing).__name__} has not."
    )


def _takes_points(function: Any) -> bool:
    """Whether it is called with data and points, and not with data only."""
    parameters = inspect.signature(function).parameters.values()
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = {"seed", "random_state", "size", "watch"}
    return any(p.kind is p.VAR_POSITIONAL for p in parameters) or len([p for p in places if p.name not in named]) > 1


def takes(function: Any, keyword: str) -> bool:
    """Whether a function can be called with this keyword."""
    plain = getattr(function, "__func__", function)  # of a method: the same for every copy of a trainer
    return _takes(plain, keyword) if inspect.isfunction(plain) else _takes.__wrapped__(function, keyword)


@lru_cache(maxsize=256)
def _takes(function: Any, keyword: str) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(p.name == keyword or p.kind is p.VAR_KEYWORD for p in parameters)


def trains_with(trainer: Trainer | Observer, keyword: str) -> bool:
    """Whether its training takes this keyword."""
    if isinstance(trainer, Function):
        return takes(trainer.function, keyword)
    return takes(trainer.train if isinstance(trainer, Trainer) else trainer.observe, keyword)


def names(thing: Any, keyword: str) -> bool:
    """Whether the training of what may be a trainer has a parameter of this name, and does not just take any."""
    how = thing.function if isinstance(thing, Function) else thing
    if not inspect.isfunction(how):
        how = getattr(how, "train", None) or getattr(how, "observe", None)
    return callable(how) and keyword in inspect.signature(how).parameters


def knows_size(trainer: Trainer | Observer) -> bool:
    """Whether it computes its constants from the nominal size, and not from the data that it is given."""
    return trains_with(trainer, "size")


def has_noise_switch(trainer: Any) -> bool:
    """Whether it can be had without its noise."""
    if isinstance(trainer, Quietable):
        return True
    return dataclasses.is_dataclass(trainer) and "noise_multiplier" in {f.name for f in dataclasses.fields(trainer)}


def without_noise(trainer: Trainer | Observer, name: str) -> Trainer | Observer:
    """The same trainer with no noise, for a control."""
    if has_noise_switch(trainer):
        return as_trainer(_silenced(trainer), name)
    raise InvalidInput(
        f"a control needs the trainer without noise, but {name} has neither a field noise_multiplier nor a method "
        "without_noise(). Add one of them."
    )


def _silenced(trainer: Any) -> Any:
    """One that has a switch for its noise, with it turned off."""
    if isinstance(trainer, Quietable):
        return trainer.without_noise()
    return dataclasses.replace(trainer, noise_multiplier=0.0)


def seed_everything(seed: int) -> None:
    """Seed random, NumPy's global generator and, where it is loaded, torch."""
    random.seed(seed)
    np.random.seed([seed >> 32, seed & 0xFFFFFFFF])  # noqa: NPY002  a user's code may use it
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed % 2**63)


def observed(
    trainer: Trainer | Observer,
    data: Any,
    points: Any,
    n_points: int,
    *,
    seed: int,
    size: int,
    watch: Watch | None = None,
    known_start: bool = False,
) -> dict[str, Floats]:
    """What is seen of a model trained on `data`, by channel and checked; "loss" is its loss on each of `points`.

    Of a trainer without `losses` it is what a watch sees alone.
    """

    def once() -> dict[str, Floats]:
        with knowing_start() if known_start else nullcontext():
            return _observed(trainer, data, points, n_points, seed=seed, size=size, watch=watch)

    had_torch = "torch" in sys.modules
    seen = once()
    if "torch" in sys.modules and not had_torch:
        # the training imported it, so that its generator was not seeded: this first model of a process is had again
        seen = once()
    return seen


def _observed(
    trainer: Trainer | Observer, data: Any, points: Any, n_points: int, *, seed: int, size: int, watch: Watch | None
) -> dict[str, Floats]:
    prepare()
    seed_everything(seed)
    extra: dict[str, Any] = {"size": size} if knows_size(trainer) else {}
    if watch is not None:
        watch.begin()
        extra["watch"] = watch
    extra |= seed_for(trainer, seed)
    if isinstance(trainer, Unasked):
        trainer.train(data, **extra)
        return {}
    if isinstance(trainer, Trainer):
        raw = trainer.losses(trainer.train(data, **extra), points)
    else:
        raw = trainer.observe(data, points, **extra)
    return checked_channels(raw, n_points)


def seed_for(trainer: Trainer | Observer, seed: int) -> dict[str, int]:
    """The seed under the name that the trainer takes: `seed` is below 2^63, `random_state` below 2^32.

    The latter is a hash of the former, and so still a number that is drawn for each model by itself.
    """
    if not trains_with(trainer, "random_state") or trains_with(trainer, "seed"):
        return {"seed": seed}
    return {"random_state": int(np.random.SeedSequence(seed).generate_state(1, np.uint32)[0])}


def checked_channels(raw: Any, n_points: int) -> dict[str, Floats]:
    """Finite numbers, one loss for each point, or an error that says what came instead."""
    given = dict(raw) if isinstance(raw, Mapping) else {"loss": raw}
    if "loss" not in given:
        raise InvalidInput(
            f'channels must have "loss", one float for each point, but got {", ".join(map(str, given)) or "none"}.'
        )
    for name in given:
        if not (isinstance(name, str) and name.isidentifier()) or name in RESERVED:
            raise InvalidInput(
                f'the name of a channel must be letters, digits and _, and not "reference" or "population", which '
                f"hold the losses on reference points, but got {name!r}."
            )
    losses = _floats(given.pop("loss"), "losses must be one float per point")
    if losses.shape != (n_points,):
        raise InvalidInput(f"losses must be one float for each of the {n_points} points, but got shape {losses.shape}.")
    bad = ~np.isfinite(losses)
    if bad.any():
        where = int(np.flatnonzero(bad)[0])
        raise InvalidInput(
            f"losses must be finite, but {int(bad.sum())} of {n_points} are not (the first is {losses[where]} at point "
            f"{where}). The training may have diverged: try a smaller learning rate, or clip the loss."
        )
    channels = {"loss": losses}
    for name, values in given.items():
        channels[name] = _floats(values, f"channel {name} must be an array of floats")
        wrong = int(np.count_nonzero(~np.isfinite(channels[name])))
        if wrong:
            raise InvalidInput(
                f"channel {name} must be finite, but {wrong} of its {channels[name].size} numbers are not. Give what "
                "is not known a number of its own."
            )
    return channels


def _floats(raw: Any, rule: str) -> Floats:
    plain = _plain(raw)
    try:
        array = np.array(plain)
        if array.dtype.kind != "c":
            return array.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{rule}, but got {type(raw).__name__}.") from None
    raise InvalidInput(f"{rule}, but got complex numbers. Give their real part, or the parts as two channels.")


def _plain(raw: Any) -> Any:
    """Tensors without their gradients, wherever they live, also in lists."""
    if isinstance(raw, (list, tuple)):
        return [_plain(part) for part in raw]
    if hasattr(raw, "detach"):
        raw = raw.detach().cpu()
        return (raw if raw.is_complex() else raw.double()).resolve_conj().resolve_neg().numpy()
    if isinstance(raw, np.ma.MaskedArray):
        masked = int(np.count_nonzero(np.ma.getmaskarray(raw)))
        if masked:
            raise InvalidInput(
                f"losses and channels must be whole arrays, but {masked} numbers of one are masked. Give them numbers "
                "of their own."
            )
        return raw.data
    return raw

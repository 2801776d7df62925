"""What trainers of neural networks share: settings of model, loop and device, and the losses of a model."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.references import plan_folder
from epsgauge.stats import checks
from epsgauge.stats.arrays import Floats
from epsgauge.stats.checks import positive
from epsgauge.trainers import models, optimisers, torch_engine
from epsgauge.trainers import start as starts
from epsgauge.trainers.protocol import Group
from epsgauge.trainers.recipe import Recipe
from epsgauge.trainers.stacked.chain import chain, supports
from epsgauge.trainers.stacked.engine import fit_many
from epsgauge.trainers.stacked.group import group_for, width_for
from epsgauge.trainers.stacked.plain import PlainRecipe
from epsgauge.trainers.streams import streams, torch_seeded
from epsgauge.trainers.tensors import device_of, tensors
from epsgauge.trainers.watch import Watch
from epsgauge.trainers.watches import RecordCanaries

if TYPE_CHECKING:
    import torch
    from torch import nn

# Points that are evaluated at once.
CHUNK = 4096
# Of a field that came later: where it has its default, a plan is the one that it was before.
LATER = {"later": True}


@dataclass(frozen=True, kw_only=True)
class Network:
    """Fields of `sgd` and `dpsgd`.

    `n_classes` is a setting, and not read off the labels: a class that only the challenge point has would otherwise
    change the architecture, and with it tell the bit.
    """

    model: str = "mlp"  # one of models.NAMES, or "module:attr": a function without arguments that builds an nn.Module
    encoder: str | None = None  # of model "transformer": a folder, a name on the hub, or "package:folder"
    epochs: int = 10
    batch_size: int = 100
    learning_rate: float = 0.5
    momentum: float = 0.0  # of optimiser "sgd"
    optimiser: str = "sgd"  # or "adam", which is not stacked
    physical_batch: int | None = None  # points whose gradients are computed at once: less memory, the same result
    n_classes: int = 10  # of the built-in models
    device: str = "cpu"  # "cpu", "cuda" or "mps"
    engine: str = "auto"  # "stacked" trains many models at once; "auto" does where it can
    init: str = field(default="random", metadata=LATER)  # one of start.NAMES, or the path of saved weights
    init_data: str | None = field(default=None, metadata=LATER)  # of "pretrained": "module:attr", gives the points
    init_epochs: int = field(default=20, metadata=LATER)
    init_batch_size: int = field(default=100, metadata=LATER)
    init_learning_rate: float = field(default=0.1, metadata=LATER)

    ENGINES: ClassVar[tuple[str, ...]] = ("auto", "stacked")

    def __post_init__(self) -> None:
        models.check_name(self.model)
        models.check_settings(self.model, encoder=self.encoder, n_classes=self.n_classes)
        physical = () if self.physical_batch is None else (("physical_batch", 1),)
        starting = (("init_epochs", 1), ("init_batch_size", 1))
        for name, least in (("epochs", 1), ("batch_size", 1), ("n_classes", 2), *physical, *starting):
            value = getattr(self, name)
            checks.within(name, value, f"{least} or more", np.asarray(checks.counts(name, value) >= least))
        positive("learning_rate", self.learning_rate)
        positive("init_learning_rate", self.init_learning_rate)
        starts.check(self.init, self.init_data)
        if self.engine not in self.ENGINES:
            raise InvalidInput(f"engine must be one of {', '.join(self.ENGINES)}, but got {self.engine!r}.")
        momentum = checks.numbers("momentum", self.momentum)
        checks.within("momentum", self.momentum, "in [0, 1)", (momentum >= 0) & (momentum < 1))
        optimisers.check(self.optimiser, momentum=self.momentum)
        if self.engine == "stacked" and self.optimiser != "sgd":
            raise InvalidInput(
                f'optimiser must be "sgd" with engine = "stacked", but got {self.optimiser!r}. Use engine = "auto".'
            )

    def losses(self, model: nn.Module, points: Any) -> Floats:
        """The cross-entropy of each point, with the model in eval mode.

        The scores are float32; the loss is computed in float64 from the point's margin, so that losses near 0 stay
        apart and the margin can be had from them.
        """
        x, y = self._tensors(points)
        import torch

        models.check_fit(model, self.model, x, y)
        if not len(x):
            return np.empty(0)
        model.eval()
        chunk = self.physical_batch or CHUNK
        with torch.no_grad():
            parts = [
                _margins(model(some).cpu().double(), labels.cpu())
                for some, labels in zip(torch.split(x, chunk), torch.split(y, chunk), strict=True)
            ]
        out: Floats = np.logaddexp(0.0, -torch.cat(parts).numpy())
        return out

    def group(self, points: Any, *, size: int) -> Group | None:
        """How many models are trained together, and with which padding; None: one at a time. `points` are any two."""
        if self.engine not in ("auto", "stacked") or self.optimiser != "sgd":
            return None
        x, y = self._tensors(points)
        with torch_seeded(streams(0).initialisation, x.device):
            model = self._built(x, y)
        if self.engine == "auto" and supports(model, x) is not None:
            return None
        chain(model, x)  # raises for a layer that cannot be stacked, and names it
        return group_for(model, x, self._constants(size))

    def train_many(
        self,
        datas: Sequence[Any],
        *,
        seeds: Sequence[int],
        size: int,
        group: Group,
        watches: Sequence[Watch | None] | None = None,
    ) -> list[nn.Module]:
        """Models of one group, each in its slot. One whose data is None keeps its slot and is not trained.

        `physical_batch` is not looked at: the pieces of a stacked batch have the fixed width of the group.
        """
        given = [None if data is None else self._tensors(data) for data in datas]
        some = next(points for points in given if points is not None)
        points = [(some[0][:0], some[1][:0]) if p is None else p for p in given]
        each = [streams(seed) for seed in seeds]
        models = []
        for (x, y), own in zip(points, each, strict=True):
            with torch_seeded(own.initialisation, x.device):
                models.append(self._started(x, y))
        records = [self._tensors(w.records) if isinstance(w, RecordCanaries) else None for w in watches or ()]
        constants = self._constants(size)
        fit_many(models, points, constants, streams=each, group=group, watches=watches, records=records)
        return [model.eval() for model in models]

    def _alone(self, data: Any, *, seed: int, size: int, watch: Watch | None = None) -> nn.Module:
        """A stack of one."""
        group = Group(size=1, width=width_for(self._constants(size)))
        watches = None if watch is None else [watch]
        return self.train_many([data], seeds=[seed], size=size, group=group, watches=watches)[0]

    def _constants(self, n: int) -> Recipe | PlainRecipe:
        """What an engine needs to know of a training on nominally n points."""
        raise NotImplementedError

    def _tensors(self, data: Any) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = tensors(data, device_of(self.device))
        if self.model in models.FLAT:  # they take flat rows of real numbers
            x = x.float().flatten(1) if x.ndim > 1 else x.float()[:, None]
        return x, y

    def _started(self, x: torch.Tensor, y: torch.Tensor) -> nn.Module:
        """A new model where its training starts; what torch's generator gives decides only a random start."""
        if self.init == "random":
            return self._built(x, y)
        with torch_seeded(streams(0).initialisation, x.device):
            model = self._built(x, y)
        if self.init == "pretrained":
            before = _pretrained(Network(**{name: getattr(self, name) for name in _DECIDE}), plan_folder())
            before.check_apart(x, y)
            starts.put(model, before.state, "what was pretrained")
        elif self.init != "fixed":
            starts.put(model, starts.saved(self.init), self.init)
        return model

    def _built(self, x: torch.Tensor, y: torch.Tensor) -> nn.Module:
        """A new model that fits the points, on the device, ready to be trained."""
        made = models.build(self.model, n_features=int(x.shape[-1]), n_classes=self.n_classes, encoder=self.encoder)
        model = made.to(device_of(self.device))
        models.check_fit(model, self.model, x, y)
        return model.train()

    def _nominal(self, x: torch.Tensor, size: int | None) -> int:
        """The number of points from which all constants are computed."""
        n = len(x) if size is None else int(checks.counts("size", size))
        if n == 0:
            raise InvalidInput("data must have at least one point, but got none.")
        return n


# The fields that decide a pretrained start.
_DECIDE = ("model", "encoder", "n_classes", "device", *(f.name for f in fields(Network) if f.name.startswith("init")))


@functools.lru_cache(maxsize=2)
def _pretrained(trainer: Network, folder: Path | None) -> starts.Pretrained:
    """Trained once per process, from the fixed start, without noise or clipping; `folder` is that of the plan."""
    x, y = trainer._tensors(starts.points(str(trainer.init_data)))
    if not len(x):
        raise InvalidInput(f"init_data {trainer.init_data} must give at least one point, but gave none.")
    initial, batches, _ = streams(0)
    with torch_seeded(initial, x.device):
        model = trainer._built(x, y)
        torch_engine.fit(
            model,
            x,
            y,
            epochs=trainer.init_epochs,
            batch_size=trainer.init_batch_size,
            learning_rate=trainer.init_learning_rate,
            batches=np.random.default_rng(batches),
        )
    state = {name: value.detach().cpu().numpy() for name, value in model.state_dict().items()}
    return starts.Pretrained(state, starts.fingerprints(x, y))


def _margins(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """log p − log(1 − p) of each label: its score over the logarithm of the sum of all others' exponentials."""
    own = scores.gather(1, labels[:, None])
    others = scores.scatter(1, labels[:, None], float("-inf")).logsumexp(1)
    return own[:, 0] - others

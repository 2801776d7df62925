"""Neural networks by name: built-in ones, or a user's own function that builds one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epsgauge.data import encoders
from epsgauge.errors import InvalidInput
from epsgauge.references import is_reference, load, nearest

if TYPE_CHECKING:
    import torch
    from torch import nn

HIDDEN = 32  # units of the one hidden layer of "mlp"


def _logistic(n_features: int, n_classes: int) -> list[nn.Module]:
    from torch import nn

    layer = nn.Linear(n_features, n_classes)
    nn.init.zeros_(layer.weight)  # as logistic regression begins: a random start would only add to the noise
    nn.init.zeros_(layer.bias)
    return [layer]


def _mlp(n_features: int, n_classes: int) -> list[nn.Module]:
    from torch import nn

    # tanh: bounded activations do better than ReLU under clipping (Papernot et al. 2021)
    return [nn.Linear(n_features, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, n_classes)]


FLAT = {"logistic": _logistic, "mlp": _mlp}  # they take points as flat rows
CNN, TRANSFORMER = "cifar10-cnn", "transformer"  # they take points as they are
NAMES = (*FLAT, CNN, TRANSFORMER)


def check_name(name: Any) -> None:
    if name not in NAMES and not is_reference(name):
        hint = nearest(name, NAMES) if isinstance(name, str) else ""
        raise InvalidInput(
            f'model must be one of {", ".join(NAMES)}, or your own function as "module:attr", but got {name!r}.{hint}'
        )


def check_settings(name: str, *, encoder: str | None, n_classes: int) -> None:
    """The settings that belong to one built-in model."""
    if name == TRANSFORMER:
        encoders.check_name(encoder)
    elif encoder is not None:
        raise InvalidInput(f'encoder must be left out unless model = "{TRANSFORMER}", but got {encoder!r}.')
    if name == CNN and n_classes != 10:
        raise InvalidInput(f'n_classes must be 10 with model = "{CNN}", but got {n_classes}.')


def build(name: str, *, n_features: int, n_classes: int, encoder: str | None = None) -> nn.Module:
    """A fresh model, its first weights from torch's generator.

    `n_features` is that of flat points. A user's own function takes no argument and decides itself.
    """
    from torch import nn

    from epsgauge.trainers import architectures

    check_name(name)
    if name in FLAT:
        return nn.Sequential(*FLAT[name](n_features, n_classes))
    if name == CNN:
        return architectures.cifar10_cnn()
    if name == TRANSFORMER:
        return architectures.transformer(encoder or "", n_classes)
    factory = load(name, "model")
    if isinstance(factory, nn.Module) or not callable(factory):
        raise InvalidInput(
            f"model {name} must be a function that builds a new torch.nn.Module, but it is a "
            f"{type(factory).__name__}. One model for all trainings would remember the last one."
        )
    try:
        model = factory()
    except TypeError as error:
        raise InvalidInput(f"model {name} must build a model without arguments, but: {error}.") from error
    if not isinstance(model, nn.Module):
        raise InvalidInput(f"model {name} must build a torch.nn.Module, but it gave a {type(model).__name__}.")
    return model


def check_fit(model: nn.Module, name: str, x: torch.Tensor, y: torch.Tensor) -> None:
    """The model gives a row of scores to a point, one for each class; said in a sentence before training does."""
    import torch

    if not len(x):
        return
    mode = model.training
    model.eval()
    try:
        with torch.no_grad():
            out = model(x[:1])
    except (RuntimeError, IndexError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidInput(
            f"model {name} must take points of shape {tuple(x.shape[1:])} and type {x.dtype}, but it failed: {first}."
        ) from error
    finally:
        model.train(mode)
    if not isinstance(out, torch.Tensor) or out.ndim != 2 or len(out) != 1:
        got = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise InvalidInput(
            f"model {name} must give one row of class scores per point, but for one point it gave {got}."
        )
    largest = int(y.max())
    if largest >= out.shape[1]:
        remedy = "Set n_classes" if name in NAMES and name != CNN else "Give the model more outputs"
        raise InvalidInput(
            f"y must be below {out.shape[1]}, the number of classes of model {name}, but got {largest}. {remedy}."
        )

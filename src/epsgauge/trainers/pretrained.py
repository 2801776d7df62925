"""Pretrained sequence classifiers: read once a process, copied for every model, with a new head."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

from epsgauge.data.hugging_face import need_transformers, reading
from epsgauge.errors import InvalidInput
from epsgauge.trainers.sequence_classifier import wrapped

_MAY_BE_NEW = "pooler"  # between encoder and head; many files lack it


def fresh(folder: Path, n_classes: int) -> Any:
    """The encoder in a folder with a head whose weights come from torch's generator, whatever head the files hold."""
    template, new = _read(folder, n_classes)
    model = copy.deepcopy(template)
    for name in new:
        _initialise(model.get_submodule(name), float(getattr(model.inner.config, "initializer_range", 0.02)))
    return model


@functools.lru_cache(maxsize=2)
def _read(folder: Path, n_classes: int) -> tuple[Any, tuple[str, ...]]:
    """The model as the files say, and the names of the layers to be drawn anew."""
    need_transformers()
    import torch
    from transformers import AutoModelForSequenceClassification

    with reading(f"the encoder in {folder}"), torch.random.fork_rng(devices=[]):  # what is drawn is drawn again
        inner, report = AutoModelForSequenceClassification.from_pretrained(
            folder,
            num_labels=n_classes,
            use_safetensors=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    body = f"{inner.base_model_prefix}."
    unread = {*report["missing_keys"], *(key if isinstance(key, str) else key[0] for key in report["mismatched_keys"])}
    lost = sorted(key for key in unread if key.startswith(body) and _MAY_BE_NEW not in key)
    if lost:
        raise InvalidInput(
            f"the encoder in {folder} must have the weights that its config.json says, but {len(lost)} are missing or "
            f"have another shape, such as {lost[0]}."
        )
    names = [name for name, _ in inner.named_parameters()]
    anew = {name.rpartition(".")[0] for name in names if not name.startswith(body) or name in unread}
    model = wrapped(inner.float())
    _freeze_idle(model)
    return model, tuple(f"inner.{name}" for name in sorted(anew))


def _freeze_idle(model: Any) -> None:
    """Parameters that take no part in the scores are not trained: a trial shows which."""
    import torch

    first = 0 if model.pad else 1
    model.eval()(torch.tensor([[first, first]])).sum().backward()
    for p in model.parameters():
        p.requires_grad_(p.grad is not None)
        p.grad = None
    model.train()


def _initialise(layer: Any, spread: float) -> None:
    """As BERT and RoBERTa begin: normal weights and no bias; other layers in their own way."""
    from torch import nn

    if isinstance(layer, nn.Linear):
        nn.init.normal_(layer.weight, std=spread)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
    else:
        layer.reset_parameters()

"""A sequence classifier of transformers as a network from token ids to scores, fit for per-example gradients."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from epsgauge.errors import InvalidInput

if TYPE_CHECKING:
    from torch import Tensor, nn


def wrapped(inner: Any) -> Any:
    """The network around a model of AutoModelForSequenceClassification."""
    taken = inspect.signature(inner.forward).parameters
    pad = inner.config.pad_token_id
    if pad is None or "position_ids" not in taken:
        lacks = "no pad token" if pad is None else "positions of its own"
        raise InvalidInput(
            "the encoder must have a pad token and take position ids, as BERT and RoBERTa do, but "
            f"{inner.config.model_type} has {lacks}."
        )
    return _network()(inner, takes_types="token_type_ids" in taken)


@functools.cache
def _network() -> type[nn.Module]:
    """The class; made when first needed, as torch is an extra."""
    import torch
    from torch import nn

    class SequenceClassifier(nn.Module):
        """Token ids [n, length], padded on the right, to scores [n, classes].

        Opacus takes the first axis of a layer's input for the points. The position and token type ids that a model
        makes itself have one row for all points, and the gradients of their embeddings would be wrong; so each point
        has its own.
        """

        def __init__(self, inner: Any, *, takes_types: bool) -> None:
            super().__init__()
            self.inner = inner
            self.pad = int(inner.config.pad_token_id)
            self.vocabulary = int(inner.config.vocab_size)
            self._takes_types = takes_types
            self._pad_position = _pad_position(inner)

        def forward(self, ids: Tensor) -> Tensor:
            self._check(ids)
            mask = ids != self.pad
            used = mask.any(0).nonzero()
            longest = int(used[-1]) + 1 if len(used) else 1
            ids, mask = ids[:, :longest], mask[:, :longest]  # columns of padding alone would only cost time
            more = {"token_type_ids": torch.zeros_like(ids)} if self._takes_types else {}
            scores: Tensor = self.inner(
                input_ids=ids, attention_mask=mask.long(), position_ids=self._positions(mask), **more
            ).logits
            return scores

        def _positions(self, mask: Tensor) -> Tensor:
            """[n, length]: as BERT counts them, or as RoBERTa does, where padding has the position of the pad token."""
            if self._pad_position is None:
                return torch.arange(mask.shape[1], device=mask.device).repeat(len(mask), 1)
            return mask.long().cumsum(1) * mask + self._pad_position

        def _check(self, ids: Tensor) -> None:
            if ids.ndim != 2 or ids.dtype != torch.int64:
                raise InvalidInput(f"points must be rows of token ids, but got {ids.dtype} of shape {tuple(ids.shape)}")
            if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < self.vocabulary:
                raise InvalidInput(
                    f"token ids must be from 0 to {self.vocabulary - 1}, but got {int(ids.min())} to {int(ids.max())}: "
                    "they are those of another encoder"
                )

    return SequenceClassifier


def _pad_position(inner: nn.Module) -> int | None:
    """The position that padding has; None where positions are counted from 0 whatever is padding."""
    from torch import nn

    for name, layer in inner.named_modules():
        if name.endswith("position_embeddings") and isinstance(layer, nn.Embedding):
            return layer.padding_idx
    return None

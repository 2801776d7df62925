"""Sentences as vectors of a frozen encoder: the mean of its last hidden states, of length 1."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.data.cached import cached
from epsgauge.data.encoders import encoder_folder
from epsgauge.data.hugging_face import need_transformers, reading
from epsgauge.data.sst2 import sst2
from epsgauge.data.text_tokens import LENGTH, tokens
from epsgauge.errors import InvalidInput

_BATCH = 64  # sentences that are encoded at once
_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")  # what decides about the vectors


def sst2_embeddings(
    path: str | os.PathLike[str], encoder: str, length: int = LENGTH
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Vectors [n, dim] of the sentences of SST-2 and their labels; `path` as for `sst2`.

    They are computed once, and then read from the user's cache folder.
    """
    sentences, labels = sst2(path)
    folder = encoder_folder(encoder)
    return cached(_key(sentences, folder, length), lambda: embeddings(sentences, folder, length)), labels


def embeddings(sentences: NDArray[np.str_], folder: Path, length: int) -> NDArray[np.float32]:
    """Equal sentences have equal vectors, bit for bit: each is encoded once, with others of its length."""
    need_transformers()
    import torch

    ids, place = np.unique(tokens(sentences, folder, length), axis=0, return_inverse=True)
    model, pad = _encoder(folder)
    counts = (ids != pad).sum(axis=1)
    order = np.argsort(counts, kind="stable")
    parts = []
    with torch.inference_mode(), _one_thread():
        for start in range(0, len(order), _BATCH):
            rows = order[start : start + _BATCH]
            batch = torch.from_numpy(ids[rows, : counts[rows[-1]]])
            mask = (batch != pad).long()
            try:
                states = model(input_ids=batch, attention_mask=mask).last_hidden_state
            except (IndexError, RuntimeError) as error:
                raise InvalidInput(
                    f"the encoder in {folder} must take {batch.shape[1]} tokens of its tokenizer, but it failed: "
                    f"{str(error).splitlines()[0].rstrip('.')}."
                ) from error
            mean = (states * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
            parts.append(torch.nn.functional.normalize(mean, dim=1).float().numpy())
    sorted_ = np.concatenate(parts)
    out = np.empty_like(sorted_)
    out[order] = sorted_
    rows_of_all: NDArray[np.float32] = out[place.reshape(-1)]
    return rows_of_all


def _encoder(folder: Path) -> tuple[Any, int]:
    """The encoder without a head, and its pad token."""
    import torch
    from transformers import AutoModel

    with reading(f"the encoder in {folder}"), torch.random.fork_rng(devices=[]):  # an unused pooler may be drawn
        model = AutoModel.from_pretrained(folder, use_safetensors=True, trust_remote_code=False)
    return model.float().eval(), int(model.config.pad_token_id)


def _key(sentences: NDArray[np.str_], folder: Path, length: int) -> str:
    """SHA-256 of all that the vectors depend on."""
    state = hashlib.sha256(f"mean-pooled 1, {length} tokens, {len(sentences)} sentences".encode())
    for sentence in sentences.tolist():
        raw = sentence.encode()
        state.update(f"\n{len(raw)} ".encode() + raw)
    for file in sorted({file for pattern in _FILES for file in folder.glob(pattern)}):
        with file.open("rb") as content:
            state.update(f"\n{file.name} {hashlib.file_digest(content, 'sha256').hexdigest()}".encode())
    return state.hexdigest()


@contextmanager
def _one_thread() -> Iterator[None]:
    """The work is parallel by process, and one thread always adds in one order."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)

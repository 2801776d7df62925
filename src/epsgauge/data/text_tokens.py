"""Sentences as rows of token ids, padded to one length."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epsgauge.data.encoders import encoder_folder
from epsgauge.data.hugging_face import need_transformers, reading
from epsgauge.data.sst2 import sst2
from epsgauge.errors import InvalidInput
from epsgauge.stats import checks

LENGTH = 67  # tokens; the paper's


def sst2_tokens(
    path: str | os.PathLike[str], encoder: str, length: int = LENGTH
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token ids [n, length] of the sentences of SST-2 and their labels; `path` as for `sst2`."""
    sentences, labels = sst2(path)
    return tokens(sentences, encoder_folder(encoder), length), labels


def tokens(sentences: NDArray[np.str_], folder: Path, length: int) -> NDArray[np.int64]:
    """Ids [n, length] by the tokenizer of the encoder in a folder: longer ones are cut, shorter ones padded."""
    need_transformers()
    from transformers import AutoConfig, AutoTokenizer

    checks.within("length", length, "2 or more", np.asarray(checks.counts("length", length) >= 2))
    with reading(f"the tokenizer in {folder}"):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=True, trust_remote_code=False)
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id != config.pad_token_id:
        raise InvalidInput(
            f"tokenizer and config of the encoder in {folder} must have the same pad token, but it is "
            f"{tokenizer.pad_token_id} and {config.pad_token_id}."
        )
    if length > tokenizer.model_max_length:
        raise InvalidInput(
            f"length must be at most the {tokenizer.model_max_length} tokens that the encoder in {folder} takes, but "
            f"got {length}."
        )
    tokenizer.padding_side = "right"
    rows = tokenizer(sentences.tolist(), padding="max_length", truncation=True, max_length=length)
    return np.array(rows["input_ids"], dtype=np.int64)

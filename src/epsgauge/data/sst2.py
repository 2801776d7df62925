"""SST-2 from the TSV files of GLUE: sentences, and whether they are positive."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from epsgauge.data.files import content, located
from epsgauge.errors import InvalidInput

HEADER = "sentence\tlabel"


def sst2(path: str | os.PathLike[str]) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Sentences and labels 0 or 1, of train.tsv and dev.tsv in a folder, or of one such file."""
    place = located(path, "the SST-2 file or folder")
    files = [place]
    if place.is_dir():
        files = [file for name in ("train.tsv", "dev.tsv") if (file := place / name).is_file()]
    if not files:
        raise InvalidInput(f"the folder of SST-2 must hold train.tsv or dev.tsv, but {place} does not.")
    sentences: list[str] = []
    labels: list[int] = []
    for file in files:
        try:
            lines = content(file, "the SST-2 file").decode("utf-8").splitlines()
        except UnicodeDecodeError:
            raise InvalidInput(f"the SST-2 file {file} must be text in UTF-8, but is not.") from None
        if not lines or lines[0] != HEADER:
            raise InvalidInput(f"the SST-2 file {file} must begin with the line {HEADER!r}, but does not.")
        for number, line in enumerate(lines[1:], 2):
            sentence, tab, label = line.rpartition("\t")
            if not tab or label not in ("0", "1"):
                raise InvalidInput(
                    f"line {number} of {file} must be a sentence, a tab and 0 or 1, but is {line!r:.80}."
                )
            sentences.append(sentence.strip())
            labels.append(int(label))
    return np.array(sentences), np.array(labels)

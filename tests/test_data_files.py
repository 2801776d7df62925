"""Loaders of real data sets: tiny files of the same format, and the real ones where they are."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from epsgauge.data import files
from epsgauge.data.cifar10 import RECORD, cifar10
from epsgauge.data.idx import idx, read_idx
from epsgauge.data.sst2 import sst2
from epsgauge.errors import InvalidInput
from epsgauge.references import beside

# The real files, if they are in a folder data/ next to this project or where EPSGAUGE_DATA says.
NEAR = next(Path(__file__).parents[2].glob("*/data/cifar-10-batches-bin"), Path("nowhere/x")).parent
REAL = Path(os.environ.get("EPSGAUGE_DATA", NEAR))
FASHION = Path("/usr/share/datasets/fashion-mnist")


def idx_file(array, kind=0x08):
    header = bytes([0, 0, kind, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return header + array.tobytes()


def test_cifar10(tmp_path):
    rng = np.random.default_rng(0)
    records = rng.integers(0, 256, size=(5, RECORD), dtype=np.uint8)
    records[:, 0] = [3, 1, 4, 1, 5]
    (tmp_path / "data_batch_1.bin").write_bytes(records[:2].tobytes())
    (tmp_path / "data_batch_2.bin").write_bytes(records[2:4].tobytes())
    (tmp_path / "test_batch.bin").write_bytes(records[4:].tobytes())
    images, labels = cifar10(tmp_path)
    assert labels.tolist() == [3, 1, 4, 1, 5]
    assert images.shape == (5, 3, 32, 32)
    assert images.dtype == np.float32
    assert images[2, 1, 5, 7] == np.float32(records[2, 1 + 1024 + 5 * 32 + 7] / np.float32(255))


@pytest.mark.parametrize("packed", [False, True])
def test_idx(tmp_path, packed):
    rng = np.random.default_rng(0)
    pictures, classes = rng.integers(0, 256, size=(4, 6, 5), dtype=np.uint8), np.array([9, 0, 2, 2], np.uint8)
    pack = gzip.compress if packed else bytes
    (tmp_path / "images").write_bytes(pack(idx_file(pictures)))
    (tmp_path / "labels").write_bytes(pack(idx_file(classes)))
    images, labels = idx(tmp_path / "images", tmp_path / "labels")
    assert images.shape == (4, 1, 6, 5)
    assert np.array_equal(np.round(images[:, 0] * 255), pictures)
    assert labels.tolist() == [9, 0, 2, 2]
    (tmp_path / "wide").write_bytes(idx_file(np.arange(6, dtype=">i4").reshape(2, 3), 0x0C))
    assert read_idx(tmp_path / "wide").tolist() == [[0, 1, 2], [3, 4, 5]]


def test_sst2(tmp_path):
    (tmp_path / "train.tsv").write_text("sentence\tlabel\na fine film \t1\nno\ttabs spared\t0\n", encoding="utf-8")
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\nnaïve \t1\n", encoding="utf-8")
    sentences, labels = sst2(tmp_path)
    assert sentences.tolist() == ["a fine film", "no\ttabs spared", "naïve"]
    assert labels.tolist() == [1, 0, 1]
    assert sst2(tmp_path / "dev.tsv")[1].tolist() == [1]


def test_paths_are_seen_from_the_plans_folder(tmp_path, monkeypatch):
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\ngood\t1\n")
    monkeypatch.chdir("/")
    with beside(tmp_path):
        assert sst2("dev.tsv")[0].tolist() == ["good"]


BAD = {
    "nowhere": (lambda d: cifar10(d / "no"), "the folder of the CIFAR-10 binary files must be there, but"),
    "python version": (lambda d: cifar10(d), "must hold data_batch_1.bin and so on"),
    "cut short": (lambda d: cifar10(d / "short"), f"must be records of {RECORD} bytes, but has 10 bytes"),
    "labels": (lambda d: cifar10(d / "labels"), "labels of CIFAR-10 must be 0 to 9, but a file in"),
    "no idx": (lambda d: read_idx(d / "text"), "must begin with two zero bytes and a type"),
    "idx cut": (lambda d: read_idx(d / "cut"), "must have 28 bytes by its header, but has 27"),
    "gzip cut": (lambda d: read_idx(d / "cut.gz"), "is damaged: its compressed content ends too early"),
    "idx shapes": (lambda d: idx(d / "three", d / "two"), "labels must be one for each of 2 images"),
    "no tsv": (lambda d: sst2(d / "short"), "must hold train.tsv or dev.tsv"),
    "no header": (lambda d: sst2(d / "text"), "must begin with the line 'sentence\\\\tlabel'"),
    "no label": (lambda d: sst2(d / "bad.tsv"), "line 2 of .* must be a sentence, a tab and 0 or 1, but is 'what'"),
    "not text": (lambda d: sst2(d / "cut.gz.tsv"), "must be text in UTF-8"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_is_a_sentence(tmp_path, case):
    (tmp_path / "short").mkdir()
    (tmp_path / "short" / "data_batch_1.bin").write_bytes(bytes(10))
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "test_batch.bin").write_bytes(b"\xff" * RECORD)
    (tmp_path / "text").write_text("hello, this is text")
    three = idx_file(np.zeros((2, 2, 3), np.uint8))
    (tmp_path / "three").write_bytes(three)
    (tmp_path / "two").write_bytes(idx_file(np.zeros(3, np.uint8)))
    (tmp_path / "cut").write_bytes(three[:-1])
    (tmp_path / "cut.gz").write_bytes(gzip.compress(three)[:-9])
    (tmp_path / "cut.gz.tsv").write_bytes(b"sentence\tlabel\n\xff\xfe\t1\n")
    (tmp_path / "bad.tsv").write_text("sentence\tlabel\nwhat\n")
    call, sentence = BAD[case]
    with pytest.raises(InvalidInput, match=sentence):
        call(tmp_path)


@pytest.mark.skipif(not (REAL / "cifar-10-batches-bin").is_dir(), reason="the CIFAR-10 binary files are not here")
def test_the_real_cifar10():
    images, labels = cifar10(REAL / "cifar-10-batches-bin")
    assert len(images) == 12_000
    assert set(labels) == set(range(10))
    assert 0.4 < images.mean() < 0.55


@pytest.mark.skipif(not (REAL / "sst-2").is_dir(), reason="the SST-2 files are not here")
def test_the_real_sst2():
    sentences, labels = sst2(REAL / "sst-2")
    assert len(sentences) > 60_000
    assert 0.4 < labels.mean() < 0.65


@pytest.mark.skipif(not FASHION.is_dir(), reason="Debian's dataset-fashion-mnist is not installed")
def test_the_real_fashion_mnist():
    images, labels = idx(FASHION / "train-images-idx3-ubyte.gz", FASHION / "train-labels-idx1-ubyte.gz")
    assert images.shape == (60_000, 1, 28, 28)
    assert np.bincount(labels).tolist() == [6000] * 10


def test_what_unpacks_to_too_much_is_a_sentence(tmp_path, monkeypatch):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(1000)))
    assert files.content(path, "the file") == bytes(1000)
    monkeypatch.setattr(files, "MOST_BYTES", 999)
    with pytest.raises(InvalidInput, match=r"the file .*a\.gz may unpack to 0 GB at most, but is larger. Unpack it"):
        files.content(path, "the file")

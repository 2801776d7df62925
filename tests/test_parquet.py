"""Scores as Parquet: what comes back, and what is refused."""

import contextlib
import re
import sys
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.scores import arrow
from epsgauge.scores.table import Scores


def refused(sentence, path, adjacency="substitute"):
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        Scores.read(path, adjacency=adjacency, models="independent")


def written(path, metadata=None, **columns):
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path)
    return path


def test_every_bit_comes_back(tmp_path):
    score = np.array([5e-324, -0.0, np.nextafter(1.0, 2.0), -1.7976931348623157e308])
    names = ["", "été", "a,b\r\n", "日本"]
    scores = Scores([0, 0, 7, 10**9], [0, 3, 1, 0], [1, 0, 0, 1], score, "add-remove", id=names, group=names[::-1])
    path = tmp_path / "a.parquet"
    scores.write(path)
    again = Scores.read(path)
    assert again.score.tobytes() == score.tobytes()
    assert (again.id.tolist(), again.group.tolist(), again.adjacency) == (names, names[::-1], "add-remove")
    for name in ("model", "pair", "bit"):
        assert getattr(again, name).tolist() == getattr(scores, name).tolist()
    assert pq.read_schema(path).metadata[b"epsgauge.adjacency"] == b"add-remove"
    assert pq.read_schema(path).names == ["model", "pair", "bit", "score", "id", "group"]


def test_files_of_other_programs(tmp_path):
    path = written(tmp_path / "a.parquet", bit=[True, False], score=pa.array([1, 2], pa.float32()), note=["x", None])
    read = partial(Scores.read, adjacency="substitute", models="independent")
    scores = read(path)
    assert (scores.bit.tolist(), scores.score.tolist(), scores.model.tolist()) == ([1, 0], [1.0, 2.0], [0, 1])
    named = pa.array(["a", "b"]).dictionary_encode()
    scores = read(written(path, bit=[1, 0], score=[1, 2], id=[7, 8], group=named))
    assert (scores.id.tolist(), scores.group.tolist()) == (["7", "8"], ["a", "b"])


def test_what_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    refused('a.parquet must have a column score, but has: bit, scores. Did you mean "scores"?',
            written(path, bit=[1], scores=[1.0]))  # fmt: skip
    refused("a.parquet: score must have a value in every row, but row 1 (the first is 0) has none.",
            written(path, bit=[1, 0], score=[1.0, None]))  # fmt: skip
    refused(
        "a.parquet: score must be a column of numbers, but its type is string.", written(path, bit=[1], score=["1"])
    )
    refused("member/non-member, yes/no), but row 0 (the first is 0) has '2'.", written(path, bit=["2"], score=[1]))
    refused("a.parquet: bit must be 0 or 1, but got 2 at index 0.", written(path, bit=[2], score=[1.0]))
    refused("a.parquet: score must be finite, but row 0", written(path, bit=[1], score=[np.nan]))
    refused("a.parquet has columns and no rows.", written(path, bit=pa.array([], pa.int64()), score=pa.array([], "f8")))
    refused(
        "a.parquet has a column pair and none that says of which model.", written(path, pair=[0], bit=[1], score=[1])
    )
    missing = written(path, bit=[1], score=[1.0])
    refused("a.parquet does not say its adjacency.", missing, adjacency=None)
    refused("or add epsgauge.adjacency to its metadata.", missing, adjacency=None)
    twice = pa.table([pa.array([1]), pa.array([1.0]), pa.array([2.0])], names=["bit", "score", "score"])
    pq.write_table(twice, path)
    refused("a.parquet must have one column score, but has 2.", path)


def test_metadata_that_say_two_things(tmp_path):
    key, path = b"epsgauge.adjacency", tmp_path / "a.parquet"

    def stating(*values):
        kept = pa.KeyValueMetadata([(key, value) for value in values])
        pq.write_table(pa.table({"bit": [1], "score": [0.5]}).replace_schema_metadata(kept), path)
        return path

    assert Scores.read(stating(b"substitute", b"substitute"), models="one").adjacency == "substitute"
    sentence = "a.parquet says adjacency=substitute and also adjacency=add-remove in its metadata. Write it again with"
    refused(sentence, stating(b"substitute", b"add-remove"))


@pytest.mark.parametrize("value", ["add-remove", "substitute"])
def test_metadata_of_the_file_and_of_its_schema(tmp_path, value):
    """Polars writes them to the footer alone, beside the schema that Arrow reads."""
    pytest.importorskip("pyarrow", minversion="16")
    path = tmp_path / "a.parquet"
    table = pa.table({"bit": [1], "score": [0.5]})
    for held in ({}, {"epsgauge.adjacency": "add-remove"}):
        schema = table.schema.with_metadata(held)
        with pq.ParquetWriter(path, schema) as out:
            out.add_key_value_metadata({"epsgauge.adjacency": value})
            out.write_table(table.cast(schema))
        if held and value == "substitute":
            refused("and also adjacency=", path)
        else:
            assert Scores.read(path, models="one").adjacency == value


def test_damaged_files(tmp_path):
    path = tmp_path / "a.parquet"
    Scores.from_in_out(np.arange(500.0), np.arange(500.0), adjacency="substitute", models="independent").write(path)
    whole = path.read_bytes()
    for bad in (b"bit,score\n1,2\n", b"", b"PK\x03\x04"):
        path.write_bytes(bad)
        refused("a.parquet is not a Parquet file.", path)
    for bad in (whole[:-30], whole[: len(whole) // 2], whole[:4], whole[:-9] + b"\xff" * 5 + whole[-4:]):
        path.write_bytes(bad)
        refused("a.parquet is damaged: it cannot be read to the end. Write it again.", path)
    (tmp_path / "b.csv").write_bytes(whole)
    refused("b.csv is a Parquet file and not CSV. Let its name end in .parquet.", tmp_path / "b.csv")


def test_a_bit_that_was_flipped(tmp_path):
    """Pages have checksums: no score changes in silence, and nothing ends in a traceback.

    Read in this process: a child for each of them would take minutes.
    """
    path = tmp_path / "a.parquet"
    scores = Scores.from_in_out(np.arange(50.0), np.arange(50.0), adjacency="substitute", models="independent")
    scores.write(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.integers(4, len(whole), 150):
        changed = bytearray(whole)
        changed[at] ^= 1 << int(rng.integers(8))
        with contextlib.suppress(InvalidInput):
            again, _ = arrow.parquet(bytes(changed), "a.parquet", {})
            assert (again["score"].tolist(), again["bit"].tolist()) == (scores.score.tolist(), scores.bit.tolist())


def test_without_the_extra(tmp_path, monkeypatch):
    path = written(tmp_path / "a.parquet", bit=[1], score=[1.0])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for use in (lambda: Scores.read(path), Scores([0], [0], [1], [0.5], "substitute").write):
        with pytest.raises(MissingExtra, match=re.escape("pip install '.[parquet]'")):
            use(tmp_path / "b.parquet") if use.__name__ == "write" else use()

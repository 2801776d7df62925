"""Files of scores that are small and hold much: read in little memory, or one sentence."""

import io
import json
import os
import re
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from epsgauge.errors import InvalidInput
from epsgauge.scores import archive, size
from epsgauge.scores.table import TOGETHER, Scores

ROOM = 2 * 2**30
READ = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
from epsgauge.errors import InvalidInput
from epsgauge.scores.table import TOGETHER, Scores
said = []
for path in sys.argv[2:]:
    try:
        said.append(len(Scores.read(path, adjacency="substitute", models="independent")))
    except InvalidInput as error:
        said.append(str(error))
print(json.dumps(said))
"""


def read_in(room, *paths):
    """How many rows each file has, or what is wrong with it, in a process that has so much memory."""
    command = [sys.executable, "-c", READ, str(room), *map(str, paths)]
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # every thread has room of its own
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=alone)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def header(kind, rows):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({rows},)}}\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def packed(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, raw in members.items():
            out.writestr(f"{name}.npy", raw)
    return path


def array(values):
    out = io.BytesIO()
    np.save(out, np.asarray(values))
    return out.getvalue()


@pytest.mark.skipif(sys.platform != "linux", reason="it limits address space")
def test_a_small_file_takes_little_memory(tmp_path):
    n, long = 100_000, "x" * 900
    one_long = tmp_path / "long.csv"
    one_long.write_text("bit,score,id\n" + "".join(f"{i % 2},1.5,{i}\n" for i in range(n)) + f"1,2,{long}\n")
    too_long = tmp_path / "longer.csv"
    too_long.write_text("bit,score,id\n" + "".join(f"{i % 2},1.5,{i}\n" for i in range(1000)) + f"1,2,{'x' * 10**6}\n")
    often = tmp_path / "often.parquet"  # 360 MB of texts, and four times as much in an array of one width
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(4 * n, np.int32)), pa.array([long]))
    bit = np.arange(4 * n) % 2
    pq.write_table(pa.table({"bit": bit, "score": np.ones(4 * n), "id": words, "group": words}), often)
    assert often.stat().st_size < 200_000
    many = tmp_path / "many.parquet"  # runs of one value: 9 rows take as much as 30 million
    flat = pa.array(np.zeros(10**6, np.int8))
    table = pa.table({"bit": pa.chunked_array([flat] * 30), "score": pa.chunked_array([flat] * 30)})
    pq.write_table(table, many, row_group_size=10**7)
    bomb = packed(tmp_path / "bomb.npz", bit=header("<i8", 10**7), score=header("<f8", 10**9))
    wide = packed(tmp_path / "wide.npz", bit=array([1, 0]), score=array([1.0, 2.0]), id=header("<U500000000", 2))
    said = read_in(ROOM, one_long, too_long, often, many, bomb, wide)
    assert (said[0], said[2]) == (n + 1, 4 * n)
    assert re.search(r"id must be texts of at most 1,000 characters, but row 1000 .* has 1,000,000\.", said[1])
    for sentence in said[3:]:
        assert "may unpack to 20,000,000 rows and 2 GB at most, but is larger. Leave out the columns" in sentence


@pytest.mark.skipif(sys.platform != "linux", reason="it limits address space")
def test_what_does_not_fit_is_a_sentence(tmp_path):
    n = 2 * 10**7
    paths = [packed(tmp_path / "a.npz", bit=array(np.zeros(n, bool)), score=array(np.zeros(n, np.float32)))]
    paths.append(tmp_path / "a.parquet")
    pq.write_table(pa.table({"bit": np.zeros(n, np.int8), "score": np.zeros(n, np.float32)}), paths[1])
    for path, sentence in zip(paths, read_in(2**30, *paths), strict=True):
        assert sentence == f"{path} does not fit into memory. Judge it on a machine with more, or fewer rows."


def test_a_header_of_very_many_columns_takes_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(np, "loadtxt", None)  # which has a type with all of them
    path = tmp_path / "a.csv"
    path.write_text(f"bit,score{',' * 10**5}\n1,0.5{',' * 10**5}\n")
    assert len(Scores.read(path, adjacency="substitute", models="one")) == 1


def test_what_nobody_reads_counts_for_nothing(tmp_path):
    path = packed(tmp_path / "a.npz", bit=array([1]), score=array([0.5]), logits=header("<f8", 10**12))
    assert len(Scores.read(path, adjacency="substitute", models="one")) == 1


def test_texts_that_no_file_can_hold():
    n = 2 * TOGETHER
    for text in ("a\0", "\ud800"):
        group = [*("é" for _ in range(n - 1)), text]
        with pytest.raises(
            InvalidInput, match=re.escape(f"group must be texts that a file can hold, but got {text!r}")
        ):
            Scores(range(n), [0] * n, [1] * n, [0.5] * n, "substitute", group=group)
    with pytest.raises(InvalidInput, match="id must have a text everywhere, but some are masked"):
        Scores([0, 1], [0, 0], [1, 0], [0.5, 1], "substitute", id=np.ma.array(["a", "b"], mask=[False, True]))
    assert Scores([0, 1], [0, 0], [1, 0], [0.5, 1], "substitute", id=np.array([b"a", b"\xc3\xa9"])).id.tolist() == [
        "a",
        "é",
    ]


def test_no_file_is_written_that_could_not_be_read(monkeypatch, tmp_path):
    scores = Scores([0, 1], [0, 0], [1, 0], [0.5, 1], "substitute", id=["a", "b" * 100])
    monkeypatch.setattr(size, "MOST_BYTES", 799)
    with pytest.raises(
        InvalidInput, match=r"id has 2 texts, of up to 100 characters, which need too much room in a .npz"
    ):
        scores.write(tmp_path / "a.npz")
    assert archive.inside(packed(tmp_path / "b.npz", id=array(["ab"])).read_bytes())[0][0] == 1

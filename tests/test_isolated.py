"""Files of strangers that PyArrow reads: what crashes it, unpacks without end or has strange names is one sentence."""

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import refused

from epsgauge.errors import InvalidInput
from epsgauge.reporting.viewer import upload
from epsgauge.scores import isolated, size
from epsgauge.scores.importers.source import Source
from epsgauge.scores.importers.table import import_scores
from epsgauge.scores.table import Scores

ABORTS = Path(__file__).parent / "data" / "aborts.parquet"  # 531 bytes, one bit of its footer turned
AS_READER = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from epsgauge.scores import isolated\n"
AND_RUN = "\nisolated.main(sys.argv[2])"


def dataset(folder, column, values, **options):
    """As `save_to_disk` writes it."""
    folder.mkdir()
    batch = pa.record_batch([values], names=[column])
    with pa.ipc.new_stream(str(folder / "data.arrow"), batch.schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
        out.write_batch(batch)
    return folder


def of_privacy_estimates(folder, score, bit):
    folder.mkdir()
    dataset(folder / "scores", "score", score)
    dataset(folder / "challenge_bits", "challenge_bit", bit)
    return partial_import(folder)


def partial_import(source):
    return lambda: import_scores(source, tool="privacy-estimates", adjacency="add-remove", models="one")


def test_a_file_that_aborts_pyarrow_is_one_sentence(tmp_path):
    sentence = "makes PyArrow crash (SIGABRT): it is damaged, or was made to do that. Write it again, or as CSV."
    assert sentence in refused("scores", ABORTS, "--one-model")
    with pytest.raises(InvalidInput, match=re.escape(f"mine.parquet {sentence}")):
        upload.scores_of(ABORTS.read_bytes(), "mine.parquet", {"models": "one"})


@pytest.mark.parametrize(
    ("child", "sentence"),
    [
        ("import os; os.kill(os.getpid(), 11)", "a.parquet makes PyArrow crash (SIGSEGV)"),
        ("import os; os.kill(os.getpid(), 9)", "a.parquet does not fit into memory."),
        ("raise SystemExit(3)", "a.parquet cannot be read: the process that reads it ended with exit code 3."),
        ("print('[]')", "a.parquet cannot be read: the process that reads it ended with exit code 0."),
        ("""print('{"columns": {"bit": ["O", 1, null]}, "stated": {}}AAAAAAAA')""", "ended with exit code 0."),
        (
            AS_READER + "isolated.READERS['parquet'] = lambda raw, name, names: bytearray(2**35)" + AND_RUN,
            "a.parquet does not fit into memory.",
        ),
        (
            AS_READER
            + "isolated.CPU_SECONDS = 1\ndef loop(raw, name, names):\n    while True: pass\n"
            + "isolated.READERS['parquet'] = loop"
            + AND_RUN,
            "a.parquet takes longer than 10 minutes to read.",
        ),
        (
            AS_READER + "isolated.READERS['parquet'] = lambda raw, name, names: {}['strange']" + AND_RUN,
            "a.parquet is damaged: it cannot be read (KeyError: 'strange'). Write it again.",
        ),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="it limits address space")
def test_whatever_ends_the_child_is_a_sentence(tmp_path, monkeypatch, child, sentence):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1" + bytes(10**6))  # more than a pipe holds
    words = [sys.executable, "-P", "-c", child, json.dumps(sys.path)]
    monkeypatch.setattr(isolated, "python_words", lambda function, question: [*words, question])
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        Scores.read(path, adjacency="substitute", models="one")


def test_names_of_columns_that_are_not_utf8(tmp_path):
    out = io.BytesIO()
    pq.write_table(pa.table({"bit": [1], "score": [0.5], "zzzz": [1]}), out, store_schema=False)
    path = tmp_path / "a.parquet"
    path.write_bytes(out.getvalue().replace(b"zzzz", b"\xff\xfe\xfd\xfc"))
    sentence = "must have names of columns in UTF-8, but has others. Rename its columns, and write it again."
    with pytest.raises(InvalidInput, match=re.escape(f"a.parquet {sentence}")):
        Scores.read(path, adjacency="substitute", models="one")
    folder = dataset(tmp_path / "scores", "zzzz", pa.array([0.5]))
    file = folder / "data.arrow"
    file.write_bytes(file.read_bytes().replace(b"zzzz", b"\xff\xfe\xfd\xfc"))
    with pytest.raises(InvalidInput, match=re.escape(f"data.arrow {sentence}")):
        Source(folder, "").dataset("score")


def test_streams_of_arrow(tmp_path):
    wide = pa.record_batch([pa.array(["x", "y"]), pa.array([0.5, 1.5])], names=["text", "score"])
    (tmp_path / "scores").mkdir()
    with pa.ipc.new_stream(str(tmp_path / "scores" / "data.arrow"), wide.schema) as out:
        for _ in range(2):
            out.write_batch(wide)
    assert Source(tmp_path / "scores", "").dataset("score").tolist() == [0.5, 1.5, 0.5, 1.5]
    with pytest.raises(InvalidInput, match=r"must have one column bit, but has: text, score\."):
        Source(tmp_path / "scores", "").dataset("bit")
    with pytest.raises(InvalidInput, match=r"text must be a column of numbers, but its type is string\."):
        Source(tmp_path / "scores", "").dataset("text")
    none = dataset(tmp_path / "none", "score", pa.array([], pa.float64()))
    assert len(Source(none, "").dataset("score")) == 0


def runs(n):
    return pa.RunEndEncodedArray.from_arrays(pa.array([n], pa.int32()), pa.array([0.5]))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: pa.nulls(6 * 10**8), "may unpack to 20,000,000 rows and 2 GB at most, but is larger."),
        (lambda: runs(6 * 10**8), "may unpack to 20,000,000 rows and 2 GB at most, but is larger."),
        (lambda: runs(1000), "score must be a column of numbers, but its type is run_end_encoded"),
        (lambda: pa.nulls(1000), "score must have a value in every row, but row 0 (the first is 0) has none."),
    ],
)
def test_a_stream_that_expands_is_refused_before(tmp_path, make, sentence):
    load = of_privacy_estimates(tmp_path / "a", make(), pa.array([1]))
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        load()
    assert (tmp_path / "a" / "scores" / "data.arrow").stat().st_size < 1000


def test_importers_have_the_limit_of_files(tmp_path):
    """As few rows as take no time, and before they are made: 3e8 of them took 10 GB."""
    larger = "may unpack to 20,000,000 rows and 2 GB at most, but is larger."
    counts = dict.fromkeys(("TP", "FN", "FP", "TN"), 300_000_000)
    with pytest.raises(InvalidInput, match=re.escape(f"the object {larger}")):
        partial_import(counts)()
    few = size.Limit(rows=15)
    with size.limited(few):
        for n, fits in ((8, False), (7, True)):
            folder = tmp_path / f"meter-{n}"
            folder.mkdir()
            for model in (0, 1):
                np.savez(folder / f"attack_result_{model}.npz", scores=np.zeros(n), memberships=np.arange(n) % 2)
            parts = dataset(tmp_path / f"parts-{n}", "score", pa.array(np.zeros(n)))
            (parts / "more.arrow").write_bytes((parts / "data.arrow").read_bytes())
            text = tmp_path / f"{n}.json"
            text.write_text(f'{{"attack_scores": {[0.5] * 2 * n}, "challenge_bits": {[0, 1] * n}}}')
            for load in (
                lambda f=folder: import_scores(f, tool="privacy-meter", adjacency="add-remove"),
                lambda f=parts: Source(f, "").dataset("score"),
                partial_import(text),
            ):
                if fits:
                    assert len(load()) == 2 * n
                else:
                    with pytest.raises(InvalidInput, match=re.escape(larger)):
                        load()


def test_a_csv_of_an_importer_is_limited_and_keeps_what_is_wanted(tmp_path):
    for name in ("df_train_user.csv", "df_test_user.csv"):
        (tmp_path / name).write_text("user,score,note\n" + "a,0.5,x\n" * 20)
    read = lambda: import_scores(tmp_path, tool="privacyguard", adjacency="add-remove")  # noqa: E731
    assert len(read()) == 40
    with size.limited(size.Limit(rows=20)), pytest.raises(InvalidInput, match="may unpack to"):
        read()
    (tmp_path / "df_train_user.csv").write_text("user,score\na,0.5\nb,none\n")
    with pytest.raises(InvalidInput, match=r"must have score, but has: user\."):
        read()
    (tmp_path / "df_train_user.csv").write_text("")
    with pytest.raises(InvalidInput, match=r"is not CSV in UTF-8 with a header: it is empty\."):
        read()


@pytest.mark.parametrize("guesses", ["[[0, 1], [1]]", "[[0, 1], [1, {}]]", "[[[0]]]", '"x"', "[1" + "0" * 400 + "]"])
def test_ragged_results_of_privacy_meter(tmp_path, guesses):
    path = tmp_path / "a.json"
    path.write_text(f'{{"true_labels": [0, 1], "predicted_labels": {guesses}}}')
    with pytest.raises(InvalidInput, match=r"predicted_labels must be a list of numbers, or lists of them that are eq"):
        import_scores(path, tool="privacy-meter", adjacency="add-remove")

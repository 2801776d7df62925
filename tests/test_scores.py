"""The table of scores: what it refuses, how it is made, and its files."""

import csv
import io
import pickle
import re
import sys
import zipfile
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epsgauge.errors import InvalidInput
from epsgauge.scores import parquet, text
from epsgauge.scores.said import BITS
from epsgauge.scores.table import COLUMNS, Scores

finite = st.floats(allow_nan=False, allow_infinity=False)
# what a spreadsheet or a shell can put into a name; NUL and lone surrogates are no text
words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


def table(**changes):
    columns = {"model": [0, 0, 1], "pair": [0, 1, 0], "bit": [1, 0, 0], "score": [0.5, 0.1, -2.0]}
    return Scores(**{**columns, "adjacency": "substitute", **changes})


@st.composite
def tables(draw):
    rows = draw(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 99), st.booleans(), finite), min_size=1))
    rows = list({(m, p): (m, p, b, s) for m, p, b, s in rows}.values())
    model, pair, bit, score = (list(column) for column in zip(*rows, strict=True))
    names = {
        name: draw(st.none() | st.lists(words, min_size=len(rows), max_size=len(rows))) for name in ("id", "group")
    }
    adjacency, bits = draw(st.sampled_from(["substitute", "add-remove"])), draw(st.sampled_from(list(BITS)))
    return Scores(model, pair, bit, score, adjacency, **names, bits=bits)


def same(a, b):
    assert (a.adjacency, a.bits) == (b.adjacency, b.bits)
    for name in COLUMNS:
        one, other = getattr(a, name), getattr(b, name)
        assert (one is None) == (other is None), name
        if one is not None:
            assert one.dtype.kind == other.dtype.kind
            assert one.tolist() == other.tolist(), name


def refused(sentence, make, *args, **kwargs):
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        make(*args, **kwargs)


# The table


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"adjacency": "both"}, 'adjacency must be "substitute", "add-remove" or "label-only", but got \'both\'.'),
        ({"bit": [0, 2, 1]}, "bit must be 0 or 1, but got 2 at index 1."),
        ({"bit": [0, 0.5, 1]}, "bit must be 0 or 1, but got 0.5 at index 1."),
        ({"score": [0, 1, np.nan]}, "score must be finite, but row 2 (the first is 0) has nan."),
        ({"score": [0, -np.inf, 1]}, "score must be finite, but row 1 (the first is 0) has -inf."),
        ({"score": ["a", "b", "c"]}, "score must be a number or an array of numbers"),
        ({"model": [0, -1, 2]}, "model must be a whole number, 0 or more, but got -1 at index 1."),
        ({"pair": [0, 1, 0.5]}, "pair must be a whole number, 0 or more, but got 0.5 at index 2."),
        ({"pair": [0, 1]}, "must be lists of one length, but got the shapes model (3,), pair (2,)"),
        ({"id": ["a"]}, "id (1,)"),
        ({"score": [[0.5, 0.1, -2.0]]}, "score (1, 3)"),
        (
            {"model": [5, 1, 5], "pair": [3, 3, 3]},
            "model 5, pair 3 is in the rows 0 and 2. Number the pairs of a model.",
        ),
    ],
)
def test_what_a_table_refuses(changes, sentence):
    refused(sentence, table, **changes)


def test_a_table_keeps_its_own_columns():
    score = np.array([1.0, 2.0, 3.0])
    scores = table(score=score, id=["a", "b", "c"])
    score[0] = 9.0
    assert scores.score[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        scores.bit[0] = 0


def test_some_rows_of_a_table():
    scores = table(id=["a", "b", "c"])
    some = scores[scores.bit == 0]
    assert (len(scores), len(some), some.id.tolist(), some.group) == (3, 2, ["b", "c"], None)
    assert scores.models.tolist() == [0, 1]
    assert repr(scores[1:]) == "<Scores: 2 rows of 2 models, adjacency substitute>"
    assert len(scores[np.zeros(3, bool)]) == 0


@given(ins=st.lists(finite, max_size=30), outs=st.lists(finite, max_size=30))
def test_ins_and_outs_alternate(ins, outs):
    scores = Scores.from_in_out(ins, outs, adjacency="add-remove", models="independent")
    assert scores.score[scores.bit == 1].tolist() == ins
    assert scores.score[scores.bit == 0].tolist() == outs
    assert scores.model.tolist() == list(range(len(ins) + len(outs)))
    assert not scores.pair.any()
    for first in range(len(scores)):  # any number of first models is a fair part of both
        assert abs(scores.bit[:first].sum() - first * len(ins) / len(scores)) <= 0.5 + 1e-9


def test_ins_and_outs_must_be_lists():
    make = partial(Scores.from_in_out, adjacency="substitute", models="independent")
    refused("ins must be one list of scores, but got an array of shape (1, 1).", make, [[1]], [2])
    refused("outs must not be NaN, but got nan at index 0.", make, [1], [np.nan])


def test_joined_by_id():
    scores = Scores.joined({"b": 2.0, "a": 1.0}, {"a": 0, "b": 1}, adjacency="substitute", models="independent")
    assert (scores.id.tolist(), scores.bit.tolist(), scores.score.tolist()) == (["b", "a"], [1, 0], [2.0, 1.0])
    assert scores.model.tolist() == [0, 1]
    same(
        scores,
        Scores.joined((["b", "a"], [2.0, 1.0]), (["a", "b"], [0, 1]), adjacency="substitute", models="independent"),
    )
    numbered = Scores.joined({7: 2.0}, (np.array([7]), [1]), adjacency="substitute", models="independent")
    assert numbered.id.tolist() == ["7"]


@pytest.mark.parametrize(
    ("scores", "bits", "sentence"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, "bits must have every id of scores, but 1 of 2 are missing, the first is 'b'."),
        ({"a": 1.0}, {"a": 1, "x": 0}, "scores must have every id of bits, but 1 of 2 are missing, the first is 'x'."),
        ((["a", "b", "a"], [1, 2, 3]), {"a": 1}, "scores must have every id once, but 'a' stands there 2 times."),
        ({"a": 1.0}, (["a", "a"], [0, 0]), "bits must have every id once, but 'a' stands there 2 times."),
        ((["a"], [1, 2]), {"a": 1}, "scores must have as many ids as values, but got 1 and 2."),
        ({"a": 1.0}, {"a": 3}, "bit must be 0 or 1, but got 3 at index 0."),
        ([("a", 1)], {"a": 1}, "scores must be a mapping id -> value or a tuple (ids, values), but got [('a', 1)]."),
    ],
)  # fmt: skip
def test_a_misalignment_is_an_error(scores, bits, sentence):
    refused(sentence, Scores.joined, scores, bits, adjacency="substitute", models="independent")


# Files


@settings(max_examples=20)
@given(tables(), st.sampled_from(["s.csv", "s.npz", "s.parquet"]))
def test_files_give_back_what_was_written(tmp_path_factory, scores, name):
    path = tmp_path_factory.getbasetemp() / name
    scores.write(path)
    same(scores, Scores.read(path))
    same(
        scores,
        Scores.read(str(path), adjacency=scores.adjacency, bits=scores.bits),
    )


@given(tables())
def test_both_readers_of_csv_agree(scores):
    """NumPy's in C, and the slow one that names lines."""
    columns = {name: getattr(scores, name) for name in COLUMNS if getattr(scores, name) is not None}
    rows = text.render(columns, {"adjacency": "substitute"}).decode().split("\n", 2)[2]
    fast = text._fast(rows, list(columns))
    slow = text._careful(rows, list(columns), "a.csv", 2)
    assert slow["score"] == scores.score.tolist()
    if fast is None:
        assert rows.rstrip().count("\n") >= len(scores)  # it leaves only names of many lines to the other
    else:
        assert {name: list(column) for name, column in fast.items()} == slow


def written(tmp_path, content, name="a.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_columns_are_found_by_their_header(tmp_path):
    path = written(tmp_path, '\ufeffscore,note,bit\r\n0.5,"a, b",1\r\n\r\n-1e-3,été,0\r\n')
    scores = Scores.read(path, adjacency="add-remove", models="independent")
    assert (scores.score.tolist(), scores.bit.tolist()) == ([0.5, -1e-3], [1, 0])
    assert (scores.model.tolist(), scores.pair.tolist()) == ([0, 1], [0, 0])  # every row per model of its own
    assert scores.id is scores.group is None
    spaced = Scores.read(written(tmp_path, '"bit", "score"\n1, 0.5\n'), adjacency="add-remove", models="one")
    assert (spaced.score.tolist(), spaced.bit.tolist()) == ([0.5], [1])


@pytest.mark.parametrize(("one", "zero"), [("1.0", "0.0"), ("True", "False"), ('"1"', " 0")])
def test_bits_as_other_programs_write_them(tmp_path, one, zero):
    path = written(tmp_path, f"bit,score\n{one},2\n{zero},1\n")
    assert Scores.read(path, adjacency="substitute", models="one").bit.tolist() == [1, 0]


def test_standard_input_is_csv(monkeypatch):
    raw = b"# epsgauge scores, adjacency=add-remove\nbit,score\n1,2.5\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(raw)))
    scores = Scores.read("-", models="one")
    assert (scores.adjacency, scores.score.tolist()) == ("add-remove", [2.5])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"bit\n1\n")))
    refused("standard input must have a column score, but has: bit.", Scores.read, "-")


@pytest.mark.parametrize("name", ["a.csv", "a.npz", "a.parquet"])
def test_the_adjacency_of_a_file(tmp_path, name):
    path = tmp_path / name
    table(adjacency="add-remove").write(path)
    assert Scores.read(path).adjacency == "add-remove"
    other = partial(Scores.read, adjacency="substitute")
    refused("says that its adjacency is add-remove, but adjacency is substitute.", other, path)
    if name == "a.csv":
        path.write_text(path.read_text(encoding="utf-8").replace("add-remove", "swap"))
    elif name == "a.parquet":
        path.write_bytes(parquet.render({"bit": np.array([1]), "score": np.array([0.5])}, {"adjacency": "swap"}))
    else:
        np.savez(path, bit=[1], score=[0.5], adjacency="swap")
    refused(f'{name} must be "substitute", "add-remove" or "label-only", but got \'swap\'.', Scores.read, path)
    path = written(tmp_path, "bit,score\n1,2\n")
    refused("a.csv does not say its adjacency. Pass adjacency as substitute", Scores.read, path)
    refused(
        'adjacency must be "substitute", "add-remove" or "label-only", but got \'x\'.', Scores.read, path, adjacency="x"
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "a.csv is empty. Write a header with the columns bit and score"),
        ("# only a comment\n\n", "a.csv is empty."),
        ("bit,score\n", "a.csv has a header and no rows."),
        ("1,0.5\n0,0.1\n", "a.csv has no header. Make its first line the names of the columns"),
        ("bit,scoer\n1,2\n", 'a.csv must have a column score, but has: bit, scoer. Did you mean "scoer"?'),
        ("bit;score\n1;2\n", "a.csv must have commas between its columns, but has: bit;score."),
        ("bit,score,bit\n1,2,1\n", "a.csv must have one column bit, but has 2."),
        ("# x\nbit,score\n1,2\n0,abc\n", "a.csv, line 4: score must be a finite number, but got 'abc'."),
        ("bit,score\n1,2\n0,\n", "a.csv, line 3: score must be a finite number, but got ''."),
        ("bit,score\n1,nan\n", "a.csv, line 2: score must be a finite number, but got 'nan'."),
        ("bit,score\n1,1_0\n", "a.csv, line 2: score must be a finite number, but got '1_0'."),
        ("bit,score\n2,1\n", "member/non-member, yes/no), but got '2'."),
        ("bit,score\nmaybe,1\n", "true/false, member/non-member, yes/no), but got 'maybe'."),
        ("model,bit,score\n0.5,1,1\n", "a.csv, line 2: model must be a whole number, 0 or more, but got '0.5'."),
        ("model,bit,score\n-1,1,1\n", "a.csv, line 2: model must be a whole number, 0 or more, but got '-1'."),
        ("bit,score\n1,2\n1,2,3\n", "a.csv, line 3: 3 cells, but the header has 2 columns."),
        ("bit,score,note\n1,2,x\n1,2\n", "a.csv, line 3: 2 cells, but the header has 3 columns."),
        ('bit,score,id\n1,2,"x\n', "a.csv, line 2: not CSV: unexpected end of data."),
        ('bit,score,id\n1,2,"x\n0,1,y\n0,1,"z"\n', "a.csv, line 4: not CSV"),
        ('bit,score,id\n1,2,"x\n0,1,y\n0,1,z"w\n', "a.csv, line 4: not CSV"),
        ("pair,bit,score\n0,1,1\n", "a.csv has a column pair and none that says of which model. Add the column model,"),
        ("model,bit,score\n3,1,1\n3,0,1\n", "a.csv: each pair of a model must stand once in scores, but model 3, p"),
        (pickle.dumps([1, 2]), "a.csv is not CSV in UTF-8 but a binary file or another encoding (pickles are never"),
        ("bit,score,id\n1,2,é\n".encode("latin-1"), "a.csv is not CSV in UTF-8"),
    ],
)  # fmt: skip
def test_bad_csv_files(tmp_path, content, sentence):
    refused(sentence, Scores.read, written(tmp_path, content), adjacency="substitute")


def test_a_file_that_was_cut_short_is_no_smaller_audit(tmp_path):
    path = tmp_path / "a.csv"
    table(score=[0.5, 1.25, 2.75]).write(path)
    whole = path.read_text(encoding="utf-8")
    assert whole.startswith("# epsgauge scores, adjacency=substitute, rows=3\n")
    lines = whole.splitlines(keepends=True)
    sentence = "a.csv says that it has 3 rows, but it has 2: it was cut short or edited. Write or copy it again, or"
    refused(sentence, Scores.read, written(tmp_path, "".join(lines[:-1])))
    refused("but it has 4: it was cut", Scores.read, written(tmp_path, f"{whole}9,0,1,1.5\n"))
    refused("but it has 0: it was cut", Scores.read, written(tmp_path, "".join(lines[:2])))
    for cut in (whole[:-1], whole[:-2]):  # the last score may have lost a digit
        refused("3 rows, but the last of them has no end of line", Scores.read, written(tmp_path, cut))
    for end in ("\r\n", "\r"):
        assert len(Scores.read(written(tmp_path, whole.replace("\n", end)))) == 3
    older = "".join(lines[:-1]).replace(", rows=3", "")
    assert len(Scores.read(written(tmp_path, older))) == 2
    elsewhere = "# my notes: rows=7\n" + older
    assert len(Scores.read(written(tmp_path, elsewhere))) == 2


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        ("adjacency=substitute", "adjacency=add-remove", "adjacency=substitute and also adjacency=add-remove."),
        ("adjacency=substitute, bits=coins", "bits=dealt", "bits=coins and also bits=dealt."),
        ("adjacency=substitute, rows=1", "rows=2", "rows=1 and also rows=2."),
    ],
)
@pytest.mark.parametrize("between", [", ", "\n# epsgauge scores, "])
def test_a_file_says_a_thing_in_one_way(tmp_path, between, first, second, sentence):
    path = written(tmp_path, f"# epsgauge scores, {first}{between}{second}\nmodel,bit,score\n0,1,2\n")
    refused(f"a.csv says {sentence} Correct the comment lines above its header.", Scores.read, path)
    path = written(tmp_path, f"# epsgauge scores, {first}{between}{first}\nmodel,bit,score\n0,1,2\n")
    assert Scores.read(path).adjacency == "substitute"


def test_an_archive_says_a_thing_in_one_way(tmp_path):
    path, row = tmp_path / "a.npz", {"bit": [1, 0], "score": [0.5, 0.25]}
    for said in (["substitute"] * 2, b"substitute"):
        np.savez(path, **row, adjacency=said, bits=[[0.5, 0.5]])  # numbers are about something else
        assert Scores.read(path, models="one").adjacency == "substitute"
        refused("its adjacency is substitute, but adjacency is add-remove.", Scores.read, path, adjacency="add-remove")
    np.savez(path, **row, adjacency=["substitute", "add-remove"])
    refused("says adjacency=add-remove and also adjacency=substitute.", Scores.read, path, adjacency="substitute")
    np.savez(path, **row)
    refused("or add an array adjacency.", Scores.read, path)


def test_bytes_that_are_no_text_stay_apart():
    assert Scores([0, 1], [0, 0], [1, 0], [0, 1], "substitute", id=[b"\xfe", b"\xff"]).id.tolist() == ["\\xfe", "\\xff"]


@pytest.mark.parametrize("twice", ["adjacency", "score"])
def test_an_archive_has_an_array_once(tmp_path, twice):
    path = tmp_path / "a.npz"
    np.savez(path, bit=[1], score=[2.0], adjacency="substitute")
    np.savez(tmp_path / "b.npz", **{twice: "add-remove"})
    with zipfile.ZipFile(path, "a") as members, pytest.warns(UserWarning, match="Duplicate name"):
        members.writestr(f"{twice}.npy", zipfile.ZipFile(tmp_path / "b.npz").read(f"{twice}.npy"))
    refused(f"a.npz must have one array {twice}, but has 2.", Scores.read, path, models="one")


def test_files_of_the_wrong_kind(tmp_path):
    refused("there is no file", Scores.read, tmp_path / "none.csv", adjacency="substitute")
    refused("cannot be read: Is a directory.", Scores.read, tmp_path, adjacency="substitute")
    refused("scores are written to a .csv, a .npz or a .parquet file, but got", table().write, tmp_path / "a.xlsx")
    refused("cannot be written: No such file or directory.", table().write, tmp_path / "none" / "a.csv")
    table().write(tmp_path / "a.npz")
    whole = (tmp_path / "a.npz").read_bytes()
    refused("b.csv is a zip archive and not CSV.", Scores.read, written(tmp_path, whole, "b.csv"))
    np.save(tmp_path / "c.npy", [1.0])
    refused("c.npy is one NumPy array and not CSV.", Scores.read, tmp_path / "c.npy")
    for bad in (b"bit,score\n1,2\n", b"", pickle.dumps([1])):
        refused("d.npz is not a NumPy archive.", Scores.read, written(tmp_path, bad, "d.npz"))
    middle = bytearray(whole)
    at = whole.index(b"score.npy") + 140  # inside the numbers, which a checksum covers
    middle[at] ^= 255
    for bad in (whole[:-30], whole[: len(whole) // 2], bytes(middle)):
        refused("e.npz is damaged", Scores.read, written(tmp_path, bad, "e.npz"))
    np.savez(tmp_path / "f.npz", bit=[1], scores=[2.0])
    sentence = 'f.npz must have an array score, but has: bit, scores. Did you mean "scores"?'
    refused(sentence, Scores.read, tmp_path / "f.npz")
    np.savez(tmp_path / "g.npz", bit=[1], score=np.array([None], dtype=object))
    refused("g.npz holds Python objects, which are not read.", Scores.read, tmp_path / "g.npz")
    np.savez(tmp_path / "h.npz", bit=[1], score=[np.inf])
    refused(
        "h.npz: score must be finite, but row 0", Scores.read, tmp_path / "h.npz", adjacency="substitute", models="one"
    )


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    table().write(path)
    before = path.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    refused("a.csv cannot be written: No space left on device.", table(score=[1, 2, 3]).write, path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_a_million_rows(tmp_path):
    """Read by the fast reader: the slow one is not reached."""
    n = 10**6
    path = tmp_path / "large.csv"
    rng = np.random.default_rng(0)
    bit, score = rng.integers(0, 2, n), rng.integers(-(10**6), 10**6, n) / 64
    with path.open("w", newline="") as out:
        out.write("# epsgauge scores, adjacency=substitute\nmodel,pair,bit,score\n")
        csv.writer(out).writerows(zip(range(n), [0] * n, bit.tolist(), score.tolist(), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_careful", None)
        scores = Scores.read(path)
    assert len(scores) == n
    assert np.array_equal(scores.bit, bit)
    assert np.array_equal(scores.score, score)
    assert np.array_equal(scores.model, np.arange(n))


@pytest.mark.parametrize(
    "made",
    [
        lambda **said: Scores.from_in_out([2.0, 3.0], [0.0, 1.0, 0.5], adjacency="add-remove", **said),
        lambda **said: Scores.joined(
            dict(zip("abcde", range(5), strict=True)),
            dict.fromkeys("abcd", 0) | {"e": 1},
            adjacency="add-remove",
            **said,
        ),
    ],
)
def test_which_scores_share_a_model_must_be_said(made):
    with pytest.raises(InvalidInput, match=r'does not know which scores share a model.*models="independent".*"one"'):
        made()
    with pytest.raises(InvalidInput, match='models must be "one"'):
        made(models="both")
    one, each = made(models="one"), made(models="independent")
    assert (len(one.models), len(each.models)) == (1, 5)
    assert (one.taken_as, each.taken_as) == ("one", "independent")
    assert one.score.tolist() == each.score.tolist()

"""Bad scores: a sentence with name, rule, value and remedy, or a valid wide answer; never a traceback or a guess."""

import io
import json
import re
import zipfile

import numpy as np
import pytest
from command_line import ask, refused

import epsgauge as eg

RNG = np.random.default_rng(0)
GIVEN = {"rule": "given", "threshold": 0.5}


def table(bit, score, pairs=1):
    n = len(bit)
    return eg.Scores(np.arange(n) // pairs, np.arange(n) % pairs, bit, score, "substitute", bits="coins")


def audit(scores, **settings):
    found = eg.audit(scores, delta=1e-5, verdict_method="clopper-pearson", **settings)
    assert str(found)
    assert json.dumps(found.to_json())
    return found


def command(tmp_path, lines, *options):
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(lines) + "\n")
    return ["scores", str(path), "--adjacency", "substitute", "--delta", "1e-5", *options]


def rows(bit, score, pairs=1):
    return [
        "model,pair,bit,score",
        *(f"{i // pairs},{i % pairs},{b},{s}" for i, (b, s) in enumerate(zip(bit, score, strict=True))),
    ]


HALVES = np.tile([0, 1], 30)
NOISE = RNG.normal(size=60)

# what is wrong -> the table, settings, the sentence
REFUSED = {
    "NaN": (
        lambda: table([0, 1], [0.5, np.nan]),
        {},
        "score must be finite, but row 1 (the first is 0) has nan. Give it a finite",
    ),
    "infinite": (
        lambda: table([0, 1], [np.inf, 1]),
        {},
        "score must be finite, but row 0 (the first is 0) has inf. Give it a finite",
    ),
    "bits": (lambda: table([0, 3], [1, 2]), {}, "bit must be 0 or 1, but got 3 at index 1."),
    "ids": (
        lambda: eg.Scores.joined({"a": 1.0}, {"b": 1}, adjacency="substitute", models="independent"),
        {},
        "1 of 1 are missing, the first is 'a'. Give both sides the same ids.",
    ),
    "joined NaN": (
        lambda: eg.Scores.joined({"a": np.nan}, {"a": 1}, adjacency="substitute", models="independent"),
        {},
        "scores must not be NaN, but got nan at index 0.",
    ),
    "joined infinite": (
        lambda: eg.Scores.joined({"a": np.inf}, {"a": 1}, adjacency="substitute", models="independent"),
        {},
        "score must be finite, but row 0",
    ),
    "empty": (lambda: table([], []), {}, "scores must have at least one row to be judged, but got none. Give one row"),
    "one row": (
        lambda: table([1], [0.5]),
        {},
        "scores must have two models or more, some to choose the rule and some to be judged, but got 1. A thr",
    ),
    "one row, same data": (
        lambda: table([1], [0.5]),
        {"rule": "same-data"},
        "must have both bits, but b is 1 in all rows. Give scores with the other",
    ),
    "one class": (
        lambda: table(HALVES * 0, NOISE),
        {},
        "must have both bits, but b is 0 in all rows. Give scores with the other bit too.",
    ),
    "nobody judged": (
        lambda: table(HALVES, NOISE),
        {"fit_models": 60},
        "fit_models must be below the number of models, 60, so that some are left to be judged, but got 60. Take",
    ),
    "one class chooses": (lambda: table([0, 1], [1, 2]), {}, "all rows of the 1 model. Take more fit_models"),
}

MASKED = np.ma.array([1.0, 2.0], mask=[False, True])
OBJECTS = np.array([np.complex128(1 + 2j), 1.0], dtype=object)
EDGES = {
    "Scores, score": lambda value: table([0, 1], value),
    "Scores, bit": lambda value: table(value, [1.0, 2.0]),
    "Scores, model": lambda value: eg.Scores(value, [0, 1], [0, 1], [1.0, 2.0], "substitute"),
    "ins": lambda value: eg.Scores.from_in_out(value, [1.0], adjacency="substitute", models="independent"),
    "joined": lambda value: eg.Scores.joined(
        (["a", "b"], value), {"a": 0, "b": 1}, adjacency="substitute", models="independent"
    ),
    "counts": lambda value: eg.Tally(tp=value, tn=1, fp=1, fn=1),
    "guesses": lambda value: eg.Tally.from_guesses([0, 1], value),
    "delta": lambda value: eg.estimate(eg.Tally(tp=9, tn=9, fp=1, fn=1), delta=value),
}


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (MASKED, "must have a value everywhere, but some are masked. Fill them in."),
        ([MASKED[0], MASKED[1]], "must have a value everywhere, but some are masked"),
        (np.array([1j, 1]), "must be a number or an array of numbers, but got array([0.+1.j, 1.+0.j])."),
        (OBJECTS, "must be a number or an array of numbers, but got"),
        (np.array(["2020", "2021"], "datetime64[Y]"), "must be a number or an array of numbers, but got"),
        ([10**400, 1], f"must be a number or an array of numbers, but got [1{199 * '0'}"[:210]),
        ([10**5000, 1], "but got a number of more digits than can be written."),
    ],
    ids=["masked", "masked parts", "complex", "objects", "dates", "large", "larger"],
)
def test_nothing_of_a_number_is_lost(edge, value, sentence):
    with pytest.raises(eg.InvalidInput, match=re.escape(sentence)):
        EDGES[edge](value)


def test_a_mask_that_hides_nothing_and_tensors_are_taken():
    torch = pytest.importorskip("torch")
    weights = torch.tensor([0.5, 0.25], requires_grad=True)
    small = weights.to(torch.bfloat16)  # NumPy has no such type
    for value in (weights, weights * 1, list(weights), small, list(small), np.ma.array([0.5, 0.25])):
        assert table([0, 1], value).score.tolist() == [0.5, 0.25]
    with pytest.raises(eg.InvalidInput, match="score must be a number or an array of numbers, but got"):
        table([0, 1], [weights[0], "x"])
    assert eg.Scores([0, 1], [0, 0], [0, 1], [0, 1], "substitute", id=weights).id.tolist() == ["0.5", "0.25"]
    with pytest.raises(eg.InvalidInput, match=re.escape("bit must be 0 or 1, but got 0.5 at index 0.")):
        table(weights, [0, 1])


@pytest.mark.parametrize("name", REFUSED)
def test_a_sentence(name):
    make, settings, sentence = REFUSED[name]
    with pytest.raises(eg.InvalidInput, match=re.escape(sentence)):
        audit(make(), **settings)


WIDE = {
    "one row": (table([1], [0.9]), GIVEN),
    "one class": (table(HALVES * 0, NOISE), GIVEN),
    "one class is judged": (table(np.r_[np.tile([0, 1], 5), np.ones(50, int)], NOISE), GIVEN),
    "all tied": (table(HALVES, HALVES * 0), {}),
    "all tied, same data": (table(HALVES, HALVES * 0), {"rule": "same-data"}),
    "all tied, m > 1": (table(HALVES, HALVES * 0, 3), {}),
}


def test_one_class_of_several_pairs_promises_nothing():
    found = eg.audit(table(HALVES * 0, NOISE, 4), delta=1e-5, **GIVEN)
    assert found.verdict.promise == found["pooled"].promise == "estimate"
    assert "it needs bits that are coins, but 0 of 60 are 1" in found.verdict.sentence
    assert "clusters" not in [row.method for row in found.rows]


@pytest.mark.parametrize("name", WIDE)
def test_a_valid_wide_answer(name):
    scores, settings = WIDE[name]
    found = audit(scores, **settings)
    guaranteed = [row for row in found.rows if row.method == "clopper-pearson"]
    assert [row.low for row in guaranteed] == [0.0]
    assert found.verdict.bound.value == 0.0
    assert found.verdict.kind == "no claim"


def test_unfair_bits_take_the_promise_of_the_pooled_row():
    bits = np.r_[np.ones(300, int), np.zeros(20, int)]
    found = audit(table(bits, RNG.normal(size=320), 4), **GIVEN)
    assert found["pooled"].promise == "estimate"
    assert "it needs bits that are coins, but 300 of 320 are 1" in found["pooled"].note


FILES = {
    "NaN": (["bit,score", "1,nan", "0,1"], (), "line 2: score must be a finite number, but got 'nan'."),
    "infinite": (["bit,score", "1,inf", "0,1"], (), "line 2: score must be a finite number, but got 'inf'."),
    "bits": (["bit,score", "2,1", "0,1"], (), "member/non-member, yes/no), but got '2'."),
    "empty": (["bit,score"], (), "has a header and no rows."),
    "nothing": ([], (), "is empty."),
    "one row": (["bit,score", "1,1"], ("--independent",), "scores must have two models or more"),
    "nobody judged": (rows(HALVES, NOISE), ("--fit-models", "60"), "fit_models must be below the number of models, 60"),
    "one class": (rows(HALVES * 0, NOISE), (), "must have both bits, but b is 0 in all rows."),
}


@pytest.mark.parametrize("name", FILES)
def test_the_command_says_so(name, tmp_path):
    lines, options, sentence = FILES[name]
    args = command(tmp_path, lines, *options)
    said = refused(*args)
    assert sentence in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        (["bit,score", "1,1"], ("--threshold", "0.5", "--one-model")),
        (rows([0, 1] * 20, [0] * 40), ()),
        (rows([1] * 9, range(9)), ("--threshold", "3")),
    ],
)
def test_the_command_gives_a_wide_answer(lines, options, tmp_path):
    assert json.loads(ask(*command(tmp_path, lines, *options, "--json")))["verdict"]["bound"]["value"] == 0


def archive(**arrays):
    """An .npz that states its adjacency; a member given as bytes is written as it is."""
    out = io.BytesIO()
    plain = {"adjacency": np.array("substitute"), "bit": HALVES, "score": NOISE, **arrays}
    np.savez(out, **{name: array for name, array in plain.items() if not isinstance(array, bytes)})
    with zipfile.ZipFile(out, "a") as members:
        for name, raw in plain.items():
            if isinstance(raw, bytes):
                members.writestr(f"{name}.npy", raw)
    return out.getvalue()


def encrypted():
    """As a zip program marks members that need a password."""
    raw = bytearray(archive())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for found in re.finditer(re.escape(mark), bytes(raw)):
            raw[found.start() + at] |= 1
    return bytes(raw)


def header(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


ARCHIVES = {
    "encrypted": (encrypted(), "is encrypted, and there is no password"),
    "header": (archive(score=header("{'descr': ('<f8', \n")), "is damaged: its archive cannot be read to the end"),
    "no header": (archive(score=b"12345678"), "is damaged: score is no array"),
    "huge": (
        archive(score=header("{'descr': '<f8', 'fortran_order': False, 'shape': (10**30,)}\n")),
        "is damaged: its archive cannot be read to the end",
    ),
    "no zip": (b"PK and then something else", "is not a NumPy archive"),
    "0-d score": (archive(score=np.array(1.0)), "must have one dimension, but has 0"),
    "0-d bit": (archive(bit=np.array(1)), "the array bit of"),
    "2-d": (archive(score=NOISE[:, None]), "must have one dimension, but has 2"),
    "complex": (archive(score=NOISE * 1j), "must hold real numbers, but its type is complex128"),
    "time": (archive(score=np.zeros(60, "datetime64[s]")), "must hold real numbers, but its type is datetime64[s]"),
    "text": (archive(score=NOISE.astype(str)), "must hold real numbers, but its type is <U"),
    "structured": (archive(score=np.zeros(60, [("a", "f8")])), "must hold real numbers, but its type is [('a'"),
    "text of a bit": (archive(bit=(2 * HALVES).astype(str)), "bit must be 0 or 1 (or in/out, true/false, "),
    "group of times": (archive(group=np.zeros(60, "datetime64[s]")), "must hold plain values, but its type is"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_strange_archive_is_a_sentence(name, tmp_path):
    raw, sentence = ARCHIVES[name]
    path = tmp_path / "scores.npz"
    path.write_bytes(raw)
    with pytest.raises(eg.InvalidInput, match=re.escape(sentence)):
        eg.Scores.read(path)


def test_plain_archives_are_read(tmp_path):
    path = tmp_path / "scores.npz"
    for score in (NOISE.astype(np.float32), np.arange(60), np.arange(60) > 30):
        path.write_bytes(archive(score=score, id=np.arange(60)))
        assert eg.Scores.read(path, models="independent").score.tolist() == score.astype(float).tolist()

"""Canaries and coins for one training: drawn fairly, declared, joined by id, and refused if anything moved."""

import csv
import hashlib
import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from command_line import ask, refused

import epsgauge as eg
from epsgauge.data.planted.table import KINDS, SHORT
from epsgauge.declaration import digest_of
from epsgauge.methods.needs_of_one_run import largest_of_one_run

ROOT = Path(__file__).parent.parent

CORPUS = [" ".join(f"w{(i * k) % 97}" for k in range(1, 9)) for i in range(200)]
KNOWN = {"corpus": CORPUS, "labels": 10, "shape": [4, 4], "features": 12, "parameters": 500}
PRIVACY = eg.DPSGD(sample_rate=1.0, noise_multiplier=4.0, steps=4)
MANY = eg.DPSGD(sample_rate=1.0, noise_multiplier=10.0, steps=25)  # enough to see if noise has one size


def made(folder, n=60, **how):
    return eg.coins(folder / "coins.csv", **{"canaries": n, "seed": 3} | how)


def scored(coins, path, shift=3.0):
    coins.write_scores(np.random.default_rng(0).normal(shift * coins.bits, 1.0), path)
    return path


def table(path):
    return list(csv.reader(path.read_text(encoding="utf-8").splitlines()))


def rewrite(path, rows):
    with path.open("w", newline="") as out:
        csv.writer(out).writerows(rows)


# What is made


@pytest.mark.parametrize("name", [*SHORT, *(name for name in KINDS if name != "own")])
def test_every_kind_makes_different_canaries(name, tmp_path):
    privacy = PRIVACY if name.startswith("gradient") else None
    coins = made(tmp_path, kind=name, privacy=privacy, **KNOWN)
    contents = [tuple(v for k, v in row.items() if k not in ("id", "coin", "label")) for row in coins.rows]
    assert len(set(contents)) == len(set(coins.ids)) == 60
    assert {row["kind"] for row in coins.rows} == {SHORT.get(name, name)}
    assert 0 < len(coins.included) < 60
    assert eg.read_coins(tmp_path / "coins.csv").rows == coins.rows
    assert all(row["text"].endswith(row["secret"]) for row in coins.rows if "text" in row)


def test_texts_are_what_their_kinds_say(tmp_path):
    coins = made(tmp_path, kind=["rare-words", "unlikely-words", "new-tokens"], corpus=CORPUS)
    words = [word for text in CORPUS for word in text.split()]
    followed = {pair for text in CORPUS for pair in pairwise(text.split())}
    by_kind = {kind: [row for row in coins.rows if row["kind"] == kind] for kind in ("rare-words", "unlikely-words")}
    assert [len(rows) for rows in by_kind.values()] == [20, 20]
    rarest = sorted(set(words), key=words.count)[:50]
    limit = words.count(rarest[-1])
    assert all(words.count(word) <= limit for row in by_kind["rare-words"] for word in row["secret"].split())
    assert not followed & {pair for row in by_kind["unlikely-words"] for pair in pairwise(row["text"].split())}


def test_images_and_rows_come_back_as_numbers(tmp_path):
    (tmp_path / "a").mkdir()
    images = made(tmp_path / "a", kind="image", shape=[2, 3], labels=4)
    assert images.array.shape == (60, 2, 3)
    assert (images.array.min() >= 0, images.array.max() <= 255, images.array.std() > 50) == (True, True, True)
    rows = made(tmp_path, kind="row", features=9)
    assert set(np.unique(rows.array)) == {-3.0, 3.0}
    assert rows.array.shape == (60, 9)


def test_coins_are_bits_of_a_hash_and_fair(tmp_path):
    coins = made(tmp_path, 2000, kind="random-digits", seed=7)

    def twin(name):
        return hashlib.sha256(f"epsgauge 7 coin {name}".encode()).digest()[-1] & 1

    assert coins.bits.tolist() == [twin(name) for name in coins.ids]
    assert abs(coins.bits.mean() - 0.5) < 4 * 0.5 / np.sqrt(2000)


def test_nobody_knows_the_seed_unless_it_is_given(tmp_path):
    seeds = [made(tmp_path, seed=None).declaration.content["coins"]["seed"]]
    (tmp_path / "b").mkdir()
    seeds.append(made(tmp_path / "b", seed=None).declaration.content["coins"]["seed"])
    assert seeds[0] != seeds[1]
    assert min(seeds) > 2**64
    given = made_with_scores(tmp_path / "c", seed=5)
    assert any("drawn with a given seed, 5" in warning for warning in given.warnings)


def made_with_scores(folder, **how):
    folder.mkdir()
    coins = made(folder, 200, **how)
    return eg.audit(coins.scores(scored(coins, folder / "scores.csv")))


@pytest.mark.parametrize("name", ["mine.csv", "mine.jsonl"])
def test_canaries_of_your_own(name, tmp_path):
    rows = [{"id": f"k{i}", "text": f'say "{i}", please', "size": str(i)} for i in range(30)]
    file = tmp_path / name
    if name.endswith("jsonl"):
        file.write_text("".join(json.dumps({**row, "size": int(row["size"])}) + "\n" for row in rows))
    else:
        rewrite(file, [list(rows[0]), *(list(row.values()) for row in rows)])
    coins = made(tmp_path, None, own=file)
    assert [{k: row[k] for k in rows[0]} for row in coins.rows] == rows
    assert eg.read_coins(tmp_path / "coins.csv").rows == coins.rows


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"canaries": 3}, "canaries must be at least 20, but got 3"),
        ({"canaries": None}, "canaries must say how many to make"),
        ({"kind": "txt"}, 'Did you mean "text"?'),
        ({"kind": "image"}, 'kind = "noise-images" needs shape, but got none. Pass --shape 28x28.'),
        ({"kind": "image", "shape": [3, 224, 224]}, "shape must have at most 24,573 numbers"),
        ({"kind": "row", "features": 3}, "3 columns give only 8 different canaries, but 60 are wanted"),
        ({"kind": "gradient", "parameters": 9, "privacy": PRIVACY}, "canaries must be at most 9"),
        ({"kind": "gradient", "parameters": 99}, 'kind = "gradients" needs what DP-SGD promises'),
        ({"kind": ["text", "gradient"]}, 'kind = "gradients" goes with no other kind'),
        ({"kind": "rare-words", "corpus": ["a b c"]}, "corpus must have at least 50 different words, but has 3"),
        ({"labels": 0}, "labels must be a whole number of at least 1, but got 0"),
        ({"direction": "down"}, 'direction must be "higher", "lower" or "either"'),
        ({"claimed_eps": -1.0}, "claimed_eps must be greater than or equal to 0"),
        ({"fit_models": 3}, 'fit_models goes with rule = "split"'),
    ],
)
def test_what_cannot_be_made(how, sentence, tmp_path):
    if "fit_models" in how:
        how = {**how, "rule": "split-pairs"}
    with pytest.raises(eg.InvalidInput) as error:
        made(tmp_path, **how)
    assert sentence in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_neither_file_is_replaced(tmp_path):
    made(tmp_path)
    with pytest.raises(eg.InvalidInput, match="coins are never drawn again for a file"):
        made(tmp_path)
    (tmp_path / "coins.csv").unlink()
    with pytest.raises(eg.InvalidInput, match="a declaration is never replaced"):
        made(tmp_path)
    assert not (tmp_path / "coins.csv").exists()


# What is refused afterwards


def test_how_a_spreadsheet_quotes_does_not_matter(tmp_path):
    coins = made(tmp_path)
    file = tmp_path / "coins.csv"
    rows = table(file)
    with file.open("w", newline="", encoding="utf-8-sig") as out:
        csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)
    assert eg.read_coins(file).rows == coins.rows


def flip(rows):
    rows[1][1] = "out" if rows[1][1] == "in" else "in"


def swap_text(rows):
    rows[2][3] = "another text"


def drop(rows):
    rows.pop()


@pytest.mark.parametrize("change", [flip, swap_text, drop])
def test_coins_that_were_changed_are_refused(change, tmp_path):
    made(tmp_path)
    rows = table(tmp_path / "coins.csv")
    change(rows)
    rewrite(tmp_path / "coins.csv", rows)
    with pytest.raises(eg.InvalidInput, match=r"is not what .* declares"):
        eg.read_coins(tmp_path / "coins.csv")


def test_coins_that_were_chosen_are_refused_even_with_new_digests(tmp_path):
    made(tmp_path)
    rows = table(tmp_path / "coins.csv")
    flip(rows)
    rewrite(tmp_path / "coins.csv", rows)
    content = json.loads((tmp_path / "coins.json").read_text(encoding="utf-8"))["declared"]
    content["coins"]["digest"] = digest_of({"columns": rows[0], "rows": rows[1:]})
    (tmp_path / "coins.json").write_text(json.dumps({"declared": content, "digest": digest_of(content)}))
    with pytest.raises(eg.InvalidInput, match="they were chosen and not drawn"):
        eg.read_coins(tmp_path / "coins.csv")


def test_a_claim_that_was_changed_is_refused(tmp_path):
    coins = made(tmp_path, claimed_eps=1.0)
    scores = scored(coins, tmp_path / "scores.csv")
    with pytest.raises(eg.InvalidInput, match=r"claimed_eps is 0.1 here, but 1.0 in"):
        eg.audit(coins.scores(scores), claimed_eps=0.1, claimed_delta=1e-5, claimed_adjacency="add-remove")
    text = (tmp_path / "coins.json").read_text(encoding="utf-8")
    (tmp_path / "coins.json").write_text(text.replace('"claimed_eps": 1.0', '"claimed_eps": 0.1'))
    with pytest.raises(eg.InvalidInput, match="was changed after it was written"):
        eg.read_coins(tmp_path / "coins.csv")


def test_a_declaration_without_coins(tmp_path):
    made(tmp_path)
    (tmp_path / "coins.json").unlink()
    with pytest.raises(eg.InvalidInput, match=r"there is no file .*coins\.json\. Restore it"):
        eg.read_coins(tmp_path / "coins.csv")
    eg.declare(tmp_path / "coins.json", adjacency="add-remove")
    with pytest.raises(eg.InvalidInput, match="declares no coins"):
        eg.read_coins(tmp_path / "coins.csv")


def twice(rows):
    rows.append(rows[1])


def unknown(rows):
    rows[1] = ["nobody", "1.0"]


def missing(rows):
    del rows[1:4]


def no_number(rows):
    rows[1][1] = "high"


def infinite(rows):
    rows[1][1] = "inf"


def other_coin(rows):
    rows[0].append("coin")
    for row in rows[1:]:
        row.append("in")


def no_score(rows):
    rows[0][1] = "scroe"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (twice, "must have each canary once, but c00 is there 2 times"),
        (unknown, "has 1 ids that are no canary of"),
        (missing, "must have a score of all 60 canaries, in or out, but 3 are missing, the first is c00"),
        (no_number, "every score must be a number, but that of 'c00' is 'high'"),
        (infinite, "score must be finite"),
        (other_coin, "is in, but its coin in"),
        (no_score, 'Did you mean "scroe"?'),
    ],
)
def test_scores_that_do_not_fit_are_refused(change, sentence, tmp_path):
    coins = made(tmp_path)
    file = scored(coins, tmp_path / "scores.csv")
    rows = table(file)
    change(rows)
    rewrite(file, rows)
    assert sentence in refused("scores", file, "--coins", tmp_path / "coins.csv")


@pytest.mark.parametrize("option", [["--adjacency", "substitute"], ["--one-model"], ["--lower-is-in"], ["--cohorts"]])
def test_options_that_coins_decide_are_refused(option, tmp_path):
    coins = made(tmp_path)
    file = scored(coins, tmp_path / "scores.csv")
    assert "cannot go with --coins" in refused("scores", file, "--coins", tmp_path / "coins.csv", *option)


# What is judged


def test_scores_are_joined_by_id_in_any_order(tmp_path):
    coins = made(tmp_path, direction="lower", kind=["random-words", "random-digits"])
    values = np.random.default_rng(1).normal(-coins.bits, 1.0)
    coins.write_scores(values, tmp_path / "scores.csv")
    rows = table(tmp_path / "scores.csv")
    rewrite(tmp_path / "scores.csv", [["score", "id"], *([score, name] for name, score in rows[:0:-1])])
    scores = coins.scores(tmp_path / "scores.csv")
    assert (scores.score == -values).all()
    assert (scores.bit == coins.bits).all()
    assert list(scores.id) == coins.ids
    assert (scores.bits, scores.taken_as, scores.adjacency) == ("coins", "one", "add-remove")
    assert set(scores.group) == {"random-words", "random-digits"}
    mapped = coins.scores(dict(zip(coins.ids, values, strict=True)))
    assert (mapped.score == scores.score).all()


def test_an_audit_is_the_declared_one(tmp_path):
    coins = made(tmp_path, 400, claimed_eps=1.0)
    found = eg.audit(coins.scores(scored(coins, tmp_path / "scores.csv")))
    assert (found.verdict.kind, found.verdict.promise, found.verdict.method) == (
        "violation",
        "guaranteed",
        "weighted",
    )
    assert found.declaration.digest == coins.declaration.digest
    assert not any("Not declared beforehand" in warning for warning in found.warnings)


def test_the_report_of_coins_names_its_own_command(tmp_path):
    coins = made(tmp_path, 100, claimed_eps=1.0)
    file = scored(coins, tmp_path / "scores.csv")
    ask("report", file, "--coins", tmp_path / "coins.csv", "-o", tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert f"epsgauge scores {file} --coins {tmp_path / 'coins.csv'} --report" in text
    assert coins.declaration.digest[:12] in text


# Gradient canaries


def watched(coins, *, noise, steps=25, size=600, seed=0):
    """DP-SGD without data, in NumPy: only the canaries, and noise."""
    rng, watch = np.random.default_rng(seed), coins.watch()
    for step in range(steps):
        watch(step, rng.normal(0.0, noise, size), max_grad_norm=1.0)
    return watch.channels()["llr"]


def test_gradients_of_one_training_are_judged_against_the_whole_curve(tmp_path):
    coins = made(tmp_path, 400, kind="gradient", parameters=600, privacy=MANY)
    honest = eg.audit(coins.scores(dict(zip(coins.ids, watched(coins, noise=10.0), strict=True))))
    assert (honest.verdict.method, honest.verdict.promise, honest.verdict.kind) == (
        "curve",
        "guaranteed",
        "no objection",
    )
    assert any("direction of its own" in text for text in honest.verdict.decided_by.assumptions)
    assert honest.verdict.guesses.n_guesses == 400
    weak = eg.audit(coins.scores(dict(zip(coins.ids, watched(coins, noise=5.0), strict=True))))
    assert weak.verdict.kind == "violation"
    assert weak.verdict.conditional_bound.noise < 10.0


def test_a_claim_of_mu_of_gradients_is_judged_by_rank(tmp_path):
    coins = made(tmp_path, 400, kind="gradient", parameters=600, privacy=MANY, claimed_mu=0.5)
    found = eg.audit(coins.scores(dict(zip(coins.ids, watched(coins, noise=5.0), strict=True))))
    assert (found.verdict.method, found.verdict.promise, found.verdict.kind) == (
        "gaussian",
        "guaranteed",
        "violation",
    )


def test_other_canaries_have_no_watch(tmp_path):
    with pytest.raises(eg.InvalidInput, match='a watch adds canaries of the kind "gradients"'):
        made(tmp_path).watch()


def test_a_missing_file_of_coins_names_the_command_that_makes_them(tmp_path):
    with pytest.raises(
        eg.InvalidInput, match=r"there is no file .*coins\.csv\. .* make new coins with: epsgauge coins -o"
    ):
        eg.read_coins(tmp_path / "coins.csv")


def test_canaries_that_cannot_decide_are_warned_about_with_how_many_would(tmp_path):
    with pytest.warns(UserWarning, match="60 canaries cannot decide this claim: a perfect attack shows") as caught:
        made(tmp_path, 60, claimed_eps=4.0)
    n = int(re.search(r"Use at least ([\d,]+), or", str(caught[0].message))[1].replace(",", ""))
    at = {"delta": 1e-5, "level": 0.99}
    assert largest_of_one_run(n, **at) > 4.0 >= largest_of_one_run(round(0.95 * n), **at)
    with pytest.warns(UserWarning, match="100,000 are too few too"):
        eg.coins(tmp_path / "b.csv", canaries=60, seed=3, claimed_eps=12.0)


def test_the_recipe_of_readme_and_page_can_decide():
    for page in ("README.md", "docs/train-once.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        n, eps = re.search(r"epsgauge coins --canaries (\d+) --kind text --claimed-eps (\d+)", text).groups()
        assert largest_of_one_run(int(n), delta=1e-5, level=0.99) > float(eps)

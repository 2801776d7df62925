"""Scores of other tools: what their own files hold, no more and no less, and what cannot be read is said."""

import json
import math
import pickle
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import ask, refused
from scipy.stats import beta

import epsgauge as eg
from epsgauge.scores.importers.table import IMPORTERS

TOOLS = Path(__file__).parent / "data/tools"
# tool -> its file, and which models must be said
FILES = {
    "jax-privacy": ("canaries.npz", "one"),
    "leakpro": ("p_attack.json", None),
    "privacyguard": ("", None),
    "privacy-meter": ("attack_result_0.npz", None),
    "privacy-estimates": ("", "independent"),
}


def imported(tool, **given):
    file, models = FILES[tool]
    said = {"adjacency": "add-remove", "models": models, **given}
    return eg.import_scores(TOOLS / tool / file, tool=tool, **said)


def by_score(scores):
    return sorted(zip(scores.score.tolist(), scores.bit.tolist(), strict=True))


def auroc(scores):
    ins, outs = scores.score[scores.bit == 1], scores.score[scores.bit == 0]
    return np.mean((ins[:, None] > outs) + (ins[:, None] == outs) / 2)


def test_every_tool_has_a_file_here():
    assert set(FILES) == set(IMPORTERS)


def test_four_tools_hold_the_same_guesses():
    """The same log-odds and memberships were given to all; LiRA of PrivacyGuard makes scores of its own."""
    first = by_score(imported("jax-privacy"))
    assert len(first) == 160
    for tool in ("leakpro", "privacy-meter", "privacy-estimates"):
        assert by_score(imported(tool)) == first


def test_jax_privacy_says_the_same_of_them():
    said = json.loads((TOOLS / "jax-privacy/said.json").read_text())
    scores = imported("jax-privacy", models="independent")
    guess = scores.score >= said["threshold"]
    wrong = [int(np.sum((scores.bit == bit) & (guess != bit))) for bit in (1, 0)]
    fnr, fpr = (beta.ppf(1 - 0.05 / 2, k + 1, 80 - k) for k in wrong)  # at most, each with half of the level
    assert math.log((1 - fnr - 1e-5) / fpr) == pytest.approx(said["epsilon_clopper_pearson"], abs=1e-9)


def test_the_direction_is_that_of_members():
    for tool in FILES:
        assert auroc(imported(tool)) > 0.6, tool


def test_lira_of_privacyguard_row_by_row():
    """Its CSV read in the plainest way."""
    rows = []
    for bit, name in ((1, "df_train_user"), (0, "df_test_user")):
        head, *lines = (TOOLS / f"privacyguard/{name}.csv").read_text().split()
        at = head.split(",").index("score")
        rows += [(float(line.split(",")[at]), bit) for line in lines]
    assert by_score(imported("privacyguard")) == sorted(rows)


def test_counts_of_privacy_estimates():
    path = TOOLS / "privacy-estimates/counts.json"
    counts = json.loads(path.read_text())
    scores = eg.import_scores(path, tool="privacy-estimates", adjacency="substitute", models="independent")
    for name, (bit, guess) in {"TP": (1, 1), "FN": (1, 0), "FP": (0, 1), "TN": (0, 0)}.items():
        assert np.sum((scores.bit == bit) & (scores.score == guess)) == counts[name]
    assert by_score(
        eg.import_scores(counts, tool="privacy-estimates", adjacency="substitute", models="one")
    ) == by_score(scores)


def test_a_folder_of_privacy_meter_has_a_model_per_file():
    scores = eg.import_scores(TOOLS / "privacy-meter", tool="privacy-meter", adjacency="add-remove")
    assert scores.models.tolist() == [0, 1]
    one = imported("privacy-meter")
    first = scores[scores.model == 0]
    assert (first.score.tolist(), first.bit.tolist()) == (one.score.tolist(), one.bit.tolist())


OBJECTS = {
    "jax-privacy": SimpleNamespace(_in_canary_scores=np.array([2.0, 3.0]), _out_canary_scores=np.array([1.0, 0.0])),
    "leakpro": SimpleNamespace(signal_values=[2.0, 3.0, 1.0, 0.0], true=[1, 1, 0, 0]),
    "privacyguard": SimpleNamespace(df_train_user={"score": [2.0, 3.0]}, df_test_user={"score": [1.0, 0.0]}),
    "privacy-meter": {"scores": np.array([2.0, 3.0, 1.0, 0.0]), "memberships": np.array([True, True, False, False])},
    "privacy-estimates": {"attack_scores": [2.0, 3.0, 1.0, 0.0], "challenge_bits": [1, 1, 0, 0]},
}


@pytest.mark.parametrize("tool", FILES)
def test_objects_in_memory(tool):
    scores = eg.import_scores(OBJECTS[tool], tool=tool, adjacency="add-remove", models=FILES[tool][1])
    assert by_score(scores) == [(0.0, 0), (1.0, 0), (2.0, 1), (3.0, 1)]
    assert scores.bits == "unknown"
    assert len(scores.models) == (4 if tool == "privacy-estimates" else 1)


def broken(tmp_path):
    """File -> tool, and the sentence."""
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"signal_values": [1.0]}))
    np.savez(tmp_path / "objects.npz", scores=np.array([{}], object), memberships=np.ones(1))
    (tmp_path / "counted.json").write_text('{"signal_values": null, "true_labels": [0, 1]}')
    (tmp_path / "short.json").write_text('{"signal_values": [1.0, 2.0, 3.0], "true_labels": [0, 1]}')
    (tmp_path / "nan.json").write_text('{"signal_values": [1.0, NaN], "true_labels": [0, 1]}')
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "text.json").write_text("scores")
    (tmp_path / "words.json").write_text('{"signal_values": ["a"], "true_labels": [1]}')
    (tmp_path / "other.json").write_text('{"signals": [1.0], "true_label": [1]}')
    np.savez(tmp_path / "attack_result_average.npz", scores=np.ones(2), memberships=np.ones(2))
    (tmp_path / "empty").mkdir()
    return {
        "a.pkl": ("leakpro", "can hold a pickle, which is never read"),
        "objects.npz": ("privacy-meter", "holds Python objects, which are not read"),
        "counted.json": ("leakpro", "this attack gave counts and no scores. Use epsgauge estimate"),
        "short.json": ("leakpro", "must have one LeakPro score per bit, but has 2 of bit and 3 of score"),
        "nan.json": ("leakpro", "score must be finite, but row 1"),
        "list.json": ("leakpro", "must hold an object with names, but holds a list"),
        "text.json": ("leakpro", "is not JSON"),
        "words.json": ("leakpro", "signal_values must be one list of numbers, but is a list"),
        "other.json": ("leakpro", "must have true_labels, but has: signals, true_label. Did you mean"),
        "attack_result_average.npz": ("privacy-meter", "mixes the rows of several models"),
        "empty": ("privacy-meter", "must have files attack_result_<model>.npz"),
        "missing.json": ("leakpro", "there is no file"),
        "scores.txt": ("leakpro", "must be a .npz, a .json or a .csv file, but is none of these. Give an MIAResult"),
    }


def test_what_cannot_be_read_is_said(tmp_path):
    for file, (tool, sentence) in broken(tmp_path).items():
        with pytest.raises(eg.InvalidInput, match=re.escape(sentence)) as error:
            eg.import_scores(tmp_path / file, tool=tool, adjacency="add-remove")
        assert file in str(error.value) or "signal_values" in str(error.value)


def test_what_must_be_said():
    held = OBJECTS["jax-privacy"]
    with pytest.raises(eg.InvalidInput, match="does not say which rows share a model"):
        eg.import_scores(held, tool="jax-privacy", adjacency="add-remove")
    with pytest.raises(eg.InvalidInput, match="LeakPro, which attacks one model, so its rows are not independent"):
        imported("leakpro", models="independent")
    with pytest.raises(eg.InvalidInput, match=r"tool must be one of jax-privacy.*Did you mean"):
        eg.import_scores(held, tool="leak-pro", adjacency="add-remove")
    with pytest.raises(eg.InvalidInput, match='adjacency must be "substitute", "add-remove" or'):
        eg.import_scores(held, tool="jax-privacy", adjacency="zero-out", models="one")


def test_the_command():
    file = str(TOOLS / "leakpro/p_attack.json")
    asked = ("scores", file, "--from", "leakpro", "--adjacency", "add-remove", "--fit-pairs", "40", "--json")
    assert json.loads(ask(*asked))["adjacency"] == "add-remove"
    assert "does not say its adjacency. Pass --adjacency" in refused("scores", file, "--from", "leakpro")
    assert "tool must be one of" in refused("scores", file, "--from", "opake", "--adjacency", "add-remove")

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
from epsgauge.reporting import redo
from epsgauge.scores.importers.table import IMPORTERS

TOOLS = Path(__file__).parent / "data/tools"
# tool -> its file, and which models must be said
FILES = {
    "jax-privacy": ("canaries.npz", "one"),
    "leakpro": ("data_objects/from_full_scores.json", None),
    "privacyguard": ("", None),
    "privacy-meter": ("rmia/attack_result_0.npz", None),
    "privacy-estimates": ("", "independent"),
    "sacroml": ("", None),
}
(P_ATTACK,) = (TOOLS / "leakpro/data_objects").glob("85ea*.json")
OF_2022 = TOOLS / "privacy-meter-1.0.1"


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


def test_three_tools_hold_the_same_guesses():
    """The same log-odds and memberships were given to all; the attacks of other files make scores of their own."""
    first = by_score(imported("jax-privacy"))
    assert len(first) == 160
    for tool in ("leakpro", "privacy-estimates"):
        assert by_score(imported(tool)) == first


def same_model(scores):
    """Log-odds and bits of the first model, and the scores and bits of a table of it, each in the order of scores."""
    odds, bits = zip(*by_score(imported("jax-privacy")), strict=True)
    return np.array(odds), list(bits), *map(np.array, zip(*by_score(scores), strict=True))


def test_losses_of_leakpro_are_turned():
    """Its population attack keeps losses of the same model. Log-odds o give the loss log(1 + exp(−o))."""
    odds, bits, score, bit = same_model(eg.import_scores(P_ATTACK, tool="leakpro", adjacency="add-remove"))
    assert bit.tolist() == bits
    assert score == pytest.approx(-np.log1p(np.exp(-odds)), rel=1e-9)
    held = json.loads(P_ATTACK.read_text(encoding="utf-8"))
    turned = {**held, "signal_values": (-np.array(held["signal_values"])).tolist()}
    for other in (turned, SimpleNamespace(**{**held, "true": held["true_labels"]})):  # turned by LeakPro; in memory
        again = eg.import_scores(other, tool="leakpro", adjacency="add-remove")
        assert sorted(again.score) == sorted(score)
    assert auroc(again) > 0.6


def test_a_folder_of_leakpro(tmp_path):
    folder = TOOLS / "leakpro"
    with pytest.raises(
        eg.InvalidInput, match=r"has 3 results. Give one of its files: 85ea\w+.json \(P-attack\), from_c"
    ):
        eg.import_scores(folder, tool="leakpro", adjacency="add-remove")
    (tmp_path / "data_objects").mkdir()
    with pytest.raises(eg.InvalidInput, match=r"must have a result <attack>\.json, but has none"):
        eg.import_scores(tmp_path, tool="leakpro", adjacency="add-remove")
    (tmp_path / "data_objects" / P_ATTACK.name).write_bytes(P_ATTACK.read_bytes())
    for one in (tmp_path, tmp_path / "data_objects"):
        assert len(eg.import_scores(one, tool="leakpro", adjacency="add-remove")) == 160
    with pytest.raises(eg.InvalidInput, match="gave counts and no scores"):
        eg.import_scores(folder / "data_objects/from_confusion_counts.json", tool="leakpro", adjacency="add-remove")


def test_the_loss_attack_of_privacy_meter_points_down():
    """It negates probabilities, and no field says which attack wrote the file."""
    file = TOOLS / "privacy-meter/loss/attack_result_0.npz"
    said = {"tool": "privacy-meter", "adjacency": "add-remove"}
    with pytest.raises(eg.InvalidInput, match="they point the other way"):
        eg.audit(eg.import_scores(file, **said), rule="split-pairs", fit_pairs=40)
    odds, bits, score, bit = same_model(eg.import_scores(file, **said, lower_is_in=True))
    assert bit.tolist() == bits
    assert score == pytest.approx(1 / (1 + np.exp(-odds)), rel=1e-9)


@pytest.mark.parametrize("attack", ["population", "reference", "shadow"])
def test_results_of_privacy_meter_1(attack):
    """Its object has rows of guesses per threshold, or a probability; what it counts follows from the scores."""
    with np.load(OF_2022 / f"{attack}.npz") as file:
        held = dict(file)
    result = SimpleNamespace(**{"predictions_proba": None, **held})
    said = {"tool": "privacy-meter", "adjacency": "add-remove"}
    scores = eg.import_scores([[result]] if attack != "shadow" else [result], **said)
    assert by_score(scores) == by_score(eg.import_scores(OF_2022 / f"{attack}.npz", **said))
    assert auroc(scores) > 0.7
    assert scores.bit.tolist() == held["true_labels"].tolist()
    for row in np.atleast_2d(held["predicted_labels"]):  # its guesses are these scores against a threshold
        assert np.all(np.diff(row[np.argsort(scores.score, kind="stable")].astype(int)) >= 0)
    with pytest.raises(eg.InvalidInput, match="must be one result, but is a list of 2"):
        eg.import_scores([result, result], **said)


def test_objects_of_sacroml():
    with np.load(next((TOOLS / "sacroml").glob("*.npz"))) as file:
        held = {key.split(".")[1]: file[key] for key in file if key.startswith("individual.")}
    for one in (held, SimpleNamespace(result=held)):
        scores = eg.import_scores(one, tool="sacroml", adjacency="add-remove")
        assert by_score(scores) == by_score(imported("sacroml"))


def test_jax_privacy_says_the_same_of_them():
    said = json.loads((TOOLS / "jax-privacy/said.json").read_text(encoding="utf-8"))
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
        head, *lines = (TOOLS / f"privacyguard/{name}.csv").read_text(encoding="utf-8").split()
        at = head.split(",").index("score")
        rows += [(float(line.split(",")[at]), bit) for line in lines]
    assert by_score(imported("privacyguard")) == sorted(rows)


def test_counts_of_privacy_estimates():
    path = TOOLS / "privacy-estimates/counts.json"
    counts = json.loads(path.read_text(encoding="utf-8"))
    scores = eg.import_scores(path, tool="privacy-estimates", adjacency="substitute", models="independent")
    for name, (bit, guess) in {"TP": (1, 1), "FN": (1, 0), "FP": (0, 1), "TN": (0, 0)}.items():
        assert np.sum((scores.bit == bit) & (scores.score == guess)) == counts[name]
    assert by_score(
        eg.import_scores(counts, tool="privacy-estimates", adjacency="substitute", models="one")
    ) == by_score(scores)


def test_a_folder_of_privacy_meter_has_a_model_per_file():
    scores = eg.import_scores(TOOLS / "privacy-meter/rmia", tool="privacy-meter", adjacency="add-remove")
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
    "sacroml": {"member_prob": [2.0, 3.0, 1.0, 0.0], "member": [1, 1, 0, 0]},
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
    (tmp_path / "data.json").write_bytes(pickle.dumps({"signal_values": [1.0]}))
    np.savez(tmp_path / "report_arrays_a_instance_0.npz", fpr=np.ones(2))
    (tmp_path / "empty").mkdir()
    (tmp_path / "none").mkdir()
    return {
        "a.pkl": ("leakpro", "can hold a pickle, which is never read"),
        "data.json": ("leakpro", "data.json is a pickle, which is never read"),
        "report_arrays_a_instance_0.npz": ("sacroml", "no row per record. Run the attack with report_individual=True"),
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
        "none": ("sacroml", "must have one file report_arrays_<id>_<instance>.npz, but has none"),
        "missing.json": ("leakpro", "there is no file"),
        "scores.txt": ("leakpro", "must be a .npz, a .json or a .csv file, but is none of these. Give an MIAResult"),
    }


def test_what_cannot_be_read_is_said(tmp_path):
    for file, (tool, sentence) in broken(tmp_path).items():
        with pytest.raises(eg.InvalidInput, match=re.escape(sentence)) as error:
            eg.import_scores(tmp_path / file, tool=tool, adjacency="add-remove")
        assert file in str(error.value) or "signal_values" in str(error.value)


def test_a_report_says_how_to_read_them_again():
    asked = {"rule": "given", "threshold": -0.1}
    audit = eg.audit(eg.import_scores(P_ATTACK, tool="leakpro", adjacency="add-remove"), **asked)
    (command,) = redo.of_audit(audit)
    assert command.startswith(f"epsgauge scores {P_ATTACK} --adjacency add-remove --one-model --from leakpro ")


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
    file = str(P_ATTACK)
    asked = ("scores", file, "--from", "leakpro", "--adjacency", "add-remove", "--fit-pairs", "40", "--json")
    assert json.loads(ask(*asked))["adjacency"] == "add-remove"
    assert "does not say its adjacency. Pass --adjacency" in refused("scores", file, "--from", "leakpro")
    assert "leave out --bit-column" in refused(*asked, "--bit-column", "b")
    loss = str(TOOLS / "privacy-meter/loss/attack_result_0.npz")
    given = ("scores", loss, "--from", "privacy-meter", "--adjacency", "add-remove", "--fit-pairs", "40")
    assert "they point the other way" in refused(*given)
    assert json.loads(ask(*given, "--lower-is-in", "--json"))["scores"]["lower_is_in"] is True
    assert "tool must be one of" in refused("scores", file, "--from", "opake", "--adjacency", "add-remove")

"""Makes tests/data/tools: scores of digits as other tools write them. Run it where the tool of each part is installed.

    python tools/imported_scores.py PART FOLDER [SOURCES]

PART is jax-privacy, privacyguard, privacy-estimates (with Hugging Face's datasets), privacy-meter-1.0.1 or sacroml: the
tool is on PyPI. LeakPro and Privacy Meter as they are today are not: for leakpro and privacy-meter, SOURCES is a
folder with code of their repository, which is put on the path and writes the files. tests/data/tools/README.md says
which code, and of which commits.
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

POINTS, MODELS = 160, 25  # points that may be members, and models; the first is the target
OTHERS = 400  # points that no model is trained on
CUT = 3.5  # guess "member" from this log-odds on


@dataclass
class Trained:
    """Logistic regressions of digits, each trained on half of the points; the others of `x` and `y` are nobody's."""

    x: np.ndarray
    y: np.ndarray
    members: np.ndarray  # [model, point]
    odds: np.ndarray  # log-odds of each point's label [model, point]
    fitted: list[Any]

    def network(self, model: int) -> Any:
        """The same function as a module of PyTorch."""
        import torch

        fitted = self.fitted[model]
        layer = torch.nn.Linear(*fitted.coef_.T.shape, dtype=torch.float64)
        layer.load_state_dict({"weight": torch.tensor(fitted.coef_), "bias": torch.tensor(fitted.intercept_)})
        return torch.nn.Sequential(layer)


def trained(models: int = MODELS, *, paired: bool = False) -> Trained:
    """If they are `paired`, every second model is trained on what the one before it was not."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    x, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(x))[: POINTS + OTHERS]
    all_x, all_y = x[chosen] / 16.0, y[chosen]
    x, y = all_x[:POINTS], all_y[:POINTS]
    members = np.zeros((models, POINTS), bool)
    odds = np.zeros((models, POINTS))
    fits = []
    for model, row in enumerate(members):
        if paired and model % 2:
            row[:] = ~members[model - 1]
        else:
            row[rng.permutation(POINTS)[: POINTS // 2]] = True
        fitted = LogisticRegression(C=100.0, max_iter=2000).fit(x[row], y[row])
        p = np.clip(fitted.predict_proba(x)[np.arange(POINTS), np.searchsorted(fitted.classes_, y)], 1e-9, 1 - 1e-9)
        odds[model] = np.log(p) - np.log1p(-p)
        fits.append(fitted)
    return Trained(all_x, all_y, members, odds, fits)


def jax_privacy(out: Path) -> None:
    from jax_privacy.auditing import CanaryScoreAuditor, Explicit

    of = trained()
    held = {"in_canary_scores": of.odds[0, of.members[0]], "out_canary_scores": of.odds[0, ~of.members[0]]}
    auditor = CanaryScoreAuditor(**held)
    np.savez(out / "canaries.npz", **held)
    bound = auditor.epsilon_clopper_pearson(significance=0.05, delta=1e-5, threshold_strategy=Explicit(CUT))
    (out / "said.json").write_text(json.dumps({"threshold": CUT, "epsilon_clopper_pearson": float(bound)}))


def privacyguard(out: Path) -> None:
    import pandas as pd
    from privacy_guard.analysis.mia.aggregate_analysis_input import AggregationType
    from privacy_guard.attacks.lira_attack import LiraAttack

    of = trained()
    shadows = np.where(of.members[1:], np.nan, of.odds[1:])
    table = pd.DataFrame(
        {
            "user_id": np.arange(POINTS),
            "score_orig": of.odds[0],
            "score_mean": np.nanmean(shadows, axis=0),
            "score_std": np.nanstd(shadows, axis=0),
        }
    )
    ins = of.members[0]
    attack = LiraAttack(table[ins].copy(), table[~ins].copy(), row_aggregation=AggregationType.MAX)
    found = attack.run_attack()
    found.df_train_user.to_csv(out / "df_train_user.csv")
    found.df_test_user.to_csv(out / "df_test_user.csv")


def privacy_estimates(out: Path) -> None:
    from datasets import ClassLabel, Dataset, Features
    from privacy_estimates import AttackResults

    of = trained()
    kind = Features({"challenge_bit": ClassLabel(names=["no_member", "member"])})
    bits = of.members[0].astype(int)
    Dataset.from_dict({"challenge_bit": bits.tolist()}, features=kind).save_to_disk(str(out / "challenge_bits"))
    Dataset.from_dict({"score": of.odds[0].tolist()}).save_to_disk(str(out / "scores"))
    counted = AttackResults.from_guesses_and_labels((of.odds[0] >= CUT).astype(int).tolist(), bits.tolist())
    counted.to_json(out / "counts.json")


def leakpro(out: Path) -> None:
    """Its population attack on the target, and its result object from scores and from counts, by its own `save`."""
    import torch
    from leakpro.attacks.mia_attacks.attack_p import AttackP
    from leakpro.reporting.mia_result import MIAResult
    from torch.utils.data import DataLoader, Subset, TensorDataset

    of = trained()
    everybody = TensorDataset(torch.tensor(of.x), torch.tensor(of.y))
    handler = SimpleNamespace(
        population=everybody,
        population_size=len(everybody),
        target_model=of.network(0),
        train_indices=np.flatnonzero(of.members[0]),
        test_indices=np.flatnonzero(~of.members[0]),
        get_criterion=torch.nn.CrossEntropyLoss,
        get_dataloader=lambda indices, shuffle: DataLoader(Subset(everybody, indices), 64, shuffle=shuffle),
    )
    np.random.seed(0)  # noqa: NPY002 (the tool draws from it)
    attack = AttackP(handler, {"attack_data_fraction": 0.5})
    attack.prepare_attack()
    truth, guess = of.members[0], of.odds[0] >= CUT
    counts = {"tp": truth & guess, "fp": ~truth & guess, "tn": ~truth & ~guess, "fn": truth & ~guess}
    results = {
        attack.attack_id: attack.run_attack(),
        "from_full_scores": MIAResult.from_full_scores(truth, of.odds[0], "log-odds"),
        "from_confusion_counts": MIAResult.from_confusion_counts(
            truth, **{name: int(cell.sum()) for name, cell in counts.items()}, result_name="counts"
        ),
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "data_objects").mkdir()
        for name, result in results.items():
            result.save(SimpleNamespace(attack_id=name), folder)
        shutil.copytree(Path(folder) / "data_objects", out / "data_objects", dirs_exist_ok=True)


def privacy_meter(out: Path) -> None:
    """Its RMIA on two targets, and its loss attack on one."""
    import torch
    from audit import audit_models, get_average_audit_results
    from get_signals import get_softmax

    of = trained(24, paired=True)
    x, y = torch.tensor(of.x), torch.tensor(of.y)
    softmax = np.concatenate([get_softmax(of.network(model), x, y, 64, "cpu") for model in range(24)], axis=1)
    logger = logging.getLogger("privacy-meter")
    with tempfile.TemporaryDirectory() as folder:
        for algorithm, targets in {"RMIA": [0, 1], "LOSS": [0]}.items():
            report, kept = Path(folder) / algorithm, out / algorithm.lower()
            given = (softmax[:POINTS], softmax[POINTS:], of.members, 11, logger, {"audit": {"algorithm": algorithm}})
            scores, memberships = audit_models(str(report), targets, *given)
            if len(targets) > 1:
                get_average_audit_results(str(report), scores, memberships, logger)
            kept.mkdir(exist_ok=True)
            for file in report.glob("*.npz"):
                shutil.copy(file, kept)


def privacy_meter_1(out: Path) -> None:
    """Its three attacks of 2022 on the target. It keeps results in memory alone, so that their arrays are written."""
    import torch
    from privacy_meter.audit import Audit, MetricEnum
    from privacy_meter.constants import InferenceGame
    from privacy_meter.dataset import Dataset
    from privacy_meter.information_source import InformationSource
    from privacy_meter.model import PytorchModelTensor

    of = trained()
    x, y = torch.tensor(of.x), torch.tensor(of.y)
    models = [PytorchModelTensor(of.network(model), torch.nn.CrossEntropyLoss()) for model in range(MODELS)]

    def split(ins: np.ndarray) -> Any:
        parts = {"train": np.flatnonzero(ins), "test": np.flatnonzero(~ins)}
        return Dataset({name: {"x": x[rows], "y": y[rows]} for name, rows in parts.items()}, "x", "y")

    others = Dataset({"train": {"x": x[POINTS:], "y": y[POINTS:]}}, "x", "y")
    same = [split(of.members[0])] * (MODELS - 1)
    references = {
        MetricEnum.POPULATION: InformationSource([models[0]], [others]),
        MetricEnum.REFERENCE: InformationSource(models[1:], same),
        MetricEnum.SHADOW: InformationSource(models[1:], [split(row) for row in of.members[1:]]),
    }
    target = InformationSource([models[0]], [split(of.members[0])])
    for metric, reference in references.items():
        with tempfile.TemporaryDirectory() as logs:
            audit = Audit(metric, InferenceGame.PRIVACY_LOSS_MODEL, target, reference, logs_directory_names=logs)
            audit.prepare()
            (found,) = audit.run()
        result = found[0] if isinstance(found, list) else found
        fields = ("predicted_labels", "true_labels", "predictions_proba", "signal_values")
        held = {name: getattr(result, name) for name in fields if getattr(result, name) is not None}
        np.savez(out / f"{metric.name.lower()}.npz", **held)


def sacroml(out: Path) -> None:
    """Its LiRA on a target that it trains shadows of."""
    from sacroml.attacks.likelihood_attack import LIRAAttack
    from sacroml.attacks.target import Target

    of = trained(1)
    ins = of.members[0]
    x, y = of.x[:POINTS], of.y[:POINTS]
    data = {"X_train": x[ins], "y_train": y[ins], "X_test": x[~ins], "y_test": y[~ins]}
    np.random.seed(0)  # noqa: NPY002 (the tool draws from it)
    with tempfile.TemporaryDirectory() as folder:
        attack = LIRAAttack(folder, n_shadow_models=24, report_individual=True)
        attack.attack(Target(model=of.fitted[0], dataset_name="digits", **data))
        for file in Path(folder).glob("report_arrays_*.npz"):
            shutil.copy(file, out)


PARTS = {
    "jax-privacy": jax_privacy,
    "privacyguard": privacyguard,
    "privacy-estimates": privacy_estimates,
    "leakpro": leakpro,
    "privacy-meter": privacy_meter,
    "privacy-meter-1.0.1": privacy_meter_1,
    "sacroml": sacroml,
}

if __name__ == "__main__":
    folder = Path(sys.argv[2]) / sys.argv[1]
    folder.mkdir(parents=True, exist_ok=True)
    sys.path[:0] = sys.argv[3:]
    PARTS[sys.argv[1]](folder)

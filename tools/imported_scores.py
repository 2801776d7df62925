"""Makes tests/data/tools: scores of digits as other tools write them. Run it where the tool of each part is installed.

    python tools/imported_scores.py PART FOLDER

PART is jax-privacy, privacyguard or privacy-estimates (with Hugging Face's datasets). LeakPro and Privacy Meter are not
on PyPI as they are today: `leakpro` and `privacy-meter` write the fields that their sources do (MIAResult.save,
get_audit_results), and need scikit-learn alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

POINTS, MODELS = 160, 25  # points that may be members, and models; the first is the target
CUT = 3.5  # guess "member" from this log-odds on


def signals() -> tuple[np.ndarray, np.ndarray]:
    """Log-odds of each point's label [model, point], and whether it was trained on."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    x, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(x))[:POINTS]
    x, y = x[chosen] / 16.0, y[chosen]
    members = np.zeros((MODELS, POINTS), bool)
    odds = np.zeros((MODELS, POINTS))
    for model, row in enumerate(members):
        row[rng.permutation(POINTS)[: POINTS // 2]] = True
        fitted = LogisticRegression(C=100.0, max_iter=2000).fit(x[row], y[row])
        p = np.clip(fitted.predict_proba(x)[np.arange(POINTS), np.searchsorted(fitted.classes_, y)], 1e-9, 1 - 1e-9)
        odds[model] = np.log(p) - np.log1p(-p)
    return odds, members


def jax_privacy(out: Path) -> None:
    from jax_privacy.auditing import CanaryScoreAuditor, Explicit

    odds, members = signals()
    held = {"in_canary_scores": odds[0, members[0]], "out_canary_scores": odds[0, ~members[0]]}
    auditor = CanaryScoreAuditor(**held)
    np.savez(out / "canaries.npz", **held)
    bound = auditor.epsilon_clopper_pearson(significance=0.05, delta=1e-5, threshold_strategy=Explicit(CUT))
    (out / "said.json").write_text(json.dumps({"threshold": CUT, "epsilon_clopper_pearson": float(bound)}))


def privacyguard(out: Path) -> None:
    import pandas as pd
    from privacy_guard.analysis.mia.aggregate_analysis_input import AggregationType
    from privacy_guard.attacks.lira_attack import LiraAttack

    odds, members = signals()
    shadows = np.where(members[1:], np.nan, odds[1:])
    table = pd.DataFrame(
        {
            "user_id": np.arange(POINTS),
            "score_orig": odds[0],
            "score_mean": np.nanmean(shadows, axis=0),
            "score_std": np.nanstd(shadows, axis=0),
        }
    )
    attack = LiraAttack(table[members[0]].copy(), table[~members[0]].copy(), row_aggregation=AggregationType.MAX)
    found = attack.run_attack()
    found.df_train_user.to_csv(out / "df_train_user.csv")
    found.df_test_user.to_csv(out / "df_test_user.csv")


def privacy_estimates(out: Path) -> None:
    from datasets import ClassLabel, Dataset, Features
    from privacy_estimates import AttackResults

    odds, members = signals()
    kind = Features({"challenge_bit": ClassLabel(names=["no_member", "member"])})
    bits = members[0].astype(int)
    Dataset.from_dict({"challenge_bit": bits.tolist()}, features=kind).save_to_disk(str(out / "challenge_bits"))
    Dataset.from_dict({"score": odds[0].tolist()}).save_to_disk(str(out / "scores"))
    counted = AttackResults.from_guesses_and_labels((odds[0] >= CUT).astype(int).tolist(), bits.tolist())
    counted.to_json(out / "counts.json")


def leakpro(out: Path) -> None:
    from sklearn.metrics import auc

    odds, members = signals()
    truth, order = members[0].astype(int), np.argsort(-odds[0])
    tp, fp = np.cumsum(truth[order] == 1), np.cumsum(truth[order] == 0)
    tpr, fpr = tp / tp[-1], fp / fp[-1]
    result = {
        "result_name": "p_attack",
        "result_type": "MIAResult",
        "id": "p_attack",
        "tpr": tpr.tolist(),
        "fpr": fpr.tolist(),
        "roc_auc": float(auc(fpr, tpr)),
        "accuracy": ((tp + fp[-1] - fp) / POINTS).tolist(),
        "fixed_fpr": {"TPR@0%FPR": float(tpr[fpr <= 0.0].max(initial=0.0))},
        "signal_values": odds[0].tolist(),
        "true_labels": truth.tolist(),
        "config": {},
        "tp": tp.tolist(),
        "fp": fp.tolist(),
        "tn": (fp[-1] - fp).tolist(),
        "fn": (tp[-1] - tp).tolist(),
    }
    (out / "p_attack.json").write_text(json.dumps(result))


def privacy_meter(out: Path) -> None:
    from sklearn.metrics import auc, roc_curve

    odds, members = signals()
    for model in (0, 1):
        fpr, tpr, _ = roc_curve(members[model], odds[model])
        np.savez(
            out / f"attack_result_{model}",
            fpr=fpr,
            tpr=tpr,
            auc=auc(fpr, tpr),
            one_tenth_fpr=tpr[np.where(fpr <= 0.001)[0][-1]],
            zero_fpr=tpr[np.where(fpr <= 0.0)[0][-1]],
            scores=odds[model].ravel(),
            memberships=members[model].ravel(),
        )


PARTS = {
    "jax-privacy": jax_privacy,
    "privacyguard": privacyguard,
    "privacy-estimates": privacy_estimates,
    "leakpro": leakpro,
    "privacy-meter": privacy_meter,
}

if __name__ == "__main__":
    folder = Path(sys.argv[2]) / sys.argv[1]
    folder.mkdir(parents=True, exist_ok=True)
    PARTS[sys.argv[1]](folder)

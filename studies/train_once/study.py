"""Which canaries a small language model gives away, in one training with DP-SGD per kind and noise.

    python studies/train_once/study.py                              # on generated sentences
    python studies/train_once/study.py --corpus sst-2/train.tsv    # on other texts: hours
    python studies/train_once/study.py --check                     # the table follows from the scores

Coins, scores and results.json stand beside this file. The network and its training are examples/train_once/train.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

import epsgauge as eg

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "examples" / "train_once"))

KINDS = ("new-tokens", "random-words", "random-digits", "rare-words", "unlikely-words")
NOISES = (0.0, 0.5, 1.0)
CANARIES, TEXTS, EPOCHS, SEED = 1000, 1000, 10, 1
FPR = 0.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, help="train.tsv of SST-2")
    parser.add_argument("--check", action="store_true", help="only compute the table from the scores that are there")
    asked = parser.parse_args()
    if asked.check:
        print(table(rows()))
        return
    from train import train

    texts = _texts(asked.corpus)
    spent = {}
    for kind in KINDS:
        for old in HERE.glob(f"{kind}.*"):
            old.unlink()
        coins = eg.coins(
            HERE / f"{kind}.csv", canaries=CANARIES, kind=kind, corpus=texts, seed=SEED, verdict_level=0.95
        )
        for noise in NOISES:
            scores, eps = train(coins, texts, noise=noise, epochs=EPOCHS, seed=SEED)
            coins.write_scores(np.round(scores, 6), _file(kind, noise))
            spent[f"{noise:g}"] = None if np.isinf(eps) else round(eps, 2)
            print(kind, noise, spent[f"{noise:g}"], flush=True)
    corpus = "SST-2" if asked.corpus else "generated sentences"
    setting = {"corpus": corpus, "texts": TEXTS, "canaries": CANARIES, "epochs": EPOCHS, "seed": SEED, "eps": spent}
    (HERE / "results.json").write_text(json.dumps({"setting": setting, "rows": rows()}, indent=1) + "\n")
    print(table(rows()))


def rows() -> list[dict[str, object]]:
    """Of each kind and noise, from the files of coins and scores."""
    return [
        {"kind": kind, "noise": noise, **rates(kind, noise), "eps": bound(kind, noise)}
        for kind in KINDS
        for noise in NOISES
    ]


def rates(kind: str, noise: float) -> dict[str, float]:
    """The area under the curve, and the TPR at an FPR of at most 1 %."""
    found = scores_of(kind, noise)
    ins, outs = found.score[found.bit == 1], found.score[found.bit == 0]
    auc = float((ins[:, None] > outs).mean() + (ins[:, None] == outs).mean() / 2)
    above = np.sort(outs)[::-1][int(FPR * len(outs))]
    return {"auc": round(auc, 3), "tpr": round(float(np.mean(ins > above)), 3)}


def bound(kind: str, noise: float) -> float:
    """The guaranteed lower bound of ε."""
    return round(eg.audit(scores_of(kind, noise), direction="kept").verdict.bound.value, 2)


def scores_of(kind: str, noise: float) -> eg.Scores:
    return eg.read_coins(HERE / f"{kind}.csv").scores(_file(kind, noise))


def table(found: list[dict[str, object]]) -> str:
    """One row per kind: TPR at FPR 1 % and the guaranteed ε, for each noise."""
    head = [f"noise {noise:g}: TPR at FPR 1 %, ε at least" for noise in NOISES]
    lines = [f"| canaries | {' | '.join(head)} |", "|---|" + "---|" * len(NOISES)]
    for kind in KINDS:
        own = [row for row in found if row["kind"] == kind]
        lines.append(f"| {kind} | " + " | ".join(f"{100 * row['tpr']:.1f} %, {row['eps']:.2f}" for row in own) + " |")
    return "\n".join(lines)


def _file(kind: str, noise: float) -> Path:
    return HERE / f"{kind}.noise-{noise:g}.csv"


def _texts(corpus: Path | None) -> list[str]:
    from train import sentences

    if corpus is None:
        return sentences(TEXTS)
    lines = [line.split("\t")[0].strip() for line in corpus.read_text().splitlines()[1:]]
    return [line for line in lines if len(line.split()) >= 8][:TEXTS]


if __name__ == "__main__":
    main()

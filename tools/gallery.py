"""docs/gallery.md and the sample reports in docs/_static/gallery/: one small run for each of five verdicts.

python tools/gallery.py
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import epsgauge as eg
from epsgauge.runner.executors import InProcess

DOCS = Path(__file__).parent.parent / "docs"
PAGE, FOLDER = DOCS / "gallery.md", DOCS / "_static" / "gallery"
PLAN = """name = "{name}"
seed = {seed}
n_models = {n_models}

[data]
use = "zeros"
size = 60

[trainer]
{trainer}

[game]
train_size = 10
reference_size = 20
challenge = "explicit"
canaries = "zeros"

[audit]
attack = "difference"
claimed_eps = {claimed}
claimed_delta = 1e-5
claimed_adjacency = "substitute"
"""
RESPONSE = (
    'use = "randomised-response"     # tells the truth about one record with probability e^ε / (1 + e^ε)\neps = {eps}'
)
SUM = """from dataclasses import dataclass

import numpy as np

import epsgauge as eg


@dataclass(frozen=True)
class NoisySum:
    noise_multiplier: float = 3.0

    def train(self, data, *, seed):
        return data[0].sum() + self.noise_multiplier * np.random.default_rng(seed).normal()

    def losses(self, model, points):
        return (points[0] - model) ** 2

    def privacy(self, n):
        return eg.DPSGD(sample_rate=1.0, noise_multiplier=self.noise_multiplier, steps=1)


def data():
    return (np.linspace(0.0, 1.0, 100),)


def canaries(data):
    return (np.array([0.0]),), (np.array([1.0]),)
"""
HEAD = """# Four verdicts

<!-- made by `python tools/gallery.py` -->

Each run below audits a mechanism whose ε is known, so you can check the verdict against the truth. Open a report to
see what you get for a run of your own: `epsgauge report RUN -o report.html`.

| verdict | what it means | truth | claim | models | report |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Sample:
    """A run that ends with this verdict."""

    kind: str
    eps: float  # of randomised response
    claimed: float
    n_models: int
    lesson: str
    seed: int = 0

    @property
    def name(self) -> str:
        return self.kind.replace(" ", "-")

    @property
    def plan(self) -> str:
        values = {"name": self.name, "seed": self.seed, "n_models": self.n_models, "claimed": self.claimed}
        text = PLAN.format(**values, trainer=RESPONSE.format(eps=self.eps))
        if self.kind != "unsupported":
            return text
        text = text.replace(RESPONSE.format(eps=self.eps), 'use = "noisy_sum:NoisySum"')
        return text.replace('"zeros"\nsize = 60', '"noisy_sum:data"').replace('"zeros"', '"noisy_sum:canaries"')


SAMPLES = (
    Sample("violation", 2.0, 1.0, 600, "The claim is too small by half, and 600 models are enough to prove it."),
    Sample(
        "unsupported",
        0.0,
        1.0,
        120,
        "The attack proves nothing here. But by the accountant this noisy sum spends more than is claimed, so nothing "
        "supports the claim.",
    ),
    Sample("no objection", 1.0, 1.0, 600, "The claim holds, and the audit cannot say more than that it found nothing."),
    Sample("cannot decide", 4.0, 4.0, 40, "Even a perfect attack could not refute ε = 4 with 40 models."),
)


def played(sample: Sample) -> eg.Audit:
    """In the current folder, so that reports have the paths that a reader would have."""
    file = Path(f"{sample.name}.toml")
    file.write_text(sample.plan, encoding="utf-8")
    Path("noisy_sum.py").write_text(SUM, encoding="utf-8")
    run = eg.run(eg.Plan.read(file), out=Path("runs", sample.name), executor=InProcess())
    found = eg.audit(run)
    if found.verdict.kind != sample.kind:
        raise SystemExit(f"{sample.name} must be {sample.kind}, but is {found.verdict.kind}.")
    return found


def page(audits: dict[str, eg.Audit]) -> str:
    rows, parts = [], []
    for sample in SAMPLES:
        audit = audits[sample.name]
        link = f'<a href="_static/gallery/{sample.name}.html">open</a>'
        meaning = audit.decision.meaning
        truth, claim = (f"ε = {eps:.3g}" for eps in (audit.accountant["substitute"], sample.claimed))
        rows.append(f"| [{sample.kind}](#{sample.name}) | {meaning} | {truth} | {claim} | {sample.n_models} | {link} |")
        steps = [
            f"{n}. {step.text}" + (f" `{step.command}`" if step.command else "")
            for n, step in enumerate(audit.decision.steps, 1)
        ]
        said = f"> **{audit.verdict.head}**: {audit.verdict.finding}"
        parts += [f"\n## {sample.kind.capitalize()}\n", sample.lesson, "", said, "", "Next steps:", "", *steps]
    return HEAD + "\n".join([*rows, *parts]) + "\n"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        audits = {sample.name: played(sample) for sample in SAMPLES}
        for name, audit in audits.items():
            shutil.copy(eg.report(audit, out=f"{name}.html"), FOLDER)
    PAGE.write_text(page(audits), encoding="utf-8")


if __name__ == "__main__":
    main()

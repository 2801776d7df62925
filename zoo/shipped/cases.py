"""All cases: what the bug is, where it was reported, and in which environment it and its twin are."""

from __future__ import annotations

from dataclasses import dataclass

MISSES = 1e-4  # how often a probe, or a bound by membership, may be wrong


@dataclass(frozen=True)
class Case:
    """`module` has a function `judge(twin, seed)` that says what was found, to be called inside the environment."""

    module: str
    judge: str
    library: str
    reported: str
    bug: str
    repaired: str
    environment: str | None  # of the bug; None is the Python that runs this
    twin: str | None


CASES = {
    "opacus-ghost-norm": Case(
        module="opacus_ghost",
        judge="on_digits",
        library="Opacus",
        reported="pull request 664",
        bug="ghost clipping clips to 1, whatever max_grad_norm is",
        repaired="the version that clips to max_grad_norm",
        environment="opacus-1.5.2",
        twin="opacus-1.5.3",
    ),
    "opacus-ghost-bias": Case(
        module="opacus_ghost",
        judge="on_sequences",
        library="Opacus",
        reported="pull request 751",
        bug="ghost clipping takes a wrong norm for the bias of a linear layer on sequences",
        repaired="the version with the right norm",
        environment="opacus-1.5.3",
        twin="opacus-1.5.4",
    ),
    "opacus-batch-size": Case(
        module="opacus_batch_size",
        judge="by_probe",
        library="Opacus",
        reported="issues 571, 819",
        bug="the sum of gradients is divided by a number that depends on how many records there are",
        repaired="rate, steps and divisor come from a public size",
        environment=None,
        twin=None,
    ),
    "opacus-batch-size-model": Case(
        module="opacus_batch_size",
        judge="by_model",
        library="Opacus",
        reported="issues 571, 819",
        bug="the same, seen in the released weights",
        repaired="rate, steps and divisor come from a public size",
        environment=None,
        twin=None,
    ),
    "diffprivlib-bounds": Case(
        module="diffprivlib_bounds",
        judge="judge",
        library="diffprivlib",
        reported="issue 105",
        bug="the sensitivity of x² in LinearRegression is computed from the lower bound alone",
        repaired="bounds that are symmetric, where the lower one is enough",
        environment="diffprivlib-0.6.6",
        twin="diffprivlib-0.6.6",
    ),
    "diffprivlib-classes": Case(
        module="diffprivlib_classes",
        judge="judge",
        library="diffprivlib",
        reported="issue 106",
        bug="LogisticRegression reads its classes from the private labels",
        repaired="a public record of each class is added to the data",
        environment="diffprivlib-0.6.6",
        twin="diffprivlib-0.6.6",
    ),
    "opendp-pairs": Case(
        module="opendp_pairs",
        judge="judge",
        library="OpenDP",
        reported="issue 2950",
        bug="Theil-Sen regression drops the last of an odd number of records, so that one more record replaces another",
        repaired="the claim for two records",
        environment="opendp-0.16.0",
        twin="opendp-0.16.0",
    ),
}

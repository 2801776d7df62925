"""CPU time and memory of probes: an MLP on digits, and a model of a million parameters with Opacus; a process for each.

    python benchmarks/probe.py [--against CHECKOUT]

With --against, the same probes run in turn on another checkout, and ratios are printed. It judges nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
CASES = ("MLP on digits", "MLP on digits, Opacus", "a million parameters, 200 records, Opacus")


def build():
    from torch import nn

    return nn.Sequential(nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 215), nn.ReLU(), nn.Linear(215, 10))


def probed(case: str):
    """One probe, in this process."""
    import numpy as np

    import epsgauge as eg
    from epsgauge.data.digits import digits
    from epsgauge.trainers.dpsgd import DpSgd

    rng, training = np.random.default_rng(0), {"batch_size": 100, "noise_multiplier": 1.0}
    data = (rng.normal(size=(1200, 784)).astype(np.float32), rng.integers(0, 10, 1200))
    if "digits" in case:
        engine = {"engine": "opacus"} if "Opacus" in case else {}
        trainer, data = DpSgd(model="mlp", epochs=10, learning_rate=0.5, **training, **engine), digits()
    else:
        training["batch_size"] = 20
        trainer = DpSgd(model="probe:build", epochs=2, learning_rate=0.1, engine="opacus", **training)
    return eg.probe(trainer, data, train_size=1000 if "digits" in case else 200, adjacency="substitute")


def measured(case: str, checkout: Path) -> tuple[float, float, str]:
    """Seconds of CPU, GB at most, and the probe's line of a process of its own."""
    path = os.pathsep.join([str(checkout / "src"), str(HERE)])
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    words = [sys.executable, "-W", "ignore", str(HERE / "probe.py"), "--case", case]
    done = subprocess.run(words, env={**os.environ, **one, "PYTHONPATH": path}, capture_output=True, encoding="utf-8")
    if done.returncode:
        sys.exit(done.stderr)
    cpu, memory, line = done.stdout.strip().split("\t")
    return float(cpu), float(memory), line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        import resource

        found = probed(given.case)
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20, found.brief, sep="\t")
        return
    for case in CASES:
        cpu, memory, line = measured(case, HERE.parent)
        text = f"{case:<44}{cpu:7.1f} s of CPU, {memory:.2f} GB; {line}"
        if given.against is not None:
            other, _, _ = measured(case, given.against)
            text += f"; {cpu / other:.2f} times the other checkout's {other:.1f} s"
        print(text, flush=True)


if __name__ == "__main__":
    main()

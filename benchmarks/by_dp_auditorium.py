"""The testers of DP-Auditorium (Kong et al. 2024) on a mechanism of `mechanism_rows.py`; its code must be on the path.

Each tester gets half of the samples from either input, and both orders of the inputs, as its test runner does. It gives
a lower bound of δ at the claimed ε, and rejects the claim if that is above δ. The hockey-stick tester has its default
network and training, and outputs go through tanh, as in its example, in units of their quartiles.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BANDWIDTHS = (0.1, 1.0)  # of the kernel; 0.1 is that of its tests
CELLS = 20


def figure(row: Any, *, samples: int, level: float) -> str:
    """What each tester says of δ at the claimed ε, and whether it rejects."""
    if row.curve:
        return ""
    rng, said = np.random.default_rng(0), []
    one, other = (np.asarray(row.mechanism(d, rng, samples // 2), dtype=np.float64) for d in (row.d0, row.d1))
    one, other = (x if x.ndim > 1 else x[:, None] for x in (one, other))
    low, middle, high = np.quantile(np.concatenate([one, other]), (0.25, 0.5, 0.75), axis=0)
    spread = np.where(high > low, high - low, 1.0)
    one, other = (np.tanh((x - middle) / spread) for x in (one, other))
    for name, tester, takes in _testers(row):
        if not takes(one):
            said.append(f"{name} -")
            continue
        x, y = (z[:, 0] if name == "histogram" else z for z in (one, other))
        bound = max(tester().estimate_lower_bound(*pair, 1 - level) for pair in ((x, y), (y, x)))
        said.append(f"{name} {'rejects' if bound > row.delta else 'no'} ({bound:+.4f})")
    return " | ".join(said)


def _testers(row: Any) -> list[tuple[str, Any, Any]]:
    import tensorflow as tf
    from dp_auditorium.configs import privacy_property, property_tester_config
    from dp_auditorium.testers import histogram_tester, hockey_stick_tester, mmd_tester

    tf.random.set_seed(0)
    claim = privacy_property.ApproximateDp(epsilon=row.claim, delta=row.delta)
    kernel = property_tester_config.Kernel.KERNEL_RBF

    def hockey_stick() -> Any:
        training = hockey_stick_tester.make_default_hs_training_config()
        config = property_tester_config.HockeyStickPropertyTesterConfig(training, claim)
        return hockey_stick_tester.HockeyStickPropertyTester(config, hockey_stick_tester.make_default_hs_base_model())

    def mmd(bandwidth: float) -> Any:
        config = property_tester_config.MMDPropertyTesterConfig(kernel, bandwidth, claim)
        return mmd_tester.MMDPropertyTester(config)

    def histogram() -> Any:
        config = property_tester_config.HistogramPropertyTesterConfig(False, CELLS, -1.0, 1.0, claim)
        return histogram_tester.HistogramTester(config)

    return [
        ("hockey-stick", hockey_stick, lambda _: True),
        *((f"MMD {b:g}", lambda b=b: mmd(b), lambda _: True) for b in BANDWIDTHS),
        ("histogram", histogram, lambda x: x.shape[1] == 1),
    ]

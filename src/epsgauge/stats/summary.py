"""The few lines that `print(posterior)` shows."""

from __future__ import annotations

from epsgauge.stats.cautions import cautions
from epsgauge.stats.methods import METHODS, intervals_of
from epsgauge.stats.posterior import Posterior


def summarise(posterior: Posterior, level: float = 0.90) -> str:
    """Median, mass at 0, every method's interval with its promise, and the warnings that apply."""
    result = intervals_of(posterior, level=level)
    t = posterior.tally
    lines = [
        f"Posterior of {posterior.family.symbol}{posterior.family.given}, tp={t.tp} tn={t.tn} fp={t.fp} fn={t.fn}",
        f"  median {posterior.median():.4g}, mass at 0 {posterior.mass_at_zero:.3g}",
    ]
    for row in result:
        lines.append(f"  {METHODS[row.method].label:<16}{level:.0%} [{row.low:.4g}, {row.high:.4g}]  {row.promise}")
    lines += [f"  ! {text}" for text in cautions(result)]
    return "\n".join(lines)

"""Updates whose noise is compared, of whatever kind it is: the same in all arrays or not, correlated in time or not."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from epsgauge.probing import in_time
from epsgauge.probing.copies import Copied
from epsgauge.probing.finding import Finding
from epsgauge.probing.fresh import between, within
from epsgauge.probing.noise import Drawn, units
from epsgauge.probing.pipeline import Pipeline, Replay
from epsgauge.stats.arrays import Floats


@dataclass(frozen=True, eq=False)
class Seen:
    """Short trainings on the data, and short and whole ones on copies of one record."""

    base: list[Replay]
    alike: list[Copied]
    late: list[Copied]

    @property
    def every(self) -> list[Copied]:
        return [*self.alike, *self.late]

    def undone(self, pipeline: Pipeline) -> Seen:
        """Without the filter that the accountant states for the noise."""
        by = pipeline.privacy.correlation
        if by is None:
            return self
        alike, late = ([in_time.undone(each, by) for each in some] for some in (self.alike, self.late))
        return Seen([in_time.undone_of(each, by) for each in self.base], alike, late)

    def fresh(self, pipeline: Pipeline, noise: Drawn | None, there: float) -> Finding:
        by = _units(pipeline, noise, there)
        if by is None:
            return between(pipeline, self.base, self.every, there)
        every = [replace(each, replay=_divided(each.replay, by)) for each in self.every]
        return between(pipeline, [_divided(each, by) for each in self.base], every, there)


def independent(pipeline: Pipeline, noise: Drawn | None, there: float) -> Finding:
    by = _units(pipeline, noise, there)
    return within(pipeline, noise if by is None or noise is None else replace(noise, vectors=noise.vectors / by), there)


def _units(pipeline: Pipeline, noise: Drawn | None, there: float) -> Floats | None:
    """Only where there is as much noise as accounted for what records move."""
    accounted = pipeline.privacy.noise_multiplier
    return units(noise, accounted) if there and there == accounted else None


def _divided(each: Replay, by: Floats) -> Replay:
    return replace(each, updates=[(update / by).astype(np.float32) for update in each.updates])

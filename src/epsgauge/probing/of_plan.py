"""The probe of a plan, in a worker process as a run would have it."""

from __future__ import annotations

from epsgauge.probing.probe import probe
from epsgauge.probing.result import Probe
from epsgauge.references import beside, users_code
from epsgauge.runner.executors import apart
from epsgauge.runner.plan import Plan
from epsgauge.runner.play import trainer_of


def probe_plan(plan: Plan) -> Probe:
    """Its trainer and data, at the size of its training sets; the claim that it states, or the accountant's."""
    return apart(plan, _probed)


def _probed(plan: Plan) -> list[Probe]:
    audit = plan.audit
    with beside(plan.folder):
        trainer = trainer_of(plan)
        with users_code(f"data {plan.data.use}"):
            data = plan.data.build()
        found = probe(
            trainer,
            data,
            delta=audit.delta if audit.claimed_delta is None else audit.claimed_delta,
            adjacency=audit.claimed_adjacency or plan.game.adjacency,
            claimed_eps=audit.claimed_eps,
            train_size=plan.game.train_size,
            seed=plan.seed,
        )
    return [found]

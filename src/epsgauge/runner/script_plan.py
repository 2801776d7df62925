"""The plan of a script that is not edited: what it trains on and accounts is read from one of its trainings."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.runner.plan import Plan
from epsgauge.runner.store import FILE, Store
from epsgauge.runner.view import Run
from epsgauge.scripts.messages import Order
from epsgauge.scripts.requests import Look, Scale, Seen, Train
from epsgauge.scripts.session import Session, Told
from epsgauge.scripts.stage import Training
from epsgauge.trainers.evenness import differs
from epsgauge.trainers.watches import NoiseSurvey

# How many models a run of a script has unless it is said, and how many canaries each of them, for which a model of so
# many times as many parameters has room.
MODELS, CANARIES, ROOM = 300, 20, 50


def script_plan(
    order: Order, *, folder: Path, n_models: int | None = None, told: Told = lambda name, count: None, **more: Any
) -> Plan:
    """Look at one training of the script, and write down the plan of a run. Modules are looked for in `folder`."""
    with Session(order, folder) as session:
        seen: Seen = session.ask(Look(), told)
        scale = None if seen.private else session.ask(Scale(), told)
        apart = None if scale is None else _noise_differs(session, order, seen, scale)
    if not seen.private and scale is None:
        raise InvalidInput(
            f"how far one record moves an update of {seen.name} cannot be measured, so no canary can be placed. "
            f"`epsgauge probe {shlex.join(order.words)}` says why."
        )
    if apart is not None:
        raise InvalidInput(f"no canary can be placed in {seen.name}: {apart}. Use epsgauge probe.")
    adjacency = order.adjacency
    claim: dict[str, Any] = {}
    if order.claimed_eps is not None:
        claim = {"claimed_eps": order.claimed_eps, "claimed_delta": seen.delta, "claimed_adjacency": adjacency}
    given = {"arguments": list(order.arguments), "module": order.module, "data": order.data}
    trainer: dict[str, Any] = {
        "use": "opacus-script" if seen.private else "script",
        "script": order.target,
        **{name: value for name, value in given.items() if value},
        **({} if order.timeout == Order.timeout else {"timeout": order.timeout}),
        "digest": seen.records[1],
        "accounted": {
            "sample_rate": seen.privacy.sample_rate,
            "noise_multiplier": seen.privacy.noise_multiplier,
            "steps": int(seen.privacy.steps),
        },
    }
    return Plan(
        name=name_of(order),
        seed=order.seed,
        n_models=MODELS if n_models is None else n_models,
        data={"use": "script", "records": seen.records[0]},
        trainer={**trainer, **({} if scale is None else {"max_grad_norm": scale})},
        game={
            "train_size": seen.records[0],
            "pairs_per_model": max(1, min(CANARIES, seen.n_parameters // ROOM, seen.records[0] // 2)),
            "adjacency": adjacency,
            "reference_size": 1,
        },
        adversary={"preset": "white-box"},
        audit={"delta": seen.delta, **claim},
        folder=folder,
        read_from=order.words,
        **more,
    )


def _noise_differs(session: Session, order: Order, seen: Seen, scale: float) -> str | None:
    """Why no parameter may get a gradient of the norm that is measured of whole updates, such as clipping by group."""
    watch = NoiseSurvey()
    training = Training(watch, None, order.seed, False, seen.n_steps, scale)
    watch.restore(session.ask(Train(training)).watch)
    if watch.noise is None or np.isnan(watch.noise).any():
        return None
    return differs(watch.noise, stated=seen.privacy.noise_multiplier, steps=watch.n_steps)


def resumed_plan(order: Order, out: Path, n_models: int | None) -> Plan | None:
    """The plan of a run of the same script that the folder holds; None if there is none."""
    if not Store.is_begun(out / FILE):
        return None
    run = Run.open(out)
    if run.plan_file != (asked := shlex.join(order.words)):
        raise InvalidInput(
            f"{out} holds what `epsgauge run {run.plan_file}` trains, but got {asked}. Repeat that command, or use a "
            "new --out."
        )
    plan = run.plan.changed(folder=Path.cwd(), read_from=order.words)
    return plan if n_models is None else plan.changed(n_models=n_models)


def as_file(plan: Plan) -> str:
    """The plan of a script as a TOML file, for those who want to keep or change it."""
    tables: dict[str, dict[str, Any]] = {
        "data": plan.data.identity(),
        "trainer": plan.trainer.identity(),
        "game": plan.game.model_dump(
            include={"train_size", "pairs_per_model", "adjacency", "reference_size"},
        ),
        "adversary": {"preset": "white-box"},
        "audit": plan.audit.model_dump(include={"delta", "claimed_eps", "claimed_delta", "claimed_adjacency"}),
    }
    lines = [f"# The training of {shlex.join(plan.read_from)}", *_lines({"name": plan.name, "n_models": plan.n_models})]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *_lines({key: value for key, value in table.items() if value is not None})]
    return "\n".join(lines) + "\n"


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_toml(value)}" for key, value in table.items()]


def _toml(value: Any) -> str:
    """Texts, numbers and lists are written as in JSON."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_lines(value))} }}"
    return json.dumps(value, ensure_ascii=False)


def name_of(order: Order) -> str:
    """Of its plan and runs."""
    stem = order.target if order.module else Path(order.target).stem
    return re.sub(r"[^\w.-]+", "-", stem, flags=re.ASCII) or "script"

"""Opacus in a script: where its private training begins, what its accountants count, and which ε they compute."""

from __future__ import annotations

import functools
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from epsgauge.scripts.torch_training import begin

if TYPE_CHECKING:
    from epsgauge.scripts.stage import Stage, Training


def install(stage: Stage) -> None:
    """Hold the script at its first call of `make_private`, which `make_private_with_epsilon` calls too."""
    if find_spec("opacus") is None:
        return
    from opacus import PrivacyEngine, accountants

    for accountant in (accountants.RDPAccountant, accountants.PRVAccountant, accountants.GaussianAccountant):
        _follow(stage, accountant)
    original = PrivacyEngine.make_private

    @functools.wraps(original)
    def make_private(engine: Any, **given: Any) -> Any:
        loader = given["data_loader"]

        def go_on(training: Training) -> Any:
            begin(stage, training, loader)
            made = original(engine, **given)
            stage.model = made[0]
            if training.quiet:
                made[1].noise_multiplier = 0.0
            return made

        return stage.hold(loader.dataset, go_on, private=True)

    PrivacyEngine.make_private = make_private
    with_epsilon = PrivacyEngine.make_private_with_epsilon

    @functools.wraps(with_epsilon)
    def make_private_with_epsilon(engine: Any, **given: Any) -> Any:
        stage.facts["target"] = float(given["target_epsilon"]), float(given["target_delta"])
        return with_epsilon(engine, **given)

    PrivacyEngine.make_private_with_epsilon = make_private_with_epsilon


def _follow(stage: Stage, accountant: Any) -> None:
    """Note the accountant that counts steps, and what the script asks it. Without noise there is no ε."""
    step, get_epsilon = accountant.step, accountant.get_epsilon

    @functools.wraps(step)
    def counted(self: Any, *args: Any, **more: Any) -> Any:
        stage.accountant = self
        return step(self, *args, **more)

    @functools.wraps(get_epsilon)
    def asked(self: Any, *args: Any, **more: Any) -> float:
        if stage.task is not None and stage.task[1].quiet:
            return 0.0
        spent = float(get_epsilon(self, *args, **more))
        delta = more.get("delta", args[0] if args else None)
        stage.facts.update(spent=spent, delta=None if delta is None else float(delta))
        return spent

    accountant.step, accountant.get_epsilon = counted, asked

"""Opacus in a script: where its private training begins, what its accountants count, and which ε they compute."""

from __future__ import annotations

import functools
from collections.abc import Callable
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
            stage.facts["norm_noise"] = getattr(made[1], "unclipped_num_std", None)  # of one that adapts its norm
            if training.quiet:
                made[1].add_noise = functools.partial(_without_noise, made[1], made[1].add_noise)
            return made

        return stage.hold(loader.dataset, go_on, private=True)

    PrivacyEngine.make_private = make_private
    with_epsilon = PrivacyEngine.make_private_with_epsilon

    @functools.wraps(with_epsilon)
    def make_private_with_epsilon(engine: Any, **given: Any) -> Any:
        stage.facts["target"] = float(given["target_epsilon"]), float(given["target_delta"])
        return with_epsilon(engine, **given)

    PrivacyEngine.make_private_with_epsilon = make_private_with_epsilon


def _without_noise(optimizer: Any, add_noise: Callable[[], None]) -> None:
    """A step of a training that is quiet. Its accountant counts the noise that there would be."""
    sigma, optimizer.noise_multiplier = optimizer.noise_multiplier, 0.0
    try:
        add_noise()
    finally:
        optimizer.noise_multiplier = sigma


def _follow(stage: Stage, accountant: Any) -> None:
    """Note the accountant that counts steps, and what the script asks it."""
    step, get_epsilon = accountant.step, accountant.get_epsilon

    @functools.wraps(step)
    def counted(self: Any, *args: Any, **more: Any) -> Any:
        stage.accountant = self
        return step(self, *args, **more)

    @functools.wraps(get_epsilon)
    def asked(self: Any, *args: Any, **more: Any) -> float:
        spent = float(get_epsilon(self, *args, **more))
        delta = more.get("delta", args[0] if args else None)
        stage.facts.update(spent=spent, delta=None if delta is None else float(delta))
        return spent

    accountant.step, accountant.get_epsilon = counted, asked

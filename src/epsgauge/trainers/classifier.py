"""Any classifier with `fit` and `predict_proba`: scikit-learn's, or one that looks like them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.references import is_reference, load
from epsgauge.stats import checks, special
from epsgauge.stats.arrays import Bools, Floats
from epsgauge.trainers.points import Column, labelled


@dataclass(frozen=True, kw_only=True)
class Classifier:
    """A point's loss is −log of the probability that the classifier gives to its label, computed from its log-odds.

    A probability below `smallest_probability` counts as that, so that the loss is finite where a forest or a
    neighbour rule is certain and wrong; so does a label that the classifier never saw.
    """

    estimator: str = "sklearn.linear_model:LogisticRegression"  # a class, or a function that builds one
    settings: dict[str, Any] = field(default_factory=dict)  # its arguments
    smallest_probability: float = 1e-12

    def __post_init__(self) -> None:
        if not is_reference(self.estimator):
            raise InvalidInput(f'estimator must be a class as "module:attr", but got {self.estimator!r}.')
        if not isinstance(self.settings, dict):
            raise InvalidInput(f"settings must be a table of the estimator's arguments, but got {self.settings!r}.")
        p = checks.rate("smallest_probability", self.smallest_probability)
        checks.within("smallest_probability", self.smallest_probability, "in (0, 1)", np.asarray((p > 0) & (p < 1)))

    def train(self, data: Any, *, seed: int) -> Any:
        """A fitted classifier; every `random_state` that the settings leave open is set from the seed."""
        x, y = labelled(data)
        model = self._built()
        _seed(model, seed)
        try:
            model.fit(_flat(x), y)
        except (ValueError, TypeError) as error:
            raise InvalidInput(f"estimator {self.estimator} could not be fitted: {error}") from error
        return model

    def losses(self, model: Any, points: Any) -> Floats:
        x, y = labelled(points)
        given = np.asarray(model.predict_proba(_flat(x)), dtype=np.float64)
        classes = np.asarray(getattr(model, "classes_", []))
        if given.shape != (len(x), len(classes)):
            raise InvalidInput(
                f"predict_proba of {self.estimator} must give each of {len(x)} points a probability for each of the "
                f"{len(classes)} classes of classes_, but got shape {given.shape}."
            )
        margins = _margins(_scores(model, _flat(x), given), y[:, None] == classes[None, :])
        out: Floats = np.minimum(np.logaddexp(0.0, -margins), -np.log(self.smallest_probability))
        return out

    def _built(self) -> Any:
        if self.estimator.startswith("sklearn."):
            try:
                import sklearn  # noqa: F401
            except ImportError:
                raise MissingExtra(
                    "this needs scikit-learn. Install it with: pip install '.[torch]' in the folder of epsgauge"
                ) from None
        make = load(self.estimator, "estimator")
        if not callable(make):
            raise InvalidInput(f"estimator {self.estimator} must be a class, but it is a {type(make).__name__}.")
        try:
            model = make(**self.settings)
        except TypeError as error:
            raise InvalidInput(f"estimator {self.estimator} does not take these settings: {error}.") from error
        missing = [name for name in ("fit", "predict_proba") if not hasattr(model, name)]
        if missing:
            raise InvalidInput(f"estimator {self.estimator} must have fit and predict_proba, but lacks {missing[0]}.")
        return model


def _flat(x: Column) -> Column:
    """As scikit-learn wants them: a row per point, or texts as they are."""
    return x.reshape(len(x), -1) if x.ndim > 2 else x


def _scores(model: Any, x: Column, probabilities: Floats) -> Floats:
    """Logarithms of the probabilities, up to a number for each point.

    Those of the decision function where it has them: a probability near 1 has lost what tells it from 1.
    """
    with np.errstate(divide="ignore"):
        logarithms: Floats = np.log(probabilities)
    if not hasattr(model, "decision_function"):
        return logarithms
    decided = np.asarray(model.decision_function(x), dtype=np.float64)
    if decided.ndim == 1:
        decided = np.stack([np.zeros_like(decided), decided], axis=1)
    same = decided.shape == probabilities.shape and np.allclose(
        special.softmax(decided, axis=1), probabilities, atol=1e-9
    )
    return decided if same else logarithms


def _margins(scores: Floats, labels: Bools) -> Floats:
    """log p − log(1 − p) of each point's label; −∞ of a label that is none of the classes."""
    own, others = (special.logsumexp(np.where(which, scores, -np.inf), axis=1) for which in (labels, ~labels))
    out: Floats = own - others
    return out


def _seed(model: Any, seed: int) -> None:
    """scikit-learn's way: parameters called random_state, those of the steps of a pipeline included."""
    if not hasattr(model, "get_params"):
        return
    open_ = sorted(
        name
        for name, value in model.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    )
    states = np.random.SeedSequence(seed).generate_state(max(1, len(open_)), np.uint32)
    model.set_params(**{name: int(state) for name, state in zip(open_, states, strict=False)})

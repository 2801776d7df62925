"""Curve: a claim of many points (ε, δ) at once, by a family with a number, a table, or a function of ε."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.references import users_code
from epsgauge.stats import checks, region
from epsgauge.stats.arrays import Floats

POINTS = 60  # of a curve that is a function
SMALLEST = 1e-12  # δ: no point is beyond it
LARGEST = 1e6  # ε
MOST = 10_000  # points of a table
RISE = 1e-9  # of δ, by rounding
ORDERS = 1.0 + np.geomspace(1e-3, 1e5, 2000)  # of Rényi divergences; any of them gives a δ that holds
OF_EPS = Callable[[float], float]  # δ of ε
HOW = 'such as "gaussian:1", "laplace:1", "zcdp:0.5" or "rdp:2,0.5" (order, ε), a CSV file with columns eps and delta'


@dataclass(frozen=True, eq=False)
class Curve:
    """Points (ε, δ), all of which are claimed: one that does not hold refutes the claim.

    >>> Curve.of("laplace:1")
    <Curve laplace:1: 60 points, δ from 1e-12 to 0.393 at ε = 0>
    """

    name: str
    eps: Floats
    delta: Floats

    @classmethod
    def point(cls, eps: float, delta: float) -> Curve:
        """A claim of one point; infinite ε where nothing is claimed."""
        return cls("", np.array([eps]), np.array([delta]))

    @classmethod
    def of(cls, given: Any) -> Curve:
        """By a text such as "zcdp:0.5" or the name of a CSV file, by pairs (ε, δ), or by a function δ(ε)."""
        if isinstance(given, Curve):
            return given
        if callable(given):
            return _traced(getattr(given, "__name__", type(given).__name__), given)
        if isinstance(given, str):
            family, _, numbers = given.partition(":")
            if family in FAMILIES:
                return _traced(given, FAMILIES[family](*_parameters(given, family, numbers)))
            if given.lower().endswith(".csv"):
                return _table(given, _read(given))
            raise _unknown(given)
        return _table("table", given)

    @property
    def middle(self) -> float:
        """ε where δ is nearest to 0.01: a place to learn for before a point is chosen; 0 where nothing is claimed."""
        near = np.abs(np.log10(np.maximum(self.delta, SMALLEST)) + 2.0)
        eps = float(self.eps[near.argmin()])
        return eps if np.isfinite(eps) else 0.0

    def __len__(self) -> int:
        return len(self.eps)

    def __repr__(self) -> str:
        most = int(self.delta.argmax())
        at = f"δ from {self.delta.min():.3g} to {self.delta[most]:.3g} at ε = {self.eps[most]:.3g}"
        return f"<Curve {self.name}: {len(self)} points, {at}>"


def _gaussian(mu: float) -> OF_EPS:
    return lambda eps: float(region.gaussian_delta(eps, mu=mu))


def _laplace(total: float) -> OF_EPS:
    """Of Laplace noise with scale 1/ε (Balle, Barthe and Gaboardi 2018, theorem 3)."""
    return lambda eps: float(-np.expm1(min(0.0, 0.5 * (eps - total))))


def _zcdp(rho: float) -> OF_EPS:
    """All orders: ρ-zCDP is (α, αρ)-Rényi DP for each α > 1."""
    return lambda eps: float(np.exp(_log_delta(ORDERS, ORDERS * rho, eps).min()))


def _rdp(order: float, spent: float) -> OF_EPS:
    if order <= 1:
        raise InvalidInput(f"the order of rdp must be above 1, but got {order:g}. Use rdp:ORDER,EPS, such as rdp:2,1.")
    return lambda eps: float(np.exp(_log_delta(np.array([order]), np.array([spent]), eps)[0]))


def _log_delta(order: Floats, spent: Floats, eps: float) -> Floats:
    """What (α, spent)-Rényi DP says of δ at ε (Canonne, Kamath and Steinke 2020, proposition 12)."""
    out: Floats = (order - 1.0) * (spent - eps) + order * np.log1p(-1.0 / order) - np.log(order - 1.0)
    return out


FAMILIES: Mapping[str, Callable[..., OF_EPS]] = {
    "gaussian": _gaussian,
    "laplace": _laplace,
    "zcdp": _zcdp,
    "rdp": _rdp,
}


def _parameters(given: str, family: str, numbers: str) -> list[float]:
    wanted = 2 if family == "rdp" else 1
    try:
        found = [float(part) for part in numbers.split(",")]
    except ValueError:
        raise _unknown(given) from None
    if len(found) != wanted:
        raise _unknown(given)
    return [checks.positive(f"the number of {family}", value) for value in found]


def _traced(name: str, delta_of: Callable[[float], Any]) -> Curve:
    """Points of a function, from ε = 0 to where its δ is next to nothing."""

    def at(eps: float) -> float:
        with users_code(f"the claimed curve {name} at ε = {eps:g}"):
            found = float(delta_of(eps))
        if not found >= 0:  # NaN too
            raise InvalidInput(f"the claimed curve {name} must give δ of at least 0, but gives {found} at ε = {eps:g}.")
        return found

    low, high = 0.0, 1.0
    while at(high) > SMALLEST and high < LARGEST:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if at(middle) > SMALLEST else (low, middle)
    eps = np.linspace(0.0, high, POINTS)
    delta = np.array([at(float(e)) for e in eps])
    return _below_one(_falling(Curve(name, eps, delta)))


def _table(name: str, points: Any) -> Curve:
    try:
        eps, delta = np.asarray(points, dtype=np.float64).reshape(-1, 2).T
        size = np.ndim(points) == 2 and 0 < len(points) <= MOST
    except (TypeError, ValueError):
        raise _unknown(points) from None
    if not size:
        raise InvalidInput(f"a claimed curve must have 1 to {MOST} points (ε, δ), but {name} has {len(points)}.")
    return _falling(_below_one(Curve(name, checks.eps(eps), checks.rate("delta", delta))))


def _below_one(curve: Curve) -> Curve:
    """Without points that promise nothing."""
    some = curve.delta < 1
    if not some.any():
        raise InvalidInput(f"the claimed curve {curve.name} promises nothing: its δ is 1 or more everywhere.")
    return Curve(curve.name, curve.eps[some], curve.delta[some])


def _falling(curve: Curve) -> Curve:
    """The curve itself, whose points may come in any order."""
    order = np.lexsort((curve.delta, curve.eps))
    rises = np.flatnonzero(np.diff(curve.delta[order]) > RISE)
    if len(rises):
        first, then = (f"{curve.delta[at]:.10g} at ε = {curve.eps[at]:.10g}" for at in order[rises[0] :][:2])
        raise InvalidInput(
            f"δ of the claimed curve {curve.name} must fall as ε grows, but it is {first} and {then}. Claim one δ for "
            "each ε, and none that is higher than that of a smaller ε."
        )
    return curve


def _read(path: str) -> list[tuple[float, float]]:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"the claimed curve {path!r} could not be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"the claimed curve {path!r} is no text. Give a CSV file.") from None
    rows = csv.DictReader(io.StringIO(re.sub(r"(?m)^#.*\n?", "", text)), skipinitialspace=True)
    names = list(rows.fieldnames or ())
    if names.count("eps") != 1 or names.count("delta") != 1:
        raise InvalidInput(f"the claimed curve {path!r} must have one column eps and one delta, but has {names}.")
    out = []
    for row in rows:
        at = f"but line {rows.line_num} has"
        if None in row:
            raise InvalidInput(
                f"the claimed curve {path!r} must have as many fields as columns, {at} {len(names) + len(row[None])} "
                f"instead of {len(names)}. Write decimals with a point."
            )
        try:
            out.append((float(row["eps"]), float(row["delta"])))
        except (TypeError, ValueError):
            raise InvalidInput(
                f"the claimed curve {path!r} must have numbers, {at} eps = {row['eps']!r} and delta = "
                f"{row['delta']!r}. Write decimals with a point."
            ) from None
    return out


def _unknown(given: Any) -> InvalidInput:
    return InvalidInput(f"a claimed curve must be {HOW}, pairs (ε, δ), or a function δ(ε), but got {given!r}.")

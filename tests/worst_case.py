"""The most that any (ε, δ)-DP mechanism can do for an adversary who guesses fair bits, by linear programming."""

import itertools
import math

import numpy as np
from scipy.optimize import linprog


def most_right(n_bits, needed, *, eps, delta):
    """sup Pr[K ≥ needed[r]] where the outputs pick the number r of guesses among those in `needed`: over (K, r) alone.

    Mixing over all bit flips and orders leaves K and r as they are and no mechanism less private, so the mechanism may
    be taken as symmetric; then its failing mass, for each bit, is a sum over K and r.
    """
    place = {ka: i for i, ka in enumerate((r, a) for r in needed for a in range(r + 1))}
    n, grow = len(place), math.exp(eps)
    rows = []  # for each (r, a) the failing mass of a right and of a wrong guess, as variables of their own
    for (r, a), i in place.items():
        up, down = np.zeros(3 * n), np.zeros(3 * n)
        up[i], up[n + i], down[i], down[2 * n + i] = a, -1.0, r - a, -1.0
        if a > 0:
            up[i - 1] = -grow * (r - a + 1)
        if a < r:
            down[i + 1] = -grow * (a + 1)
        rows += [up, down]
    bounds = [0.0] * len(rows) + [n_bits * delta]
    rows.append(np.concatenate([np.zeros(n), np.ones(2 * n)]))
    gain = np.concatenate([[-float(a >= needed[r]) for r, a in place], np.zeros(2 * n)])
    one = np.concatenate([np.ones(n), np.zeros(2 * n)])[None, :]
    return -linprog(gain, A_ub=np.array(rows), b_ub=bounds, A_eq=one, b_eq=[1.0]).fun


def most_won(n_bits, wins, *, eps=0.0, delta=0.0, curve=None, n_guesses=None):
    """sup Pr[wins(bits, output)] over every mechanism from bits to outputs in {0, 1, None}: no symmetry is assumed.

    It is (ε, δ)-DP, or for every (ε, δ) of a curve; with `n_guesses` it guesses just so many bits.
    """
    inputs = list(itertools.product((0, 1), repeat=n_bits))
    outputs = list(itertools.product((0, 1, None), repeat=n_bits))
    if n_guesses is not None:
        outputs = [t for t in outputs if n_bits - t.count(None) == n_guesses]
    flips = [(s, x) for s in inputs for x in inputs if sum(a != b for a, b in zip(s, x, strict=True)) == 1]
    pairs = [(s, x, e, d) for s, x in flips for e, d in (curve or [(eps, delta)])]
    place = {(s, t): i for i, (s, t) in enumerate(itertools.product(inputs, outputs))}
    n, width = len(place), len(place) + len(pairs) * len(outputs)
    rows, bounds = [], []
    for k, (s, x, e, d) in enumerate(pairs):
        total = np.zeros(width)
        for j, t in enumerate(outputs):
            failing = n + k * len(outputs) + j
            row = np.zeros(width)
            row[place[s, t]], row[place[x, t]], row[failing] = 1.0, -math.exp(e), -1.0
            total[failing] = 1.0
            rows.append(row)
            bounds.append(0.0)
        rows.append(total)
        bounds.append(d)
    sums = np.zeros((len(inputs), width))
    gain = np.zeros(width)
    for (s, t), i in place.items():
        sums[inputs.index(s), i] = 1.0
        gain[i] = -wins(s, t) / len(inputs)
    return -linprog(gain, A_ub=np.array(rows), b_ub=bounds, A_eq=sums, b_eq=np.ones(len(inputs))).fun

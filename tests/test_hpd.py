"""Highest-density sets: right mass, equal density at the ends, the atom first."""

import pytest

import epsgauge as eg


def mass(post, pieces):
    return sum(post.cdf(p.high) - (post.cdf(p.low) if p.low > 0 else 0.0) for p in pieces)


def test_atom_and_hump_are_a_union():
    post = eg.estimate(eg.Tally(tp=31, tn=996, fp=5, fn=968), delta=1e-5)
    atom, hump = post.hpd(0.9)
    assert (atom.low, atom.high) == (0, 0)
    assert post.pdf(hump.low) == pytest.approx(post.pdf(hump.high), rel=1e-6)
    assert mass(post, [hump]) + post.mass_at_zero == pytest.approx(0.9, abs=1e-8)
    equal_tailed = post.interval(0.9)
    assert hump.high - hump.low < equal_tailed.high - equal_tailed.low


def test_next_to_zero_it_is_one_piece():
    post = eg.estimate(eg.Tally(tp=175, tn=325, fp=188, fn=312), delta=1e-5)
    (piece,) = post.hpd(0.9)
    assert piece.low == 0
    assert post.cdf(piece.high) == pytest.approx(0.9, abs=1e-8)


def test_without_delta_there_is_no_atom():
    post = eg.estimate(eg.Tally(tp=90, tn=100, fp=0, fn=10), delta=0)
    (piece,) = post.hpd(0.8)
    assert piece.low > 0
    assert mass(post, [piece]) == pytest.approx(0.8, abs=1e-8)


def test_a_large_atom_is_all():
    post = eg.estimate(eg.Tally(tp=50, tn=50, fp=50, fn=50), delta=0.3)
    (piece,) = post.hpd(0.9)
    assert (piece.low, piece.high) == (0, 0)


def test_other_quantities():
    for post in (
        eg.estimate_delta(eg.Tally(tp=60, tn=70, fp=30, fn=40), eps=0.1),
        eg.estimate_mu(eg.Tally(tp=6, tn=7, fp=3, fn=4)),
    ):
        assert mass(post, post.hpd(0.7)) == pytest.approx(0.7, abs=1e-8)


def test_arrays_are_refused():
    with pytest.raises(eg.InvalidInput, match="hpd is for one tally"):
        eg.estimate(eg.Tally(tp=[1, 2], tn=1, fp=1, fn=1), delta=0).hpd(0.9)

"""Texts that two machines made: words as words, numbers as numbers."""

import pytest

from tools.same_text import same_text

DRAWN = '<b>{}</b><svg width="{}"><text>{}</text></svg><p>{}</p>'


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ("low 2.5443716636406135, high 1e-05", "low 2.5443716636406131, high 1e-05"),
        ("1.4003427229805316e-05", "1.4003427229805399e-05"),
        (DRAWN.format(1, "10.13", 2.5, 3), DRAWN.format(1, "10.12", 2.5, 3)),
        (DRAWN.format(1, "10.1", 2.5, 3), DRAWN.format(1, "10.09", 2.5, 3)),
    ],
)
def test_the_same(found, expected):
    assert same_text(found, expected)
    assert same_text(expected, found)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ("ε ≥ 2.54", "ε ≥ 2.55"),
        ("ε ≥ 2.54", "ε > 2.54"),
        ("600 models", "601 models"),
        ("1.40034272298", "1.40034272698"),
        ("two numbers: 1, 2", "two numbers: 1"),
        (DRAWN.format(1, "10.12", 2.5, 3), DRAWN.format(1, "10.14", 2.5, 3)),
        (DRAWN.format(1, "10.12", 2.5, 3.01), DRAWN.format(1, "10.12", 2.5, 3.02)),
        (DRAWN.format(1, "10.12", 2.5, 3), DRAWN.format(1, "10.12", 2.5, 3).replace("text", "b")),
        (DRAWN.format(1, "10.12", 2.5, 3), DRAWN.format(1, "10.12", 2.5, 3) * 2),
    ],
)
def test_not_the_same(found, expected):
    assert not same_text(found, expected)
    assert not same_text(expected, found)

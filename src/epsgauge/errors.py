"""The errors that epsgauge raises on purpose; each message names the thing, the rule, the value and the remedy."""

from __future__ import annotations


class EpsgaugeError(Exception):
    """Base of all errors that epsgauge raises on purpose."""


class InvalidInput(EpsgaugeError, ValueError):
    """An argument breaks its rule."""


class MissingExtra(EpsgaugeError, ImportError):
    """An optional dependency is needed and not installed."""

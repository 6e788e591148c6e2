"""The safety limits of an apply."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The safety limits that stop an apply (exit 5)."""

    failures: int = 100
    """Rows that may fail."""
    failures_percent: float = 10.0
    """Share of the rows tried that may fail."""
    touched_percent: float = 50.0
    """Share of the target's records of one resource that a plan may change."""
    refused_forms: int = 3
    """Rows of one resource that the target may refuse because of their form, before the others of the resource are left."""
    patience: float = 1800.0
    """Seconds to wait for a service that is down, for each outage: a long apply runs at night, too."""


LIMITS = Limits()
NO_LIMITS = Limits(failures=1_000_000_000, failures_percent=100.0, touched_percent=100.0, refused_forms=1_000_000_000)
"""Of an apply that a person forces, and of a drill."""

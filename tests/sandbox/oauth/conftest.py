"""A library for rules of OAuth that only the RFCs state."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.spec.conftest import Library, make_library

__all__ = ["make_library"]


@pytest.fixture
def library(make_library: Callable[..., Library]) -> Library:
    """A library with one publication."""
    return make_library(1, oauth={"registrations_per_day": 10_000})

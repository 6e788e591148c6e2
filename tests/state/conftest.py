"""A database for all tests of a file, and a way to wait."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.state_places import Place, postgres_place


@pytest.fixture(scope="module")
def one_shared_place(state_server: str) -> Iterator[Place]:
    """A database for many libraries."""
    with postgres_place(state_server) as place:
        yield place

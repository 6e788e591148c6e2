"""The sandbox ends when it is asked to, in every state; `python -m tests.sandbox.stops 200` does the same as often as one likes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.sandbox.stops import STATES


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_a_signal_ends_it(state: Callable[[float], None], seed: int) -> None:
    """One signal or two within a millisecond. Two of them once took one lock in one thread, and that was the end of ending."""
    state(seed)

"""The leases of one run: each tenant's once, until all of them are released. And the lease of a removal.

A run acquires its tenant's lease, then waits until no removal is at work. A removal acquires the one lease of all removals, then looks at
the leases of tenants. So whichever came second sees the first: no run reads or stores anything while files go, and none is refused for it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from pipelines.errors import TenantBusyError
from pipelines.state.store import Ticking
from pipelines.store.snapshots.snapshots import DataFolder

REMOVAL = "snapshots-prune"
"""The name of the lease of a removal; no tenant may have one with a hyphen."""

MOST_SECONDS = 3600.0
"""How long to wait for a removal. It deletes some hundred objects a second."""

POLL_SECONDS = 1.0

_log = logging.getLogger(__name__)


class Leases:
    """Leases of the tenants of a data folder."""

    def __init__(self, data: DataFolder, clock: Ticking = time) -> None:
        self._data = data
        self._clock = clock
        self._leases = ExitStack()
        self._tenants: set[str] = set()

    def acquire(self, tenant: str) -> None:
        """Acquire the lease of a tenant, unless this run has it, and wait for a removal that is at work.

        Raises `TenantBusyError` where another run has the lease, or the removal takes more than an hour.
        """
        if tenant in self._tenants:
            return
        with ExitStack() as acquiring:
            acquiring.enter_context(self._data.lease(tenant))
            _wait_until(lambda: not self._data.leased([REMOVAL]), self._clock)
            self._leases.push(acquiring.pop_all())
        self._tenants.add(tenant)

    def check(self) -> frozenset[str]:
        """The tenants whose leases this run has. Raises `StorageError` where it has lost one."""
        for tenant in self._tenants:
            self._data.fence(tenant)
        return frozenset(self._tenants)

    def release(self) -> None:
        """Release all leases."""
        self._tenants.clear()
        self._leases.close()


@contextmanager
def removal(data: DataFolder, clock: Ticking = time) -> Iterator[None]:
    """The exclusive right to remove snapshots and files. Waits for another removal; runs that begin meanwhile wait for this one."""
    with ExitStack() as leases:

        def acquire() -> bool:
            try:
                leases.enter_context(data.lease(REMOVAL))
            except TenantBusyError:
                return False
            return True

        _wait_until(acquire, clock)
        yield


def _wait_until(is_free: Callable[[], bool], clock: Ticking) -> None:
    """Wait for a removal that another process is at. Says so once."""
    if is_free():
        return
    _log.warning("`snapshots prune` removes old snapshots at this moment; waiting until it ends, for an hour at most.")
    ends = clock.monotonic() + MOST_SECONDS
    while not is_free():
        if clock.monotonic() >= ends:
            raise TenantBusyError(
                "`snapshots prune` has been removing old snapshots for an hour, and nothing is read or written meanwhile. Find out what "
                "keeps it, or end it (the next one goes on); then run this again."
            )
        clock.sleep(POLL_SECONDS)

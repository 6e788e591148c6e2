"""The leases of one run: each tenant's once, until all of them are released."""

from __future__ import annotations

from contextlib import ExitStack

from pipelines.store.snapshots.snapshots import DataFolder


class Leases:
    """Leases of the tenants of a data folder. The kernel releases the leases of a process that dies."""

    def __init__(self, data: DataFolder) -> None:
        self._data = data
        self._leases = ExitStack()
        self._tenants: set[str] = set()

    def acquire(self, tenant: str) -> None:
        """Acquire the lease of a tenant, unless this run has it. Raises `TenantBusyError` where another run has it."""
        if tenant not in self._tenants:
            self._leases.enter_context(self._data.lease(tenant))
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

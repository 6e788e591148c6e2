"""The leases that one piece of work holds, each tenant's once, until all are given back."""

from __future__ import annotations

from contextlib import ExitStack

from pipelines.store.snapshots.snapshots import DataFolder


class Leases:
    """Leases of the tenants of a data folder. What a process that dies holds, the kernel takes back."""

    def __init__(self, data: DataFolder) -> None:
        self._data = data
        self._held = ExitStack()
        self._tenants: set[str] = set()

    def hold(self, tenant: str) -> None:
        """Have the lease of a tenant from now on. Raises `TenantBusyError` where another run has it."""
        if tenant not in self._tenants:
            self._held.enter_context(self._data.lease(tenant))
            self._tenants.add(tenant)

    def give_back(self) -> None:
        """All of them."""
        self._tenants.clear()
        self._held.close()

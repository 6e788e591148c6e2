"""Which snapshots a verification covers: a named one, the newest complete one of a tenant, or that of every tenant."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.errors import ConfigurationError
from pipelines.store.snapshots.snapshots import (
    DamagedSnapshot,
    DataFolder,
    Snapshot,
    name_of,
    newest_complete,
    read_snapshots,
)


def keys_to_verify(data: DataFolder, name: str | None) -> list[str]:
    """The keys of the snapshots to verify, damaged ones included: a named one, or the newest complete one of a tenant or of every tenant.

    With the newest ones come all snapshots with an unreadable manifest: any of them might be the newest.
    """
    keys = _keys(data)
    named = [key for key in keys if name in (name_of(key), name_of(key).partition("/")[2])]
    if named:
        return named
    tenants = _tenants(keys)
    if name is not None and name not in tenants:
        data.find_snapshot(name)  # raises with the names of the snapshots
    chosen = [key for tenant in tenants if name in (None, tenant) for key in _newest(data, keys, tenant)]
    if not chosen:
        raise ConfigurationError(
            f"There is no complete snapshot in {data.objects.address}{f' of {name}' if name else ''}, so there is nothing to verify. Run "
            "`bookferry backup TENANT` first; a partial snapshot is verified by its name."
        )
    return chosen


def tenants_without_complete(data: DataFolder) -> list[str]:
    """Tenants with snapshots, none of them complete."""
    keys = _keys(data)
    return [tenant for tenant in _tenants(keys) if not _newest(data, keys, tenant)]


def _keys(data: DataFolder) -> list[str]:
    """The keys of all snapshots, without those that are half published or half removed."""
    unfinished = data.objects.unfinished("snapshots")
    return [key for key in data.snapshot_keys() if key not in unfinished]


def tenant_of(key: str) -> str:
    """The tenant of a snapshot's key."""
    return name_of(key).partition("/")[0]


def _tenants(keys: Iterable[str]) -> list[str]:
    return sorted({tenant_of(key) for key in keys})


def _newest(data: DataFolder, keys: Iterable[str], tenant: str) -> list[str]:
    """The newest complete snapshot of a tenant, and the unreadable ones: those without a manifest, too."""
    of_tenant = [key for key in keys if tenant_of(key) == tenant]
    examined = {one.key: one for one in read_snapshots(data.objects, of_tenant)}
    unreadable = [key for key in of_tenant if isinstance(examined.get(key), DamagedSnapshot | None)]
    newest = newest_complete(one for one in examined.values() if isinstance(one, Snapshot))
    return [*unreadable, *([newest.key] if newest else [])]

"""The names that a shell offers for arguments: tenants, snapshots, plans, example queries. It is asked at every press of Tab.

So it reads only names, of the configuration and of local folders: not what the settings mean, which takes ten times as long. Nothing is
offered from a bucket. What cannot be read offers nothing.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
"""Names that every shell takes as they are. A file could have any, and some shells evaluate what they are offered."""

TENANTS, SNAPSHOTS, SNAPSHOT_IDS, PLANS, EXAMPLES = (
    "tenants",
    "snapshots",
    "snapshot_ids",
    "plans",
    "examples",
)


def offered(kind: str, config: str | None, given: Collection[str], incomplete: str) -> list[str]:
    """The names of one of these kinds that begin with `incomplete`.

    `config`: the configuration file that the command line names. `given`: the arguments so far, which may name tenants; of these, or else
    of all, the ids of snapshots are offered. A snapshot is offered as TENANT/SNAPSHOT, and a tenant, too: it stands for its newest one.
    """
    if kind == EXAMPLES:
        folder = Path(__file__).resolve().parents[2] / "sql" / "examples"
        names = [path.stem for path in folder.glob("*.sql")]
    else:
        names = _names_of_data(kind, config, given)
    return sorted(name for name in {*names} if name.startswith(incomplete) and _PLAIN.fullmatch(name))


def _names_of_data(kind: str, config: str | None, given: Collection[str]) -> list[str]:
    file = Path(config or os.environ.get("BOOKFERRY_CONFIG") or "bookferry.toml")
    content = _content(file)
    data = file.absolute().parent / _expanded(str(content.get("data", "library-data")))
    if kind == PLANS:
        return _folders(data, "plans")
    found = content.get("tenants")
    tenants = [*found] if isinstance(found, dict) else []
    if kind == TENANTS:
        return tenants
    if kind == SNAPSHOTS:
        return [*tenants, *(f"{tenant}/{one}" for tenant in tenants for one in _snapshots(data, tenant))]
    named = [tenant for tenant in tenants if tenant in given]
    return [one for tenant in named or tenants for one in _snapshots(data, tenant)]


def _snapshots(data: Path, tenant: str) -> list[str]:
    return _folders(data, f"snapshots/tenant={tenant}", "snapshot=")


def _folders(data: Path, below: str, prefix: str = "") -> list[str]:
    """What follows `prefix` in the names of the folders below a place in the data folder."""
    try:
        names = [path.name for path in (data / below).iterdir() if path.is_dir()]
    except (OSError, ValueError):
        return []
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def _expanded(data: str) -> Path:
    try:
        return Path(data).expanduser()
    except RuntimeError:  # ~ of nobody
        return Path(data)


def _content(file: Path) -> dict[str, Any]:
    """The content of the configuration file; empty if it cannot be read."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}

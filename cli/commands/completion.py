"""What a shell offers for arguments: tenants, snapshots, plans, example queries. It is asked at every press of Tab.

So it reads only names, of the configuration and of local folders: not what the settings mean, which takes ten times as long. Nothing is
offered from a bucket. What cannot be read offers nothing.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import typer

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
"""Names that every shell takes as they are. A file could have any, and some shells evaluate what they are offered."""


def tenants(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tenants of the configuration."""
    return _offered(_tenants(ctx), incomplete)


def snapshots(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tenants, each for its newest snapshot, and every snapshot of each: TENANT/SNAPSHOT."""
    names = _tenants(ctx)
    return _offered([*names, *(f"{tenant}/{one}" for tenant in names for one in _snapshots(ctx, tenant))], incomplete)


def snapshot_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids of the snapshots of the tenants that the command names, or of all."""
    known = _tenants(ctx)
    given = {ctx.params.get("tenant"), *ctx.args}  # Typer leaves it among the arguments while an option lacks its value
    named = [tenant for tenant in known if tenant in given]
    return _offered([one for tenant in named or known for one in _snapshots(ctx, tenant)], incomplete)


def plans(ctx: typer.Context, incomplete: str) -> list[str]:
    """The plans of the data folder."""
    return _offered(_folders(ctx, "plans"), incomplete)


def examples(incomplete: str) -> list[str]:
    """The example queries."""
    folder = Path(__file__).resolve().parents[2] / "sql" / "examples"
    return _offered([path.stem for path in folder.glob("*.sql")], incomplete)


def _offered(names: list[str], incomplete: str) -> list[str]:
    return sorted(name for name in {*names} if name.startswith(incomplete) and _PLAIN.fullmatch(name))


def _tenants(ctx: typer.Context) -> list[str]:
    found = _configuration(ctx)[1].get("tenants")
    return [*found] if isinstance(found, dict) else []


def _snapshots(ctx: typer.Context, tenant: str) -> list[str]:
    return _folders(ctx, f"snapshots/tenant={tenant}", "snapshot=")


def _folders(ctx: typer.Context, below: str, prefix: str = "") -> list[str]:
    """What follows `prefix` in the names of the folders below a place in the data folder."""
    file, found = _configuration(ctx)
    try:
        data = file.absolute().parent / Path(str(found.get("data", "library-data"))).expanduser()
        names = [path.name for path in (data / below).iterdir() if path.is_dir()]
    except (OSError, RuntimeError, ValueError):
        return []
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def _configuration(ctx: typer.Context) -> tuple[Path, dict[str, Any]]:
    """The configuration file that the command line or the environment names, and its content; empty if it cannot be read."""
    named = ctx.params.get("config") or ctx.find_root().params.get("config")
    file = Path(named or os.environ.get("BOOKFERRY_CONFIG") or "bookferry.toml")
    try:
        return file, tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return file, {}

"""What a shell offers for arguments: tenants, snapshots, plans, example queries. It is asked at every press of Tab.

So only names are read, of the configuration and of local folders: not what the settings mean, which takes ten times as long. Nothing is
offered from a bucket. What cannot be read offers nothing.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
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
    return _offered([*_tenants(ctx), *_snapshots(ctx)], incomplete)


def snapshot_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Every snapshot: TENANT/SNAPSHOT."""
    return _offered(_snapshots(ctx), incomplete)


def plans(ctx: typer.Context, incomplete: str) -> list[str]:
    """The plans of the data folder."""
    return _offered((path.name for path in _folders(ctx, "plans/*")), incomplete)


def examples(incomplete: str) -> list[str]:
    """The example queries."""
    folder = Path(__file__).resolve().parents[1] / "sql" / "examples"
    return _offered((path.stem for path in folder.glob("*.sql")), incomplete)


def _offered(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted(name for name in {*names} if name.startswith(incomplete) and _PLAIN.fullmatch(name))


def _tenants(ctx: typer.Context) -> list[str]:
    tables = _content(_file(ctx)).get("tenants")
    return [*tables] if isinstance(tables, dict) else []


def _snapshots(ctx: typer.Context) -> list[str]:
    folders = _folders(ctx, "snapshots/tenant=*/snapshot=*")
    return [f"{path.parent.name.partition('=')[2]}/{path.name.partition('=')[2]}" for path in folders]


def _folders(ctx: typer.Context, pattern: str) -> list[Path]:
    """The folders of the data folder that have names of this pattern."""
    file = _file(ctx)
    data = Path(os.path.expanduser(str(_content(file).get("data", "library-data"))))  # noqa: PTH111  keeps the ~ of nobody
    return [path for path in (file.absolute().parent / data).glob(pattern) if path.is_dir()]


def _file(ctx: typer.Context) -> Path:
    config = ctx.params.get("config") or ctx.find_root().params.get("config")
    return Path(config or os.environ.get("BOOKFERRY_CONFIG") or "bookferry.toml")


def _content(file: Path) -> dict[str, Any]:
    """The content of the configuration file; empty if it cannot be read."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}

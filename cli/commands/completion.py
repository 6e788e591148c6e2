"""What Typer offers for arguments, one function for each kind of names."""

from __future__ import annotations

import typer

from cli.commands import names


def tenants(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tenants of the configuration."""
    return _offered(names.TENANTS, ctx, incomplete)


def snapshots(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tenants, each for its newest snapshot, and every snapshot of each: TENANT/SNAPSHOT."""
    return _offered(names.SNAPSHOTS, ctx, incomplete)


def snapshot_ids(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids of the snapshots of the tenants that the command names, or of all."""
    return _offered(names.SNAPSHOT_IDS, ctx, incomplete)


def plans(ctx: typer.Context, incomplete: str) -> list[str]:
    """The plans of the data folder."""
    return _offered(names.PLANS, ctx, incomplete)


def examples(ctx: typer.Context, incomplete: str) -> list[str]:
    """The example queries."""
    return _offered(names.EXAMPLES, ctx, incomplete)


def _offered(kind: str, ctx: typer.Context, incomplete: str) -> list[str]:
    config = ctx.params.get("config") or ctx.find_root().params.get("config")
    # Typer leaves a tenant among the arguments while an option lacks its value
    return names.offered(kind, config, [str(ctx.params.get("tenant")), *ctx.args], incomplete)

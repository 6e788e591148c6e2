"""`bookferry snapshots`: list, show, verify, diff, prune. Each names the function that answers it."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import completion
from cli.boundary import command
from cli.commands.application import Application

snapshots = Application(name="snapshots", help="List, show, verify, compare and remove snapshots.")


@snapshots.command("list")
@command("cli.snapshots:list_snapshots")
def list_(
    tenant: Annotated[
        str | None, typer.Argument(autocompletion=completion.tenants, help="Only the snapshots of this tenant.")
    ] = None,
) -> None:
    """List the snapshots: age, completeness, records, size, requests, and when they were last verified."""


@snapshots.command("show")
@command("cli.snapshots:show_snapshot")
def show(
    snapshot: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.snapshots,
            help="TENANT/SNAPSHOT, the id of a snapshot, or a tenant for its newest complete one.",
        ),
    ],
) -> None:
    """Show one snapshot: its proof, its tables, and its residue."""


@snapshots.command("verify")
@command("cli.verification:verify_snapshots")
def verify(
    snapshot: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.snapshots,
            help="TENANT/SNAPSHOT, the id of a snapshot, or a tenant for its newest complete one. Default: that of every tenant.",
        ),
    ] = None,
    read_data: Annotated[
        str,
        typer.Option(
            help="Part of the blobs to read, a different one every day: 1/7 reads all of them in a week.", metavar="N/M"
        ),
    ] = "1/1",
) -> None:
    """Verify that a snapshot is as it was published: manifest, checksums, rows, counts, blobs. Exits with 6 when it is not."""


@snapshots.command("diff")
@command("cli.differences:diff_snapshots")
def diff(
    a: Annotated[
        str, typer.Argument(autocompletion=completion.snapshots, help="The earlier snapshot, named as for `show`.")
    ],
    b: Annotated[str, typer.Argument(autocompletion=completion.snapshots, help="The later snapshot.")],
    resource: Annotated[str | None, typer.Option(help="Compare only this resource.")] = None,
) -> None:
    """Compare two snapshots: records added, removed and changed, and the changed fields. Exits with 6 when there is a difference."""


@snapshots.command("prune")
@command("cli.retention:prune_snapshots")
def prune(
    tenant: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.tenants, help="Only the snapshots of this tenant. Default: all tenants."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would be removed, and why the others stay.")
    ] = False,
) -> None:
    """Remove the snapshots that the table `retention` of bookferry.toml does not keep, and the blobs that no other snapshot needs.

    The newest complete snapshot always stays.
    """

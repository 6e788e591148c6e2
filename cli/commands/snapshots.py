"""`bookferry snapshots`: list, show, verify, diff, prune. Each imports what it runs when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.boundary import command
from cli.commands import completion
from cli.commands.application import Application
from cli.commands.options import ConfigOption, JsonOption, settings_of
from cli.output import Output
from pipelines.errors import ExitStatus

snapshots = Application(name="snapshots", help="List, show, verify, compare and remove snapshots.")


@snapshots.command("list")
@command("cli.snapshots")
def list_(
    tenant: Annotated[
        str | None, typer.Argument(autocompletion=completion.tenants, help="Only the snapshots of this tenant.")
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """List the snapshots: age, completeness, records, size, requests, and when they were last verified."""
    from cli.snapshots import list_snapshots

    return list_snapshots(settings_of(config), tenant, Output(as_json=json))


@snapshots.command("show")
@command("cli.snapshots")
def show(
    snapshot: Annotated[
        str,
        typer.Argument(
            autocompletion=completion.snapshots,
            help="TENANT/SNAPSHOT, the id of a snapshot, or a tenant for its newest complete one.",
        ),
    ],
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Show one snapshot: its proof, its tables, and its residue."""
    from cli.snapshots import show_snapshot

    return show_snapshot(settings_of(config), snapshot, Output(as_json=json))


@snapshots.command("verify")
@command("cli.verification")
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
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Verify that a snapshot is as it was published: manifest, checksums, rows, counts, blobs. Exits with 6 when it is not."""
    from cli.verification import verify_snapshots

    return verify_snapshots(settings_of(config), snapshot, read_data, Output(as_json=json))


@snapshots.command("diff")
@command("cli.differences")
def diff(
    a: Annotated[
        str, typer.Argument(autocompletion=completion.snapshots, help="The earlier snapshot, named as for `show`.")
    ],
    b: Annotated[str, typer.Argument(autocompletion=completion.snapshots, help="The later snapshot.")],
    resource: Annotated[str | None, typer.Option(help="Compare only this resource.")] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Compare two snapshots: records added, removed and changed, and the changed fields. Exits with 6 when there is a difference."""
    from cli.differences import diff_snapshots

    return diff_snapshots(settings_of(config), (a, b), resource, Output(as_json=json))


@snapshots.command("prune")
@command("cli.retention")
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
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Remove the snapshots that the table `retention` of bookferry.toml does not keep, and the blobs that no other snapshot needs.

    The newest complete snapshot always stays.
    """
    from cli.retention import prune_snapshots

    return prune_snapshots(settings_of(config), tenant, Output(as_json=json), dry_run=dry_run)

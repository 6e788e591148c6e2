"""Commands about backups: backup, nightly, describe, doctor, report, stage. Each names the function that answers it."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import completion
from cli.boundary import command
from cli.options import BackedUpTenant, ConfigOption, JsonOption, SnapshotOption, Tenant

STOPPED = (
    "Stopped before the end. No snapshot is published in part, and the last good one is untouched. What was read is stored: the same "
    "command resumes there, if it runs within 12 hours of the beginning."
)


@command("cli.backup:backup_tenant", stopped=STOPPED)
def backup(
    tenant: Tenant,
    resources: Annotated[
        str,
        typer.Option(
            help="Resources to back up, separated by commas. Default: `resources` of the tenant, else all of v3 and the publications of v2."
        ),
    ] = "",
    no_files: Annotated[
        bool, typer.Option("--no-files", help="Back up records only, without the content of files and covers.")
    ] = False,
) -> None:
    """Make one snapshot of a library now: read the records, stage the tables, prove completeness, publish."""


@command("cli.nightly:run_night", opened=None, stopped=STOPPED)
def nightly(
    tenant: Tenant,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Run the whole night of a library, for cron and timers: back up, verify a seventh of the stored files, and prune if all is good."""


@command("cli.describe:describe_tenant")
def describe(
    tenant: Tenant,
) -> None:
    """Show the fields of a library's resources: what its description says, what its records have, and where Bookferry keeps each.

    --json prints a document for an issue: shapes, counts and names of headers, and no value of any record.
    """


@command("cli.doctor:examine_tenants")
def doctor(
    tenant: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.tenants, help="Only this tenant. Default: all tenants of bookferry.toml."
        ),
    ] = None,
) -> None:
    """Check whether the nightly backup would work: sign-in, scopes, clock, rate, disk and the service's behaviour. Only reads."""


@command("cli.status:show_status")
def status() -> None:
    """Show the state of all libraries on one screen. Exit status 0 only if each is as its owner wants it; asks no library."""


@command("cli.report:report_on")
def report(
    tenant: BackedUpTenant,
    snapshot: SnapshotOption = None,
) -> None:
    """Report on a snapshot: invalid identifiers, duplicates, missing files; as a web page, and as tables of issues for spreadsheets."""


@command("cli.stage:stage_snapshots")
def stage(
    tenant: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.tenants, help="A tenant of bookferry.toml. Default: all that have snapshots."
        ),
    ] = None,
    snapshot: SnapshotOption = None,
    history: Annotated[
        bool, typer.Option("--history", help="Stage every complete snapshot that is not there yet.")
    ] = False,
) -> None:
    """Load staged tables into Postgres, and register them in Iceberg tables, as configured. Each backup does so, too; this repeats it."""

"""Commands about backups: backup, nightly, describe, doctor, report, stage. Each imports what it runs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.boundary import command
from cli.commands import completion
from cli.commands.options import BackedUpTenant, ConfigOption, JsonOption, SnapshotIdOption, settings_of
from cli.output import Output
from pipelines.errors import ExitStatus

STOPPED = (
    "Stopped before the end. Nothing was published and the last good snapshot is untouched. What was read is stored: the same command "
    "resumes there, if it runs within 12 hours of the beginning."
)


@command("cli.backup", STOPPED)
def backup(
    tenant: Annotated[str, typer.Argument(autocompletion=completion.tenants, help="A tenant of bookferry.toml.")],
    resources: Annotated[
        str,
        typer.Option(
            help="Resources to back up, separated by commas. Default: `resources` of the tenant, else all of v3 and the publications of v2."
        ),
    ] = "",
    no_files: Annotated[
        bool, typer.Option("--no-files", help="Back up records only, without the content of files and covers.")
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Make one snapshot of a library now: read the records, stage the tables, prove completeness, publish."""
    from cli.backup import backup_tenant

    names = [name.strip() for name in resources.split(",") if name.strip()]
    return backup_tenant(settings_of(config), tenant, names, Output(as_json=json), with_files=not no_files)


@command("cli.night", STOPPED)
def nightly(
    tenant: Annotated[str, typer.Argument(autocompletion=completion.tenants, help="A tenant of bookferry.toml.")],
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Run the whole night of a library, for cron and timers: back up, verify a seventh of the stored files, and prune if all is good."""
    from cli.night import run_night

    return run_night(settings_of(config), tenant, Output(as_json=json))


@command("cli.describe")
def describe(
    tenant: Annotated[str, typer.Argument(autocompletion=completion.tenants, help="A tenant of bookferry.toml.")],
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write a file for an issue: shapes, counts and names of headers, and no value of any record.",
        ),
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Show the fields of a library's resources: what its description says, what its records have, and where Bookferry keeps each."""
    from cli.describe import describe_tenant

    return describe_tenant(settings_of(config), tenant, report, Output(as_json=json))


@command("cli.doctor")
def doctor(
    tenant: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.tenants, help="Only this tenant. Default: all tenants of bookferry.toml."
        ),
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Check whether the nightly backup would work: sign-in, scopes, clock, rate, disk and the service's behaviour. Only reads."""
    from cli.doctor import examine_tenants

    return examine_tenants(config, tenant, Output(as_json=json))


@command("cli.status")
def status(config: ConfigOption = None, json: JsonOption = False) -> ExitStatus:
    """Show the state of all libraries on one screen. Exit status 0 only if each is as its owner wants it; asks no library."""
    from cli.status import show_status

    return show_status(settings_of(config), Output(as_json=json))


@command("cli.report")
def report(
    tenant: BackedUpTenant,
    snapshot: SnapshotIdOption = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Report on a snapshot: invalid identifiers, duplicates, missing files; as a web page, and as tables of issues for spreadsheets."""
    from cli.report import report_on

    return report_on(settings_of(config), tenant, snapshot, Output(as_json=json))


@command("cli.stage")
def stage(
    tenant: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completion.tenants, help="A tenant of bookferry.toml. Default: all that have snapshots."
        ),
    ] = None,
    snapshot: Annotated[
        str | None,
        typer.Option(
            "--snapshot",
            autocompletion=completion.snapshot_ids,
            help="Id of a complete snapshot. Default: the newest one.",
        ),
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Stage every complete snapshot that is not there yet.")
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Load staged tables into Postgres, and register them in Iceberg tables, as configured. Each backup does so, too; this repeats it."""
    from cli.stage import stage_snapshots

    return stage_snapshots(settings_of(config), tenant, snapshot, Output(as_json=json), history=history)

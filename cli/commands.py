"""`bookferry`: the commands, each with its help; what they do is in the modules beside this one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from cli import demo as demo_command
from cli import servers, setup
from cli.backup import backup_tenant
from cli.boundary import ConfigOption, JsonOption, command
from cli.differences import diff_snapshots
from cli.doctor import examine_tenants
from cli.login import log_in
from cli.migrate_commands import drill, migrate, restore
from cli.output import Output
from cli.query import OutputFormat, answer_query, chosen_sql, list_examples, show_sql
from cli.report import report_on
from cli.retention import prune_snapshots
from cli.snapshots import list_snapshots, show_snapshot
from cli.stage import stage_snapshots
from cli.tables import print_dictionary, show_tables
from cli.verification import verify_snapshots
from cli.whoami import who
from pipelines.errors import ExitStatus
from pipelines.settings.loading import CONFIG_FILE, CONFIG_VARIABLE, find_config, load_settings
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.retention import Policy
from pipelines.version import VERSION

app = typer.Typer(
    name="bookferry",
    help="Backs up, migrates and stages a hosted library for analysis.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Exit status: 0 complete, 1 failed, 2 usage or configuration, 3 partial, 4 a person must sign in, "
    "5 a safety limit stopped it, 6 differences found.",
)
snapshots = typer.Typer(help="Look after the snapshots in the data folder.", no_args_is_help=True)
app.add_typer(snapshots, name="snapshots")
app.add_typer(migrate, name="migrate")
app.command()(command(restore))
app.command()(command(drill))


def _settings(config: str | None) -> Settings:
    return load_settings(find_config(Path(config) if config else None))


def _settings_if_any(config: str | None) -> Settings | None:
    """For commands that can answer without a configuration; one that is named must be there and right."""
    named = config or os.environ.get(CONFIG_VARIABLE)
    return _settings(config) if named or Path(CONFIG_FILE).is_file() else None


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"bookferry {VERSION}")
        raise typer.Exit


@app.callback()
def bookferry(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Backs up, migrates and stages a hosted library for analysis."""


@app.command()
@command
def demo(
    folder: Annotated[Path, typer.Option(help="Where the demonstration's files go.")] = Path("bookferry-demo"),
    backup_only: Annotated[bool, typer.Option("--backup-only", help="Without the migration: a minute less.")] = False,
    json: JsonOption = False,
) -> ExitStatus:
    """Back up a local library of 5,445 real records, ask it three questions, and move it to version 3. Needs no account and no network."""
    return demo_command.run(folder, Output(as_json=json), backup_only=backup_only)


@app.command()
@command
def init(  # noqa: PLR0917  the same
    base_url: Annotated[
        str, typer.Option(help="Address of your library, without /api.")
    ] = "https://library.example.org",
    tenant: Annotated[str, typer.Option(help="The name you want to give it here.")] = "library",
    data: Annotated[str, typer.Option(help="Folder for snapshots.")] = "library-data",
    api: Annotated[str, typer.Option(help="v2, or v3, which you sign in to with `bookferry login`.")] = "v2",
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Write a bookferry.toml to start from, and say what to do next. Never overwrites one."""
    return setup.write_config(
        Path(config or "bookferry.toml"),
        base_url=base_url,
        tenant=tenant,
        data=data,
        api=api,
        output=Output(as_json=json),
    )


@app.command()
@command
def backup(
    tenant: Annotated[str, typer.Argument(help="A tenant of bookferry.toml.")],
    resources: Annotated[
        str,
        typer.Option(
            help="Resources to back up, by name, separated by commas. Not given: those of the tenant's `resources`, else all of v3 and the "
            "publications of v2."
        ),
    ] = "",
    no_files: Annotated[
        bool, typer.Option("--no-files", help="Records only: the content of files and covers is not fetched.")
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Make one snapshot of a library now: read it, stage its tables, prove it complete, publish it."""
    wanted = [name.strip() for name in resources.split(",") if name.strip()]
    return backup_tenant(_settings(config), tenant, wanted, Output(as_json=json), with_files=not no_files)


@app.command()
@command
def doctor(
    tenant: Annotated[str | None, typer.Argument(help="Only this tenant; all of bookferry.toml if not given.")] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Find out whether the nightly backup would work: sign-in, scopes, clock, rate, disk, and what the service is like. Only reads."""
    return examine_tenants(config, tenant, Output(as_json=json))


@app.command()
@command
def login(  # noqa: PLR0917  one option after the other
    tenant: Annotated[str, typer.Argument(help="A v3 tenant of bookferry.toml.")],
    purpose: Annotated[
        str | None, typer.Option("--for", help="backup or migration: ask for its scopes only.", metavar="JOB")
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and read the answer from standard input.")
    ] = False,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds to wait for you.")] = 300,
    new_client: Annotated[
        bool, typer.Option("--new-client", help="Register anew. A library takes few registrations a day.")
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Sign in to a v3 library in your browser. The sign-in is kept and renewed; jobs use it from then on."""
    return log_in(
        _settings(config),
        tenant,
        Output(as_json=json),
        purpose=purpose,
        browser=not no_browser,
        timeout=timeout,
        new_client=new_client,
    )


@app.command()
@command
def whoami(
    tenant: Annotated[str, typer.Argument(help="A tenant of bookferry.toml.")],
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Who is signed in to a library, what that allows, and when it is renewed."""
    return who(_settings(config), tenant, Output(as_json=json))


@snapshots.command("list")
@command
def snapshots_list(
    tenant: Annotated[str | None, typer.Argument(help="Only this tenant's.")] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """List the snapshots: age, completeness, records, size, requests, and when they were last verified."""
    return list_snapshots(_settings(config), tenant, Output(as_json=json))


@snapshots.command("show")
@command
def snapshots_show(
    snapshot: Annotated[
        str, typer.Argument(help="TENANT/SNAPSHOT, a snapshot's id, or a tenant for its newest complete one.")
    ],
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Show one snapshot: its proof, tables, and what no column takes."""
    return show_snapshot(_settings(config), snapshot, Output(as_json=json))


@snapshots.command("verify")
@command
def snapshots_verify(
    snapshot: Annotated[
        str | None,
        typer.Argument(
            help="TENANT/SNAPSHOT, a snapshot's id, or a tenant for its newest complete one. Not given: that of every tenant."
        ),
    ] = None,
    read_data: Annotated[
        str,
        typer.Option(
            help="Part of the blobs to read, another one every day: 1/7 proves them all in a week.", metavar="N/M"
        ),
    ] = "1/1",
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Prove that a snapshot is as it was published: manifest, checksums, rows, counts, blobs. Exits with 6 when it is not."""
    return verify_snapshots(_settings(config), snapshot, read_data, Output(as_json=json))


@snapshots.command("diff")
@command
def snapshots_diff(  # noqa: PLR0917  one option after the other
    a: Annotated[str, typer.Argument(help="The earlier snapshot, as for `show`.")],
    b: Annotated[str, typer.Argument(help="The later snapshot.")],
    resource: Annotated[str | None, typer.Option(help="Compare only this resource.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Records shown of each kind; the numbers are of all.")] = 20,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Show what differs between two snapshots: records added, removed and changed, and by which fields. Exits with 6 when anything does."""
    return diff_snapshots(_settings(config), (a, b), resource, limit, Output(as_json=json))


@snapshots.command("prune")
@command
def snapshots_prune(  # noqa: PLR0917  the same
    tenant: Annotated[str | None, typer.Argument(help="Only this tenant's; of all if not given.")] = None,
    keep_last: Annotated[int | None, typer.Option(min=0, help="The newest ones to keep.")] = None,
    keep_daily: Annotated[int | None, typer.Option(min=0, help="Days to keep one snapshot of.")] = None,
    keep_weekly: Annotated[int | None, typer.Option(min=0, help="Weeks to keep one snapshot of.")] = None,
    keep_monthly: Annotated[int | None, typer.Option(min=0, help="Months to keep one snapshot of.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed, and why not.")] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Remove old snapshots, and the blobs that none of the others needs. The newest complete one always stays.

    Without any --keep-... it does what [retention] of bookferry.toml says.
    """
    given = (keep_last, keep_daily, keep_weekly, keep_monthly)
    policy = None if given == (None,) * 4 else Policy(*(count or 0 for count in given))
    return prune_snapshots(_settings(config), tenant, policy, Output(as_json=json), dry_run=dry_run)


@app.command()
@command
def report(
    tenant: Annotated[str, typer.Argument(help="A tenant that has snapshots.")],
    snapshot: Annotated[str | None, typer.Option(help="A snapshot's id; the newest complete one if not given.")] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Make the report of a snapshot: invalid identifiers, duplicates, missing files, as a page, as Markdown and as a table of issues."""
    return report_on(_settings(config), tenant, snapshot, Output(as_json=json))


@app.command()
@command
def stage(
    tenant: Annotated[
        str | None, typer.Argument(help="A tenant of bookferry.toml; all that have snapshots if not given.")
    ] = None,
    snapshot: Annotated[
        str | None, typer.Option("--snapshot", help="This complete snapshot instead of the newest one.")
    ] = None,
    history: Annotated[
        bool, typer.Option("--history", help="Every complete snapshot that the database does not have yet.")
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Load staged tables into the Postgres database that postgres_env names, again or for the first time. A backup does it by itself."""
    return stage_snapshots(_settings(config), tenant, snapshot, Output(as_json=json), history=history)


@app.command()
@command
def query(  # noqa: PLR0917  one option after the other
    sql: Annotated[str | None, typer.Argument(help="SQL for DuckDB over the staged tables.", metavar="SQL")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Read the SQL from a file; - is standard input.", metavar="FILE")
    ] = None,
    example: Annotated[
        str | None, typer.Option("--example", help="One of the queries that come with Bookferry.", metavar="NAME")
    ] = None,
    examples: Annotated[
        bool, typer.Option("--list-examples", help="Tell which examples there are, and what they answer.")
    ] = False,
    show: Annotated[bool, typer.Option("--show-sql", help="Print the SQL instead of asking it.")] = False,
    limit: Annotated[
        int, typer.Option(min=0, help="Rows shown at most; 0 for all. --json, --csv and --parquet give all.")
    ] = 100,
    csv: Annotated[
        bool,
        typer.Option(
            "--csv", help="CSV on stdout, safe to open in a spreadsheet; programs are better served by the others."
        ),
    ] = False,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", help="Write the answer to a Parquet file.", metavar="FILE")
    ] = None,
    personal: Annotated[
        bool,
        typer.Option(
            "--personal", help="With the personal columns of users and raw_users, which other views leave out."
        ),
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Ask the staged tables in SQL."""
    output = Output(as_json=json)
    if examples:
        return list_examples(output)
    asked = chosen_sql(sql, file, example)
    if show:
        return show_sql(asked, output)
    return answer_query(_settings(config), asked, output, OutputFormat(limit, csv, parquet), personal=personal)


@app.command()
@command
def tables(
    table: Annotated[str | None, typer.Argument(help="Describe the columns of this table.")] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Every table with its columns, as Markdown: the page docs/tables.md.")
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """The data dictionary: every staged table, or the columns of one."""
    if markdown:
        return print_dictionary(Output(as_json=json))
    return show_tables(_settings_if_any(config), table, Output(as_json=json))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})
@command
def sandbox(context: typer.Context, json: JsonOption = False) -> ExitStatus:  # noqa: ARG001  its ready line is JSON anyway
    """Run the local stand-in of the service; `bookferry sandbox --help` lists its options."""
    return servers.run_sandbox(context.args)


@app.command()
@command
def ui(
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port of the web interface, on this machine only.")
    ] = 3000,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Dagster's web interface on this project: runs, tables, checks; it also runs the nightly backup while it is up."""
    return servers.run_ui(_settings(config), port, Output(as_json=json))

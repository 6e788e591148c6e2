"""Commands that create or start something: demo, init, ui, sandbox. Each imports what it runs when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.boundary import command
from cli.commands import completion
from cli.commands.options import ConfigOption, JsonOption, settings_of
from cli.output import Output
from pipelines.errors import ExitStatus


@command("cli.demo")
def demo(
    folder: Annotated[Path, typer.Option(help="Folder for the files of the demonstration.")] = Path("bookferry-demo"),
    backup_only: Annotated[
        bool, typer.Option("--backup-only", help="Leave out the migration, which takes a minute.")
    ] = False,
    json: JsonOption = False,
) -> ExitStatus:
    """Back up a local library of 5,445 real records, run three queries on it, and migrate it to version 3. Needs no account or network."""
    from cli import demo as demo_command

    return demo_command.run(folder, Output(as_json=json), backup_only=backup_only)


@command("cli.setup")
def init(  # noqa: PLR0917  one parameter for each option
    base_url: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address of your library, without /api.")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name of the library in bookferry.toml. Default: library.")
    ] = None,
    data: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Folder for snapshots, in a new file. Default: library-data.")
    ] = None,
    api: Annotated[
        str, typer.Option(help="Version of the API: v2, or v3, where you sign in with `bookferry login`.")
    ] = "v2",
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Write a first bookferry.toml, or add a library to it, and print the next steps. What is there stays as it is."""
    from cli.setup import InitOptions, write_config

    return write_config(
        Path(config or "bookferry.toml"), InitOptions(tenant, base_url, api, data), Output(as_json=json)
    )


@command("cli.servers")
def ui(
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to listen on. The default is for this machine only: the web interface asks nobody to sign in.",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the web interface.")] = 3000,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Start Dagster's web interface: runs, tables, checks. While it runs, it also starts the nightly backups."""
    from cli.servers import run_ui

    return run_ui(settings_of(config), host, port, Output(as_json=json))


@command("cli.sandbox")
def sandbox(
    context: typer.Context,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="SNAPSHOT",
            autocompletion=completion.snapshots,
            help="Give its library the fields that the records of this snapshot have.",
        ),
    ] = None,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> ExitStatus:
    """Run a local replacement of the service; `bookferry sandbox --help` lists its options."""
    from cli.sandbox import like_snapshot, run_sandbox

    if like is None:
        return run_sandbox(context.args, as_json=json)
    arguments = [*like_snapshot(settings_of(config), like, context.args), *context.args]
    return run_sandbox(arguments, as_json=json)

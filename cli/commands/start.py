"""Commands that create or start something: demo, init, ui, sandbox. Each names the function that answers it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cli import completion
from cli.boundary import command
from cli.options import ConfigOption, JsonOption


@command("cli.demo:run", opened=None)
def demo(
    folder: Annotated[Path, typer.Option(help="Folder for the files of the demonstration.")] = Path("bookferry-demo"),
    backup_only: Annotated[
        bool, typer.Option("--backup-only", help="Leave out the migration, which takes a minute.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Back up a local library of 5,445 real records, run three queries on it, and migrate it to version 3. Needs no account or network."""


@command("cli.init:write_config", opened=lambda config: config)
def init(
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
        Literal["v2", "v3"],
        typer.Option(
            help="Version of the API: v2, or v3, where you sign in with `bookferry login`.", metavar="VERSION"
        ),
    ] = "v2",
) -> None:
    """Write a first bookferry.toml, or add a library to it, and print the next steps. What is there stays as it is."""


@command("cli.ui:run_ui", opened=None)
def ui(
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to listen on. The default is for this machine only: the web interface asks nobody to sign in.",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, metavar="NUMBER", help="Port of the web interface.")] = 3000,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Start Dagster's web interface: runs, tables, checks. While it runs, it also starts the nightly backups."""


@command("cli.sandbox:run_sandbox", opened=None)
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
) -> None:
    """Run a local replacement of the service; `bookferry sandbox --help` lists its options."""

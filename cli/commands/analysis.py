"""Commands for analysts: query, tables. Each names the function that answers it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli import completion
from cli.boundary import command
from cli.options import ConfigOption, JsonOption, settings_if_any


@command("cli.query:query", opened=None)
def query(  # noqa: PLR0917  one parameter for each option
    sql: Annotated[
        str | None, typer.Argument(help="A query over the staged tables, in DuckDB's SQL.", metavar="SQL")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Read the SQL from a file; - is standard input.", metavar="FILE")
    ] = None,
    example: Annotated[
        str | None,
        typer.Option(
            "--example", autocompletion=completion.examples, help="Run an example query of Bookferry.", metavar="NAME"
        ),
    ] = None,
    list_examples: Annotated[
        bool, typer.Option("--list-examples", help="List the example queries and their questions.")
    ] = False,
    limit: Annotated[
        int,
        typer.Option(
            min=0, metavar="NUMBER", help="The most rows to show; 0 for all. --json, --csv and --to always give all."
        ),
    ] = 100,
    csv: Annotated[
        bool,
        typer.Option(
            "--csv",
            help="Print CSV that is safe to open in a spreadsheet. For programs, --json and Parquet are better.",
        ),
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            help="Write the result to a file: .parquet, .xlsx (a workbook for Excel and LibreOffice) or .csv.",
            metavar="FILE",
        ),
    ] = None,
    personal: Annotated[
        bool,
        typer.Option(
            "--personal",
            help="Include the personal columns of users and raw_users, which the views leave out otherwise.",
        ),
    ] = False,
    config: ConfigOption = None,
    json: JsonOption = False,
) -> None:
    """Query the staged tables in SQL."""


@command("cli.tables:show_tables", opened=settings_if_any)
def tables(
    table: Annotated[
        str | None,
        typer.Argument(
            help="The table to describe, with its columns; or rules, for those of identifiers and records. Default: a list of all tables."
        ),
    ] = None,
) -> None:
    """Show the data dictionary: every table, the columns of one, or the rules of identifiers."""

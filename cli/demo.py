"""`bookferry demo`: a real library on this machine, backed up by the real job, and three questions to it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from cli.backup import print_summary, summary
from cli.jobs import run_backup
from cli.output import Output, command_line
from cli.progress import ProgressDisplay
from cli.query import print_rows, run_sql
from pipelines.errors import BookferryError, ConfigurationError, ExitStatus
from pipelines.examples import Example, example
from pipelines.inventory import default_resources
from pipelines.settings import CONFIG_FILE, load_settings
from pipelines.store.catalogue import open_catalogue
from pipelines.store.reports import page_of
from pipelines.store.snapshots import DataFolder, Snapshot
from pipelines.store.stores import open_data

REQUESTS_PER_MINUTE = 6000
"""The demonstration's own limit, on both sides: at the service's 60 a minute it would take two minutes to read 5,445 records."""

TENANT = "demo"
MARKER = "# Written by `bookferry demo`; the next demonstration replaces it."

CONFIG = """\
{marker}
# The library it names ran only during the demonstration; its snapshots can be explored as long as you like.
data = "library-data"

[tenants.{tenant}]
base_url = "{base_url}"
api = "v2"
username_env = "BOOKFERRY_DEMO_USER"
password_env = "BOOKFERRY_DEMO_PASSWORD"
requests_per_minute = {limit}
"""

QUESTIONS = ("collection_by_decade", "gaps_by_kind", "possible_duplicates")
"""Files in sql/examples that the demonstration runs."""

SHOWN = 15
"""Rows of each answer on the terminal."""


def run(folder: Path, output: Output) -> ExitStatus:
    """Sandbox up, backup, three answers, sandbox down. Leaves `folder` to be explored with `query` and `ui`."""
    config = _own_config(folder)
    with _sandbox() as ready:
        tenant = ready["tenants"][TENANT]
        output.say(
            f"A local stand-in of the service runs at {ready['url']} with {tenant['publications']:,} real publications.\n"
            f"It grants {REQUESTS_PER_MINUTE:,} requests a minute for this demonstration; the real service grants about 60.\n"
        )
        _write_config(config, tenant["base_url"])
        os.environ["BOOKFERRY_DEMO_USER"], os.environ["BOOKFERRY_DEMO_PASSWORD"] = tenant["user"], tenant["password"]
        with ProgressDisplay() as display:
            snapshot = run_backup(load_settings(config), TENANT, default_resources("v2"), display).snapshot
    data = open_data(load_settings(config))
    answers, page = _answers(data), page_of(data, snapshot)
    document = {
        **summary(snapshot),
        "report": page,
        "config": str(config.absolute()),
        "answers": {asked.name: rows for asked, rows in answers},
    }
    output.result(document, lambda console: _print_all(console, snapshot, answers, config, page))
    return ExitStatus.COMPLETE if snapshot.manifest.complete else ExitStatus.PARTIAL


@contextmanager
def _sandbox() -> Iterator[dict[str, Any]]:
    """The sandbox on a free port while the block runs; yields its ready line. It ends with us, even when we are killed."""
    options = ["--tenant", f"{TENANT}=real", "--requests-per-minute", str(REQUESTS_PER_MINUTE), "--stop-at-eof"]
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(
            [sys.executable, "-m", "sandbox", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,  # a Ctrl-C is for us to hear, not for both
        ) as process,
    ):
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                said.seek(0)
                raise BookferryError(f"The sandbox did not start (exit {process.wait()}): {said.read().strip()[-500:]}")
            yield msgspec.json.decode(line)
        finally:
            process.terminate()


def _own_config(folder: Path) -> Path:
    """Where the demonstration's configuration goes; a file that a person wrote there is not touched."""
    config = folder / CONFIG_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = config.exists() and not config.read_bytes().startswith(MARKER.encode())
    except OSError as error:
        raise ConfigurationError(
            f"{folder} cannot be used: {error.strerror}. Choose another: bookferry demo --folder NAME."
        ) from None
    if foreign:
        raise ConfigurationError(
            f"{config} is not the demonstration's. Choose another folder: bookferry demo --folder NAME."
        )
    return config


def _write_config(config: Path, base_url: str) -> None:
    config.write_text(
        CONFIG.format(marker=MARKER, tenant=TENANT, base_url=base_url, limit=REQUESTS_PER_MINUTE), encoding="utf-8"
    )


def _answers(data: DataFolder) -> list[tuple[Example, list[dict[str, object]]]]:
    answers = []
    with open_catalogue(data) as database:
        for name in QUESTIONS:
            asked = example(name)
            columns, rows = run_sql(database, asked.sql)
            answers.append((asked, [dict(zip(columns, row, strict=True)) for row in rows]))
    return answers


def _print_all(
    console: Console,
    snapshot: Snapshot,
    answers: list[tuple[Example, list[dict[str, object]]]],
    config: Path,
    page: str | None,
) -> None:
    for asked, rows in answers:
        console.print(asked.question, style="bold")
        columns = list(rows[0]) if rows else []
        whole = command_line("query", "--config", str(config), "--example", asked.name)
        print_rows(console, columns, [tuple(row.values()) for row in rows], SHOWN, remedy=f"`{whole}` shows all")
        console.print()
    console.print(f"What to look at next, in {config.parent}/:")
    for step in _next_steps(config):
        console.print(f"  {step}")
    console.print(f"With a library of your own: {command_line('init')}\n")
    print_summary(console, snapshot, page)


def _next_steps(config: Path) -> list[str]:
    named = ("--config", str(config))
    return [
        command_line("tables", *named),
        command_line("query", *named, "--list-examples"),
        command_line("query", *named, "SELECT title, published_on FROM publications LIMIT 10"),
        command_line("snapshots", "show", TENANT, *named),
        command_line("ui", *named),
    ]

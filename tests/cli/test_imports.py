"""What the start of a command imports. Most of the time of a small command is its imports: this counts modules instead of seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import CONFIG, environment

LISTED = """
import atexit, sys
atexit.register(lambda: sys.stderr.write("\\nMODULES " + " ".join(sys.modules)))
sys.argv = ["bookferry", *sys.argv[1:]]
import bookferry
bookferry.main()
"""

NEVER = {"psycopg", "obstore", "cryptography"}
"""What no command imports that needs none of it: other data folders, databases, keys."""

FOR_RUNS = {"dagster", "sqlalchemy", "alembic", "assets_defs", "jinja2", "xlsxwriter"}
FOR_DATA = {"pyarrow", "numpy", "duckdb", "pipelines.settings.settings", "httpx"}
FOR_LIBRARIES = {"httpx", "duckdb", "pipelines.backup", "pipelines.migration.flow", "pipelines.report"}


def imported(folder: Path, *arguments: str, **variables: str) -> set[str]:
    """The modules that a command has imported at its end."""
    process = subprocess.run(
        [sys.executable, "-c", LISTED, *arguments],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(process.stderr.rpartition("MODULES ")[2].split())


@pytest.mark.parametrize(
    ("command", "without"),
    [
        ("--version", {*FOR_RUNS, *FOR_DATA, *FOR_LIBRARIES, "typer", "rich", "msgspec", "cli.app"}),
        ("--help", {*FOR_RUNS, *FOR_DATA, *FOR_LIBRARIES}),
        ("backup --help", {*FOR_RUNS, *FOR_DATA, *FOR_LIBRARIES}),
        ("snapshots list", {*FOR_RUNS, *FOR_LIBRARIES, "pyarrow", "numpy"}),
        ("tables", {*FOR_RUNS}),
        ("status", {*FOR_RUNS, *(FOR_LIBRARIES - {"httpx"}), "pyarrow", "numpy"}),
    ],
)
def test_a_command_imports_only_what_it_uses(command: str, without: set[str], tmp_path: Path) -> None:
    (tmp_path / "bookferry.toml").write_text(
        CONFIG.format(tenant="old", base_url="https://old.example.org", requests_per_minute=60)
    )
    try:
        modules = imported(tmp_path, *command.split())
    except subprocess.CalledProcessError as error:  # `status` of a library without a backup
        modules = set(error.stderr.rpartition("MODULES ")[2].split())
    assert modules & {*NEVER, *without} == set()

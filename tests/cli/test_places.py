"""Terminals with few characters, users without a home folder, and folders with unusual names."""

from __future__ import annotations

import codecs
import csv
import json
import pwd
import subprocess
from pathlib import Path

import pytest

from pipelines.doctor.checks import access
from pipelines.doctor.findings import CheckStatus
from pipelines.doctor.look import Look
from pipelines.settings.config_file import load_settings
from tests.cli.command import BOOKFERRY, PATIENCE, Installation, environment
from tests.cli.conftest import BackedUp
from tests.sandbox.process import SandboxProcess

TEXT = "Ä→平装😀"


def printed(library: BackedUp, encoding: str, *arguments: str) -> bytes:
    """What a command sends to a terminal of this encoding."""
    process = subprocess.run(
        [*BOOKFERRY, *arguments],
        cwd=library.folder,
        env=environment(LC_ALL="C", PYTHONIOENCODING=encoding, **library.sign_in),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    return process.stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_of_few_characters_shows_all_of_them(library: BackedUp, encoding: str) -> None:
    """What people read is escaped where the terminal has no sign for it."""
    shown = printed(library, encoding, "query", f"SELECT '{TEXT}' AS text").decode(encoding)
    assert TEXT.encode(encoding, "backslashreplace").decode(encoding) in shown


def test_a_document_is_utf_8_on_each_terminal(library: BackedUp) -> None:
    """JSON (RFC 8259) and CSV with its byte order mark."""
    sql = f"SELECT '{TEXT}' AS text"
    assert json.loads(printed(library, "latin-1", "query", "--json", sql).decode())["rows"] == [{"text": TEXT}]
    table = printed(library, "ascii", "query", "--csv", sql)
    assert table.startswith(codecs.BOM_UTF8)
    assert list(csv.reader(table.decode("utf-8-sig").splitlines())) == [["text"], [TEXT]]


def test_a_user_without_a_home_folder(library: BackedUp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers often run as a number that no list of users has, and without $HOME."""

    def nobody(_number: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    with pytest.raises(RuntimeError, match="home"):
        Path.home()
    settings = load_settings(library.folder / "bookferry.toml")
    assert access(Look(settings, next(iter(settings.tenants)))).status == CheckStatus.OK


def test_unusual_names_of_folders(sandbox: SandboxProcess, tmp_path: Path) -> None:
    """Addresses of SQLite, DuckDB's patterns and SQL give these characters a meaning; a folder may have them all the same."""
    folder = tmp_path / "a #1%41 & ä 'x' \"y\" [z]*;=,"
    installation = Installation.make(folder, sandbox, "small")
    for command in (["backup", "small"], ["report", "small"], ["snapshots", "verify", "small"], ["doctor", "small"]):
        assert installation.run(*command).status == 0
    assert installation.run("query", "--json", "SELECT count(*) AS n FROM publications").document["rows"] == [
        {"n": 120}
    ]
    status = installation.run("status", "--json").document
    assert (status["scheduler"], status["failed_runs"]) == (False, [])


@pytest.mark.parametrize("sign", ["?", "\\"])
def test_a_folder_that_duckdb_cannot_open_is_refused_at_once(
    sandbox: SandboxProcess, tmp_path: Path, sign: str
) -> None:
    """In one sentence, before anything is written."""
    folder = tmp_path / f"a{sign}b"
    installation = Installation.make(folder, sandbox, "small")
    init = ("init", "--data", "library-data", "--config", "other.toml")
    for command in (init, ("backup", "small"), ("query", "SELECT 1")):
        installation.run(*command).assert_failed(2, "Name another folder as `data`")
    assert [path.name for path in folder.iterdir()] == ["bookferry.toml"]

"""Mistakes and situations that people meet, each with its message and exit status.

Every message says what was tried, what came back and what to do. None has a traceback, a secret, or words of a library that Bookferry uses.
"""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest
import typer

from cli.boundary import command
from cli.boundary import run as run_app
from pipelines.errors import ConfigurationError, SafetyLimitError
from tests.cli.command import Installation, Outcome, run
from tests.cli.test_control_characters import HOSTILE, hidden
from tests.sandbox.process import SandboxProcess
from tests.service.scripted import Answer, ScriptedServer

FOREIGN_WORDS = re.compile(
    r"Traceback|\[redacted\]|Value error|Input should|ValidationError|pydantic|httpx|duckdb\.|NoneType|File \"|<class"
)

OURS = "This is a mistake in Bookferry: please report it with the lines above."

V3 = 'base_url = "https://x.org"\napi = "v3"\n'

COMMANDS: list[tuple[str, int, tuple[str, ...]]] = [
    ("bakup old", 2, ("No such command 'bakup'", "Did you mean 'backup'?")),
    ("backup", 2, ("Missing argument 'tenant'", "`bookferry backup --help`")),
    ("backup odl", 2, ("there is no tenant 'odl'", "did you mean 'old'?", "new, old")),
    ("backup old", 2, ("OLD_USER, which is not set", "export OLD_USER=...")),
    ("backup old --resources books", 2, ("books: not a resource", "hard_copies")),
    ("backup old --resources publications,users", 2, ("version 2 of the API has no list of users", 'api = "v3"')),
    ("backup new", 4, ("Nobody has signed in to 'new'", "`bookferry login new`")),
    (
        "backup old --config nowhere.toml",
        2,
        ("nowhere.toml: no such configuration file", "--config", "BOOKFERRY_CONFIG"),
    ),
    ("login old", 2, ("signs in with user name and password", "nothing to log in to")),
    ("login new --for reading", 2, ("'--for'", "'backup', 'migration'")),
    ("snapshots show old", 2, ("There is no snapshot 'old'", "`bookferry backup TENANT` makes one")),
    ("snapshots verify", 2, ("nothing to verify", "`bookferry backup TENANT`")),
    ("snapshots verify --read-data 8/7", 2, ("--read-data '8/7'", "1/7")),
    ("snapshots prune", 2, ("nothing says what to keep", "[retention]")),
    ("query", 2, ("Give one query", "--file FILE", "--example NAME")),
    ("query SELECT", 2, ("no snapshot", "`bookferry backup TENANT`")),
    ("query --example nothing", 2, ("There is no example 'nothing'", "possible_duplicates")),
    ("query --file nowhere.sql", 2, ("--file nowhere.sql: cannot be read", "No such file")),
    ("tables publcations", 2, ("There is no table 'publcations'", "did you mean 'publications'?")),
    ("stage old", 2, ("postgres_env",)),
    ("stage old --snapshot x --history", 2, ("--snapshot names one snapshot", "--history")),
    ("restore old/20200101T000000Z nowhere", 2, ("there is no tenant 'nowhere'", "new, old")),
    ("migrate plan old old", 2, ("'old' is a tenant of version 2", 'api = "v3"')),
    ("migrate plan new old --newest", 2, ("shut down at the end of 2026",)),
    ("migrate plan new new", 2, ("source and target at once", "`bookferry restore SNAPSHOT new`")),
    ("migrate apply nothing", 2, ("There is no plan 'nothing'", "`bookferry migrate plan SOURCE TARGET`")),
    ("sandbox --port x", 2, ("--port", "'x'", "`bookferry sandbox --help`")),
    ("state move", 2, ("postgres_env",)),
    ("demo --folder /dev/null/x", 2, ("/dev/null/x cannot be used", "--folder NAME")),
]
"""Command, exit status, and words of its message, where a library of each version is configured and nothing was done yet."""

CONFIGURATIONS: list[tuple[str, tuple[str, ...]]] = [
    ("data = ", ("is not valid TOML", "Correct that line")),
    (
        '[tenants.a]\nbase_url = "https://u:geheim@x.org"\napi = "v3"',
        ("must not have a user name or a password in it", "username_env"),
    ),
    (f"[tenants.a]\n{V3}resources = []", ("nothing would be backed up",)),
    (f'postgres_env = "NOT_SET"\n[tenants.a]\n{V3}', ("NOT_SET, which is not set", "export NOT_SET=postgresql://")),
    (f'personal_key_env = "NO_KEY"\n[tenants.a]\n{V3}', ("NO_KEY", "not set")),
]
"""The text of a configuration, and words of the message of `backup a`; each exits with 2. tests/settings has the others."""


def check(outcome: Outcome, status: int, words: tuple[str, ...]) -> None:
    outcome.assert_failed(status, *words)
    assert FOREIGN_WORDS.search(outcome.err) is None, outcome.err
    assert "geheim" not in outcome.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of each version, and nothing else."""
    folder = tmp_path_factory.mktemp("mistakes")
    run("init", "--tenant", "old", "--base-url", "https://library.invalid", folder=folder)
    run("init", "--tenant", "new", "--api", "v3", "--base-url", "https://new.invalid", folder=folder)
    return folder


@pytest.mark.parametrize(
    "line", ["query SELECT\udce4", "init --data d\udce4 --config other.toml"], ids=["query", "init"]
)
def test_bytes_that_are_no_text(line: str, folder: Path) -> None:
    """As a terminal of another encoding sends them. Nothing is written."""
    check(run(*line.split(), "--json", folder=folder), 2, ("is not text in UTF-8",))
    assert not (folder / "other.toml").exists()


@pytest.mark.parametrize(("line", "status", "words"), COMMANDS, ids=[line for line, *_ in COMMANDS])
def test_a_mistake_in_a_command(line: str, status: int, words: tuple[str, ...], folder: Path) -> None:
    check(run(*line.split(), "--json", folder=folder), status, words)


@pytest.mark.parametrize(("text", "words"), CONFIGURATIONS, ids=range(len(CONFIGURATIONS)))
def test_a_mistake_in_the_configuration(text: str, words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "bookferry.toml").write_text(text)
    check(run("backup", "a", "--json", folder=tmp_path), 2, words)


@pytest.mark.long
def test_a_library_that_is_not_there(sandbox: SandboxProcess, tmp_path: Path) -> None:
    """A wrong path, a web page in the place of the API, and no server at all. Each asks whether base_url is right."""
    installation = Installation.make(tmp_path, sandbox, "small")
    installation.configure(base_url=f"{sandbox.base_url('small')}/nothing")
    check(installation.backup(), 1, ("404", "Is base_url", "the library's address"))
    page = Answer(b"<html></html>", headers={"content-type": "text/html"})
    with ScriptedServer(lambda _: page) as site:
        installation.configure(base_url=site.url)
        check(installation.backup(), 1, ("a web page instead of JSON", "Is base_url the library's address?"))
    installation.configure(base_url="http://127.0.0.1:1")
    process = installation.start("backup", "small", hurried=True)
    _out, err = process.communicate(timeout=200)
    assert process.returncode == 1
    assert "cannot connect" in err
    assert "Is http://127.0.0.1:1 the library's address? If not, correct base_url." in err


def noted(error: Exception, note: str) -> Exception:
    error.add_note(note)
    return error


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (
            noted(SafetyLimitError("Too many failed."), "The plan was not shared."),
            5,
            "Too many failed. The plan was not shared.\n",
        ),
        (ConfigurationError(HOSTILE), 2, "\\x1b[2J"),
        (ValueError(HOSTILE), 1, "\\x1b[2J"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 1, "error: BrokenPipeError"),
        (caused(ValueError(), OSError(errno.ENOSPC, "No space left", "/data/a")), 1, "/data/a: the disk is full"),
        (KeyError("x"), 1, f"error: KeyError: 'x'. {OURS}"),
        (AssertionError(), 1, f"error: AssertionError. {OURS}"),
    ],
    ids=[
        "note",
        "refusal",
        "hostile text",
        "pipe of a socket",
        "full disk behind another error",
        "mistake",
        "mistake without words",
    ],
)
def test_an_error_is_one_message(error: Exception, status: int, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Of ours with its lines before it; only our own output may end in silence, and no terminal obeys what a text of a library says."""
    app = typer.Typer()

    @app.command()
    @command("tests.cli.command:raising", opened=lambda _: error)
    def fail() -> None: ...

    assert run_app(app, []) == status
    printed = capfd.readouterr().err
    assert (words in printed, printed.count("error: ")) == (True, 1)
    assert ("Traceback" in printed) == ("mistake in Bookferry" in printed)
    assert not hidden(printed)

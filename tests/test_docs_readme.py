"""The README is true: every command in its `sh` blocks is run as it is written, by a reader who starts with the demonstration.

The sandbox stands in for the library that the README calls yours: it takes the sign-in that is written there, and `base_url` is corrected,
as `init` says. `git` and `make` would install everything anew, so `make demo` is done by what the Makefile calls; `ui` is proved in
tests/cli/test_servers.py.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import ROOT, environment
from tests.sandbox.process import SandboxProcess

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line
]
CHECKED_ONLY = ("git", "make")
STAYS = ("ui", "sandbox")
PLACEHOLDER = "https://library.example.org"


class Reader:
    """Somebody in a checkout who types what the README says, in one shell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._exported: list[str] = []

    def type(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run one line; what it exports is there for the next ones."""
        script = "\n".join([*self._exported, line])
        if line.startswith("export "):
            self._exported.append(line)
        return subprocess.run(
            ["bash", "-euc", script], cwd=self.folder, env=environment(), capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """In a folder that looks like a checkout after `make demo`."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / ".venv" / "bin").mkdir(parents=True)
    command = folder / ".venv" / "bin" / "bookferry"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m cli.main "$@"\n')
    command.chmod(0o755)
    (folder / "sql").symlink_to(ROOT / "sql")
    reader = Reader(folder)
    demo = reader.type(".venv/bin/bookferry demo --backup-only")
    assert demo.returncode == 0, demo.stderr
    return reader


@pytest.fixture(scope="module")
def stand_in() -> Iterator[SandboxProcess]:
    """The library of the reader's own; its account is the one that the README writes down."""
    (user, password) = _written_sign_in()
    account = ("--user", user, "--password", password)
    with SandboxProcess("--tenant=old=real:200", "--requests-per-minute", "0", *account) as sandbox:
        yield sandbox


def _written_sign_in() -> tuple[str, str]:
    (exported,) = (line for line in COMMANDS if line.startswith("export "))
    values = dict(word.split("=", 1) for word in shlex.split(exported)[1:])
    (user,) = (value for name, value in values.items() if name.endswith("_USER"))
    (password,) = (value for name, value in values.items() if name.endswith("_PASSWORD"))
    return user, password


def test_it_begins_with_two_commands() -> None:
    made = [word for line in COMMANDS for word in re.findall(r"\bmake (\w+)", line)]
    assert made == ["demo", "test"]
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    mentioned = re.findall(r"`make (\w+)`", README)
    assert {*made, *mentioned} <= set(targets)


def test_every_command_works_as_written(reader: Reader, stand_in: SandboxProcess) -> None:
    """In the order of the README."""
    typed = []
    for line in COMMANDS:
        words = shlex.split(line)
        if words[0] in CHECKED_ONLY or words[1] in STAYS:
            continue
        done = reader.type(line)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        typed.append(line)
        config = reader.folder / "bookferry.toml"
        if words[1] == "init":
            text = config.read_text(encoding="utf-8")
            assert PLACEHOLDER in text
            config.write_text(text.replace(PLACEHOLDER, stand_in.base_url("old")), encoding="utf-8")
    assert len(typed) >= 8
    assert {shlex.split(line)[1] for line in typed} >= {"tables", "snapshots", "query", "init", "backup"}


def test_files_that_it_names_are_there() -> None:
    linked = re.findall(r"\]\((?!https?://)([^)#]+)", README)
    named = re.findall(r"`((?:pipelines|sql|docs|sandbox|cli)/[^`*]+)`", README)
    assert [name for name in (*linked, *named) if not (ROOT / name).exists()] == []

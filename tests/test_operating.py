"""docs/operating.md is true: its commands are run as they are written, and its units and lines name commands that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import ROOT, Home, environment
from tests.sandbox.process import SandboxProcess

TEXT = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line
]
UNIT = re.findall(r"^Exec\w+=/srv/bookferry/(.*)$", TEXT, re.MULTILINE)


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Somebody with a checkout and a tenant `old` of some real records."""
    folder = tmp_path_factory.mktemp("operator")
    (folder / ".venv" / "bin").mkdir(parents=True)
    command = folder / ".venv" / "bin" / "bookferry"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m cli.main "$@"\n')
    command.chmod(0o755)
    with SandboxProcess("--tenant=old=real:120", "--requests-per-minute", "0") as sandbox:
        yield Home.make(folder, sandbox, "old")


def typed(operator: Home, line: str) -> subprocess.CompletedProcess[str]:
    """One line, in a shell with the variables."""
    return subprocess.run(
        ["bash", "-euc", line],
        cwd=operator.folder,
        env=environment(**operator.sign_in),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_night_and_the_commands_work_as_written(operator: Home) -> None:
    """The unit's steps first, in their order; then everything that the page says to type."""
    assert [shlex.split(line)[1:3] for line in UNIT] == [
        ["backup", "old"],
        ["snapshots", "verify"],
        ["snapshots", "prune"],
    ]
    lines = [line for line in COMMANDS if "doctor" not in line]
    assert len(lines) >= 10
    for line in (*UNIT, *lines):
        done = typed(operator, line)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def test_every_exit_status_is_explained() -> None:
    told = re.findall(r"^\| (\d) \|", TEXT, re.MULTILINE)
    assert told == ["0", "1", "2", "3", "4", "5", "6"]


def test_the_readme_leads_here() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(docs/operating.md)" in readme
    assert (Path(ROOT) / "docs" / "operating.md").is_file()

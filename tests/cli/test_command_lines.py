"""Commands in messages can be pasted: they name the program as it was called, and the configuration that it was given."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.command_lines import command_line, one_call, remember_config, with_command_lines
from tests.cli.command import environment, run

ELSEWHERE = "my library/bookferry.toml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a configuration in another one, whose name has a blank."""
    (tmp_path / "my library").mkdir()
    assert run("init", "--tenant", "old", "--config", ELSEWHERE, folder=tmp_path).status == 0
    return tmp_path


@pytest.fixture
def program(folder: Path) -> Path:
    """The console script in an environment that is not on PATH."""
    script = folder / ".venv" / "bin" / "bookferry"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!{sys.executable}\nimport sys\nsys.argv[0] = __file__\nfrom bookferry import main\nmain()\n")
    script.chmod(0o755)
    return script


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Paste a line into a shell."""
    return subprocess.run(
        ["sh", "-c", line], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )


def proposals(text: str) -> Iterator[str]:
    """The commands that a message proposes."""
    return (match[1] for match in re.finditer(r"`([^`]*bookferry [^`]*)`", text))


@pytest.mark.long
@pytest.mark.parametrize(
    "called", [".venv/bin/bookferry", "{program}", "{python} -m bookferry"], ids=["relative", "absolute", "module"]
)
def test_a_command_in_an_error_can_be_pasted(called: str, folder: Path, program: Path) -> None:
    """From another folder than that of the configuration, in an environment that is not activated."""
    name = called.format(program=program, python=sys.executable)
    failed = shell(f"{name} --config {shlex.quote(ELSEWHERE)} query", folder)
    assert failed.returncode != 0
    [line] = proposals(failed.stderr)
    query = "query 'SELECT count(*) FROM publications'"
    assert line.endswith(f" {query} --config {shlex.quote(ELSEWHERE)}"), line
    pasted = shell(line, folder)
    assert f"There is no snapshot in {folder / 'my library' / 'library-data'}" in pasted.stderr
    [next_line] = proposals(pasted.stderr)
    assert next_line == line.replace(query, "backup TENANT")
    listed = shell(next_line.replace("backup TENANT", "snapshots list"), folder)
    assert (listed.returncode, listed.stderr) == (0, "")


def test_the_configuration_is_added_once() -> None:
    """And not to commands without one."""
    with one_call():
        remember_config("a b.toml")
        assert with_command_lines("Run `bookferry backup x`, or `bookferry demo --folder NAME`.") == (
            "Run `bookferry backup x --config 'a b.toml'`, or `bookferry demo --folder NAME`."
        )
        assert command_line("tables", "--config", "c.toml") == "bookferry tables --config c.toml"
        assert with_command_lines("a title with `bookferry it's`") == "a title with `bookferry it's`"
    assert command_line("backup", "x") == "bookferry backup x"

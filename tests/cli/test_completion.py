"""Completion as the shells ask for it: by the script that `--show-completion` prints, or with the variables that it sets."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.examples import all_examples
from tests.cli.command import environment, run

CONFIG = """\
data = "kept"

[tenants.old]
base_url = "https://old.example.org"
api = "v2"

[tenants.new]
base_url = "https://new.example.org"
api = "v3"

[tenants."$(touch evaluated)"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two libraries with three snapshots, and a plan."""
    (tmp_path / "mine.toml").write_text(CONFIG)
    for name in ("old/20260101T000000Z", "old/20260102T000000Z", "new/20260103T000000Z"):
        tenant, snapshot = name.split("/")
        (tmp_path / "kept" / "snapshots" / f"tenant={tenant}" / f"snapshot={snapshot}").mkdir(parents=True)
    (tmp_path / "kept" / "plans" / "old-new-1").mkdir(parents=True)
    (tmp_path / "kept" / "plans" / ".old-new-2").mkdir()
    return tmp_path


def asking(line: str, shell: str) -> dict[str, str]:
    """The variables with which a shell asks after this line, of which the last word is to be completed."""
    words = line.split(" ")
    return {
        "_BOOKFERRY_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }


def offered(line: str, folder: Path, shell: str = "bash") -> str:
    """What the program answers to a shell after this line."""
    outcome = run(folder=folder, variables=asking(line, shell))
    assert (outcome.status, outcome.err) == (0, ""), outcome
    return outcome.out


SNAPSHOTS = ["old/20260101T000000Z", "old/20260102T000000Z"]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("bookferry snapshots ", ["list", "show", "verify", "diff", "prune"]),
        ("bookferry backup --no", ["--no-files"]),
        ("bookferry --config mine.toml backup ", ["new", "old"]),
        ("bookferry --config mine.toml snapshots show old/", SNAPSHOTS),
        ("bookferry --config mine.toml restore new", ["new", "new/20260103T000000Z"]),
        ("bookferry --config mine.toml migrate plan old n", ["new"]),
        ("bookferry --config mine.toml migrate apply ", ["old-new-1"]),
        ("bookferry --config mine.toml report new --snapshot n", ["new/20260103T000000Z"]),
        ("bookferry query --example ", [example.name for example in all_examples()]),
        ("bookferry --config no.toml backup ", []),
    ],
)
def test_what_is_offered(line: str, names: list[str], folder: Path) -> None:
    """Only plain names: a shell may evaluate what it is offered."""
    assert offered(line, folder).split() == names


@pytest.mark.long
@pytest.mark.parametrize("content", ["not TOML", "tenants = 3", "data = 3\n[tenants.old]", b"\xff".decode("latin-1")])
def test_a_configuration_that_does_not_load_offers_what_it_can(content: str, tmp_path: Path) -> None:
    (tmp_path / "bookferry.toml").write_bytes(content.encode("latin-1"))
    assert offered("bookferry snapshots show ", tmp_path).split() == (["old"] if "old" in content else [])


def _with_program(tmp_path: Path) -> dict[str, str]:
    """An environment in which `bookferry` is this program, and a home folder of its own."""
    program = tmp_path / "bin" / "bookferry"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bookferry "$@"\n')
    program.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    return environment(PATH=f"{program.parent}:{os.environ['PATH']}", HOME=str(home))


@pytest.mark.long
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_in_bash(folder: Path) -> None:
    """Installed by the option, in a new bash; it finds the shell that called it by itself."""
    variables = _with_program(folder)
    install = subprocess.run(
        ["bash", "-c", "bookferry --install-completion; exit $?"],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (install.returncode, install.stderr) == (0, ""), install
    ask = """
    source ~/.bashrc
    COMP_WORDS=(bookferry --config mine.toml snapshots show old/)
    COMP_CWORD=5
    $(complete -p bookferry | sed "s/.*-F //; s/ .*//") bookferry
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    process = subprocess.run(["bash", "-c", ask], cwd=folder, env=variables, capture_output=True, text=True, check=True)
    assert process.stdout.split() == SNAPSHOTS
    assert not (folder / "evaluated").exists()

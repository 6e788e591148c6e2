"""docs/first-contact.md is true: its commands run as written, in their order, on two libraries of version 3 of a sandbox."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import ROOT
from tests.sandbox.process import SandboxProcess
from tests.test_docs_readme import Reader

TEXT = (ROOT / "docs" / "first-contact.md").read_text(encoding="utf-8")
COMMANDS = [
    line for block in re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL) for line in block.splitlines()
]


@pytest.fixture
def sandbox() -> Iterator[SandboxProcess]:
    """Few records: the configuration that `init` writes keeps to 60 requests a minute."""
    with SandboxProcess("--tenant=new=real:10", "--tenant=test=empty", "--requests-per-minute", "0") as process:
        yield process


@pytest.mark.long
def test_every_command_works_as_written(tmp_path: Path, sandbox: SandboxProcess) -> None:
    """The plan is the one that `migrate plan` printed. A drill leaves out the task that is completed."""
    command = tmp_path / "bin" / "bookferry"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m cli.main "$@"\n')
    command.chmod(0o755)
    reader = Reader(tmp_path)
    reader.type(f"export PATH={shlex.quote(str(command.parent))}:$PATH")
    plan, command_names = "", ""
    for line in COMMANDS:
        words = shlex.split(line)
        if words[1] == "login":
            reader.sign_in(line, sandbox)
            continue
        answer = reader.type(line.replace("PLAN", plan))
        expected = {"migrate verify": 6, "drill new": 3}.get(" ".join(words[1:3]), 0)
        assert answer.returncode == expected, f"{line}\n{answer.stdout}\n{answer.stderr}"
        command_names += f"{words[1]} "
        if words[1] == "init":
            tenant, address = (words[words.index(option) + 1] for option in ("--tenant", "--base-url"))
            reader.replace(address, sandbox.base_url(tenant))
        if words[1:3] == ["migrate", "plan"]:
            (plan,) = set(re.findall(r"new-to-test-\d{8}T\d{6}Z", answer.stdout))
    assert command_names.split() == [shlex.split(line)[1] for line in COMMANDS if " login " not in line]
    assert json.loads((tmp_path / "shapes.json").read_text(encoding="utf-8"))

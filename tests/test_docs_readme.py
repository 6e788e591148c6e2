"""The README is true: a reader who starts with the demonstration can run every command in its `sh` blocks, in their order.

A sandbox takes the place of the two libraries that the README calls yours. It accepts the account that the README exports, and the test
writes its addresses into `bookferry.toml`. `git` and `make` would install everything again, so the test calls what `make demo` calls.
A person signs in with `login` in a browser; here the test answers the consent page. tests/cli/test_servers.py proves `ui`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import ROOT, checkout, environment
from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import consent

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sh|toml)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
"""Language and text of each block that a reader types or copies, in the order of the page."""

COMMANDS = [line for language, block in BLOCKS if language == "sh" for line in block.splitlines() if line]
CHECKED_ONLY = ("git", "make")
RUNS_UNTIL_STOPPED = ("ui", "sandbox")
ADDRESSES = {"old": "https://library.example.org", "new": "https://new.library.example.org"}
PLAN = re.compile(r"old-to-new-\d{8}T\d{6}Z")


class Reader:
    """Somebody in a checkout who types what the README says, in one shell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "bookferry.toml"
        self._exported: list[str] = []

    def type(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run one line; what it exports is there for the next ones."""
        script = "\n".join([*self._exported, line])
        if line.startswith("export "):
            self._exported.append(line)
        answer = subprocess.run(
            ["sh", "-euc", script], cwd=self.folder, env=environment(), capture_output=True, text=True, check=False
        )
        assert "leaked" not in answer.stderr, "a library speaks at the end of the process"
        return answer

    def sign_in(self, line: str, sandbox: SandboxProcess) -> None:
        """Run `login`, release every scope on the consent page, and paste the address at which the browser ends."""
        process = subprocess.Popen(
            ["sh", "-euc", "\n".join([*self._exported, f"{line} --no-browser"])],
            cwd=self.folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        address = next(line for line in process.stderr if line.startswith("http")).strip()
        _, err = process.communicate(f"{consent(address, sandbox)}\n", timeout=120)
        assert process.returncode == 0, err

    def replace(self, address: str, replacement: str) -> None:
        """Correct an address in bookferry.toml."""
        text = self.config.read_text(encoding="utf-8")
        assert address in text
        self.config.write_text(text.replace(address, replacement), encoding="utf-8")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """In a folder that looks like a checkout after `make demo`."""
    folder = checkout(tmp_path_factory.mktemp("checkout"))
    (folder / "sql").symlink_to(ROOT / "sql")
    reader = Reader(folder)
    demo = reader.type(".venv/bin/bookferry demo --backup-only")
    assert demo.returncode == 0, demo.stderr
    return reader


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxProcess]:
    """The two libraries of the reader's own; their account is the one that the README exports.

    Twenty records: the reader's configuration keeps to 60 requests a minute, and with more records most of the test is waiting.
    """
    (exported,) = (line for line in COMMANDS if line.startswith("export "))
    account = ("--password", exported.partition("_PASSWORD=")[2])
    with SandboxProcess(
        "--tenant=old=real:20", "--tenant=new=empty", "--requests-per-minute", "0", *account
    ) as process:
        yield process


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_block_works_as_written(reader: Reader, sandbox: SandboxProcess) -> None:
    """In the order of the README, up to the proof of a migration. The name of the plan is the one that `migrate plan` printed."""
    typed, plan = [], ""
    for language, block in BLOCKS:
        assert language == "sh"
        for line in block.splitlines():
            words = shlex.split(line)
            if words[0] in CHECKED_ONLY or words[1] in RUNS_UNTIL_STOPPED:
                continue
            if words[1] == "login":
                reader.sign_in(line, sandbox)
                continue
            process = reader.type(PLAN.sub(plan, line))
            assert process.returncode == 0, f"{line}\n{process.stdout}\n{process.stderr}"
            typed.append(tuple(words[1:3]))
            if words[1] == "init":
                tenant = words[words.index("--tenant") + 1]
                reader.replace(ADDRESSES[tenant], sandbox.base_url(tenant))
            if words[1:3] == ["migrate", "plan"]:
                (plan,) = set(PLAN.findall(process.stdout))
    assert len(typed) >= 8
    assert {command for command, _ in typed} >= {"tables", "snapshots", "query", "init", "doctor", "backup", "migrate"}
    assert {("migrate", "plan"), ("migrate", "apply"), ("migrate", "verify")} <= set(typed)

"""Runs the command line as people do: in its own process and folder, with an environment that the test chooses."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pipelines.service.http.budget import Budget
from pipelines.settings.config_file import load_settings
from pipelines.state.local import LocalState
from tests.forks import run_forked
from tests.sandbox.process import SandboxProcess

ROOT = Path(__file__).parents[2]
BOOKFERRY = (sys.executable, "-m", "cli.main")
PASSWORD = "not-a-password-that-occurs-by-chance"

PATIENCE = 240
"""Seconds until a process counts as hanging. None needs a tenth of it, even on a busy machine."""

HURRIED = """
import sys
from pipelines.service.clock import SystemClock
from pipelines.state.local import LocalState
patient = SystemClock.sleep
SystemClock.sleep = lambda clock, seconds: patient(clock, seconds / 50)
from cli.main import main
main()
"""
"""The command with a clock that waits a fiftieth of the time."""

CONFIG = """\
data = "library-data"

[tenants.{tenant}]
base_url = "{base_url}"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
requests_per_minute = {requests_per_minute}
"""

V3_TENANT = """
tokens = "sign-ins"

[tenants.{tenant}]
base_url = "{base_url}"
api = "v3"
client_id = "test"
client_auth = "none"
requests_per_minute = 100000
"""


@dataclass(frozen=True)
class Outcome:
    """The output and exit status of a command."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The JSON document on stdout."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """Lines of stdout."""
        return self.out.splitlines()

    def assert_failed(self, status: int, *words_expected: str) -> None:
        """One message on stderr that says all of `words_expected`, nothing on stdout but its JSON if that was asked for; no traceback."""
        assert (self.status, self.err.count("error: ")) == (status, 1), self
        assert "Traceback" not in self.err
        assert [words for words in words_expected if words not in self.err] == [], self.err
        if self.out:
            message = self.err.partition("error: ")[2].removesuffix("\n")
            assert self.document == {"error": message, "exit_status": status}


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without what would configure a Bookferry, and with `variables`."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BOOKFERRY_", "DAGSTER_", "TEST_", "PYTEST_", "COLUMNS", "LINES", "COV_"))
    }
    return {**inherited, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default", **variables}


def run(
    *arguments: str | Path,
    folder: Path,
    variables: Mapping[str, str] = {},
    before: Callable[[], None] | None = None,
    seconds: float = PATIENCE,
    typed: str = "",
) -> Outcome:
    """Run `bookferry ARGUMENTS` in `folder` to its end. `before` runs in the new process; `typed` is its standard input."""
    if before is None:
        process = run_forked(
            list(map(str, arguments)), folder=folder, environment=environment(**variables), typed=typed, seconds=seconds
        )
        return Outcome(process.returncode, process.stdout, process.stderr)
    process = subprocess.run(
        [*BOOKFERRY, *map(str, arguments)],
        cwd=folder,
        env=environment(**variables),
        input=typed,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        preexec_fn=before,
    )
    return Outcome(process.returncode, process.stdout, process.stderr)


def raising(error: Exception) -> NoReturn:
    """What a command calls that ends with this error."""
    raise error


def checkout(folder: Path) -> Path:
    """Make a folder look like a checkout after `make demo`."""
    command = folder / ".venv" / "bin" / "bookferry"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m cli.main "$@"\n')
    command.chmod(0o755)
    return folder


@dataclass(frozen=True)
class Installation:
    """A folder with a bookferry.toml for one tenant of a sandbox, and the tenant's sign-in."""

    folder: Path
    sandbox: SandboxProcess
    tenant: str

    @classmethod
    def make(
        cls, folder: Path, sandbox: SandboxProcess, tenant: str, requests_per_minute: int = 100_000
    ) -> Installation:
        """Write the configuration."""
        folder.mkdir(parents=True, exist_ok=True)
        installation = cls(folder, sandbox, tenant)
        installation.configure(base_url=sandbox.base_url(tenant), requests_per_minute=requests_per_minute)
        return installation

    def configure(self, *, base_url: str, requests_per_minute: int = 100_000) -> None:
        """Write the configuration again."""
        text = CONFIG.format(tenant=self.tenant, base_url=base_url, requests_per_minute=requests_per_minute)
        (self.folder / "bookferry.toml").write_text(text)

    def add_v3(self, tenant: str, library: str) -> Path:
        """Add a library of the sandbox as a tenant of version 3, whose sign-in is in `sign-ins` here. Returns the configuration."""
        config = self.folder / "bookferry.toml"
        top, _, tenants = config.read_text().partition("\n")
        added = V3_TENANT.format(tenant=tenant, base_url=self.sandbox.base_url(library))
        config.write_text(f"{top}\n{added}\n{tenants}")
        return config

    @property
    def sign_in(self) -> dict[str, str]:
        """The variables that the configuration names."""
        return {"TEST_USER": self.sandbox.user, "TEST_PASSWORD": self.sandbox.password}

    def run(self, *arguments: str | Path, **options: Any) -> Outcome:
        """Run a command here, signed in."""
        return run(*arguments, folder=self.folder, **{"variables": self.sign_in, **options})

    def answer(self, *arguments: str | Path, status: int = 0, **options: Any) -> Any:
        """The document of a command that ends with this status."""
        outcome = self.run(*arguments, "--json", **options)
        assert outcome.status == status, outcome.err
        return outcome.document

    def printed(self, *arguments: str | Path, status: int = 0, **options: Any) -> list[str]:
        """What a command that ends with this status prints for people."""
        outcome = self.run(*arguments, **options)
        assert outcome.status == status, outcome.err
        return outcome.lines

    def backup(self, *options: str, **keywords: Any) -> Outcome:
        """Run `bookferry backup TENANT`."""
        return self.run("backup", self.tenant, *options, **keywords)

    def start(self, *arguments: str, hurried: bool = False, **options: Any) -> subprocess.Popen[str]:
        """Start a command here, signed in, without waiting for its end. `hurried`: its waits are fifty times as short."""
        return subprocess.Popen(
            [*((sys.executable, "-c", HURRIED) if hurried else BOOKFERRY), *arguments],
            cwd=self.folder,
            env=environment(**self.sign_in),
            text=True,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options},
        )

    @contextmanager
    def no_budget(self) -> Iterator[Callable[[], None]]:
        """Blocks the budget of this tenant until the block ends. Yields a function that waits until a process waits for the budget."""
        data = self.folder / "library-data"
        data.mkdir(exist_ok=True)
        name, limit = load_settings(self.folder / "bookferry.toml").budget_of(self.tenant)
        budget = Budget(LocalState(data / "state.db"), name, limit)
        budget.pause(100_000)
        with closing(sqlite3.connect(data / "state.db", timeout=60, isolation_level=None)) as state:
            # A slot that is free again is removed by whoever looks for one
            state.execute("INSERT INTO budget_slots (library, free_at) VALUES (?, 0)", (name,))

            def wait_for_look() -> None:
                while state.execute("SELECT count(*) FROM budget_slots WHERE free_at = 0").fetchone()[0]:
                    time.sleep(0.2)

            yield wait_for_look
            state.execute("UPDATE budget_libraries SET paused_until = 0")
        budget.close()

    def snapshots(self) -> dict[str, str]:
        """Every published file and its SHA-256."""
        root = self.folder / "library-data" / "snapshots"
        files = (path for path in sorted(root.rglob("*")) if path.is_file())
        return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

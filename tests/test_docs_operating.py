"""What operators read is true: the commands run as written, and the systemd unit of docs/operating.md names commands that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.cli.command import ROOT, Installation, environment
from tests.cli.command import checkout as make_checkout
from tests.postgres import database, postgres_server
from tests.sandbox.process import SandboxProcess
from tests.service.scripted import Answer, ScriptedServer

TEXT, TROUBLES, SEVERAL_MACHINES = (
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("operating.md", "troubles.md", "several-machines.md")
)
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", TEXT + TROUBLES, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line and not block.startswith("# as root")
]
TABLES = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
"""The examples for bookferry.toml."""

UNITS = ROOT / "deploy" / "systemd"
UNIT = re.findall(
    r"^Exec\w+=/srv/bookferry/(.*)$", (UNITS / "bookferry-backup@.service").read_text(encoding="utf-8"), re.MULTILINE
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """A checkout with a tenant `old` of some real records."""
    folder = make_checkout(tmp_path_factory.mktemp("checkout"))
    with SandboxProcess("--tenant=old=real:120", "--requests-per-minute", "0") as sandbox:
        installation = Installation.make(folder, sandbox, "old")
        config = folder / "bookferry.toml"
        tables = [table for table in TABLES if "[retention]" in table or "success = " in table]
        config.write_text("\n".join([config.read_text(), *tables]))
        yield installation


def run_line(checkout: Installation, line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one line in a shell with these variables."""
    return subprocess.run(
        ["bash", "-euc", line],
        cwd=checkout.folder,
        env=environment(**checkout.sign_in, **variables),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_unit_and_the_commands_work_as_written(checkout: Installation) -> None:
    """First the unit, then every command of the page. Only backups that are complete call the switch."""
    unit = [line.replace("%i", "old") for line in UNIT]
    assert [shlex.split(line)[1:] for line in unit] == [["nightly", "old"]]
    lines = [line for line in COMMANDS if "doctor" not in line]
    assert len(lines) >= 10
    with ScriptedServer(lambda _: Answer(b"OK")) as switch:
        variables = {"BACKUP_ALIVE": f"{switch.url}/check", "BACKUP_FAILED": f"{switch.url}/check/fail"}
        for line in (*unit, *lines):
            process = run_line(checkout, line, **variables)
            assert process.returncode == 0, f"{line}\n{process.stdout}\n{process.stderr}"
        assert {(call.method, call.target) for call in switch.received} == {("POST", "/check")}


@pytest.mark.long
def test_dagster_accepts_the_lines_for_its_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both blocks in one `dagster.yaml`, with a real database for the history."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", SEVERAL_MACHINES, re.MULTILINE | re.DOTALL)
    (tmp_path / "dagster.yaml").write_text("".join(blocks))
    with postgres_server() as server, database(server) as address:
        monkeypatch.setenv("HISTORY_POSTGRES", address)
        with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
            pools = instance.get_concurrency_config().pool_config
            assert (pools.default_pool_limit, str(pools.pool_granularity)) == (1, "PoolGranularity.RUN")
            assert (instance.run_monitoring_enabled, instance.run_retries_enabled) == (True, False)
            assert instance.get_runs(limit=1) == []

"""Forty libraries on four machines of which one after the other is lost, twenty times: every library is backed up, whole."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pipelines.backup import flow
from pipelines.backup.flow import Backup
from pipelines.errors import TenantBusyError
from pipelines.state import leases
from pipelines.store.maintenance.verification import verify
from pipelines.store.snapshots import capture_copies
from pipelines.store.snapshots.capture_copies import newest_copies
from tests.backup.runner import take_steps
from tests.forks import start
from tests.postgres import database
from tests.sandbox.process import SandboxProcess
from tests.shared_machines import SHARED, TENANT
from tests.store.s3 import s3_server

LIBRARIES, MACHINES, KILLS = 40, 4, 20
RECORDS, LIMIT = 400, 40


def work(config: Path, seed: str) -> None:
    """Backs up each library that has no snapshot, in an order of its own, and comes back to those at which another machine is at work."""
    leases.BEAT_SECONDS, leases.SILENCE_SECONDS = 0.2, 3.0
    capture_copies.CaptureCopy.__init__.__kwdefaults__["seconds"] = 0.2
    flow.rebuild_catalogue = lambda data: data.catalogue_path  # each opens every table of every library in the bucket
    with Backup.open(config) as backup:
        tenants = [*backup.settings.tenants]
    random.Random(seed).shuffle(tenants)
    while tenants:
        tenant = tenants.pop(0)
        try:
            with Backup.open(config) as backup:
                backup._leases.acquire(tenant)  # before it looks: until then, another machine may publish
                if not backup.data.snapshots(tenant):
                    take_steps(backup, tenant, f"{seed}-{tenant}")
        except TenantBusyError:
            tenants.append(tenant)
            time.sleep(0.5)


class Machine:
    """A machine with a disk of its own, which is started again whenever its process has ended."""

    def __init__(self, folder: Path, config: str) -> None:
        folder.mkdir()
        self.config = folder / "bookferry.toml"
        self.config.write_text(config)
        self.starts = 0
        self.start()

    def start(self) -> None:
        """Start its worker."""
        self.starts += 1
        self.process = start(work, self.config, f"{self.config.parent.name}{self.starts}")

    def kill(self) -> None:
        """It is lost."""
        self.process.kill()
        self.process.join(60)


@pytest.fixture
def machines(
    tmp_path: Path, state_server: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[SandboxProcess, list[Machine]]]:
    with ExitStack() as stack:
        s3 = stack.enter_context(s3_server())
        tenants = [f"--tenant=library{number}=real:{RECORDS}" for number in range(LIBRARIES)]
        sandbox = stack.enter_context(SandboxProcess(*tenants, "--requests-per-minute", str(LIMIT), "--latency", "0.2"))
        variables = {"TEST_POSTGRES": stack.enter_context(database(state_server)), "TEST_USER": sandbox.user}
        for name, value in {**s3.environ, **variables, "TEST_PASSWORD": sandbox.password}.items():
            monkeypatch.setenv(name, value)
        config = SHARED.format(bucket=s3.bucket())
        for number in range(LIBRARIES):
            address = sandbox.base_url(f"library{number}")
            config += TENANT.format(name=f"library{number}", base_url=address, limit=LIMIT)
        fleet = [Machine(tmp_path / f"machine{number}", config) for number in range(MACHINES)]
        try:
            yield sandbox, fleet
        finally:
            for machine in fleet:
                machine.kill()


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_every_library_is_backed_up_although_machines_are_lost(
    machines: tuple[SandboxProcess, list[Machine]],
) -> None:
    sandbox, running = machines
    chance, killed, requests = random.Random(7), 0, 0
    with Backup.open(running[0].config) as backup:
        while len(backup.data.tenants()) < LIBRARIES:
            total = sum(counts["requests"] for counts in sandbox.control_get("tenants").values())
            for machine in running:
                if machine.process.exitcode is not None:
                    machine.start()
            if total - requests >= 4 and killed < KILLS:  # work was done since the last one
                chance.choice(running).kill()
                killed, requests = killed + 1, total
            time.sleep(0.1)
        resumed = 0
        for number in range(LIBRARIES):
            name = f"library{number}"
            counts = sandbox.counts(name)
            assert (counts["throttled"], counts["largest_window"] <= LIMIT) == (0, True)
            [snapshot] = backup.data.snapshots(name)
            assert (snapshot.manifest.complete, snapshot.counts["publications"]) == (True, RECORDS)
            assert verify(backup.data, snapshot.key, now=backup._now()).ok
            resumed += snapshot.manifest.resources["publications"].resumed
        assert killed == KILLS
        assert resumed > 0
        # Some died after publishing, and before they had removed the copy of their capture: the next backup of the library does
        assert newest_copies(backup.data) == {}

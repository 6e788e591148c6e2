"""Bookferry's backup without its orchestrator: listing, raw payloads, proof, staged tables, checksums, snapshot, catalogue.

The process begins and ends as that of the command.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pipelines.python_process import end, hide_unused, importing, search_seldom

search_seldom()
hide_unused()
with importing():
    from benchmarks.peers.configuration import TENANT, write_configuration
    from pipelines.backup.flow import Backup
    from pipelines.inventory import default_resources
    from pipelines.store.snapshots.snapshots import Snapshot

RUN = "bench"


def back_up(config: Path) -> tuple[Snapshot, dict[str, float]]:
    """Run one backup by the steps of the orchestrator's assets. Returns the snapshot and the seconds of each step."""
    laps = _Laps()
    with Backup.open(config) as library:
        for resource in default_resources("v2"):
            library.read_raw(TENANT, RUN, resource)
        laps.end("read")
        for resource in default_resources("v2"):
            library.stage(TENANT, RUN, resource)
        library.fetch_files(TENANT, RUN)
        laps.end("stage")
        snapshot = library.publish(TENANT, RUN)
        laps.end("publish")
    return snapshot, laps.seconds


class _Laps:
    """A stopwatch that is read after each step."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def end(self, step: str) -> None:
        """Record the seconds of a step."""
        now = time.perf_counter()
        self.seconds[step] = round(now - self._last, 3)
        self._last = now


def main(base_url: str, folder: Path) -> None:
    """Make one backup, print its figures, and check that it is complete."""
    config = write_configuration(base_url, folder)
    started = time.perf_counter()
    snapshot, steps = back_up(config)
    seconds = time.perf_counter() - started
    assert snapshot.manifest.complete, snapshot.manifest.problems
    print(json.dumps({"records": snapshot.counts["publications"], "seconds": seconds, "steps": steps}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
    end(0)

"""What a migration's plan costs, from two raw snapshots to the sealed plan.

Nine tenths of the generated records are in both libraries, under other ids and with the same DOI; in one percent the abstract was edited.
The target's reading is a raw table that is there already, because a service limits a reading, not the machine. The plan is made in a
process of its own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn, Self, cast

import msgspec

from benchmarks.libraries import generated_publications, make_snapshot, write_raw
from benchmarks.measured import Figures, markdown, run
from pipelines.errors import ProtocolError
from pipelines.migration.flow import Migration
from pipelines.migration.model.target_reading import RecordListing
from pipelines.service.client import LibraryClient
from pipelines.service.clock import SystemClock
from pipelines.settings.config_file import load_settings
from pipelines.store.snapshots.snapshots import DataFolder

NOW = datetime(2026, 11, 20, 2, 0, tzinfo=UTC)
CONFIG = """
data = "library-data"

[tenants.old]
base_url = "https://library.example.org"
api = "v2"
username_env = "BENCH_USER"
password_env = "BENCH_PASSWORD"

[tenants.new]
base_url = "https://new.example.org"
api = "v3"
client_id = "bench"
client_auth = "none"
"""
READING = "target.parquet"
APART = 5_000_000
"""Distance between the ids of the two libraries."""


def measure(shared: Path, records: int = 100_000) -> Figures:
    """Make the snapshots, and plan."""
    folder = shared / "plan"
    folder.mkdir()
    make_libraries(folder, records)
    cost = run([sys.executable, "-m", "benchmarks.plan", str(folder)])
    return {"publications": records, **cost.figures(), "actions": json.loads(cost.output)}


def planned(folder: Path) -> dict[str, int]:
    """Plan in this process; returns the actions of the plan."""
    os.environ |= {"BENCH_USER": "bench", "BENCH_PASSWORD": "bench"}
    with Migration(load_settings(folder / "bookferry.toml")) as migration:
        migration.read = PreparedReading(folder / READING).read  # type: ignore[method-assign]
        migration.client = lambda _tenant: cast("Any", _NoClient())  # type: ignore[method-assign]
        return dict(migration.plan(migration.find_source("old"), "new").facts.counts["publications"])


def table(figures: Figures) -> str:
    """The figures as Markdown."""
    keys = ("publications", "seconds", "cpu_seconds", "peak_mib")
    return markdown(["publications a side", "seconds", "CPU seconds", "peak MiB"], [[figures[key] for key in keys]])


class _NoClient:
    """Stands for the client of a library to which no request is sent, and which describes nothing."""

    api_url = "http://127.0.0.1/api/v3"
    requests = 0
    lost_write_seconds = 0.0
    clock = SystemClock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, *_: object, **_options: object) -> NoReturn:
        raise ProtocolError("nothing is asked")


class PreparedReading:
    """A target that was read before; it has publications only."""

    def __init__(self, raw: Path) -> None:
        self._raw = raw

    def read(self, _target: str, _client: LibraryClient, folder: Path, *_: str) -> RecordListing:
        """A second name of its raw table."""
        path = folder / "target-publications.parquet"
        path.hardlink_to(self._raw)
        return RecordListing(path)


def make_libraries(folder: Path, records: int) -> None:
    """Make the snapshot of the source, and the reading of the target."""
    make_snapshot(DataFolder(folder / "library-data"), "old", publications(records, 0, edited=False), NOW)
    write_raw(folder / READING, publications(records, records // 10, edited=True))
    (folder / "bookferry.toml").write_text(CONFIG, encoding="utf-8")


def publications(count: int, first: int, *, edited: bool) -> Iterator[tuple[int, bytes]]:
    """Yields the ids and the JSON of publications, each with a title and a DOI of its own. `edited`: as they are in the target."""
    for number, record in enumerate(generated_publications(count, first), start=first + 1):
        record["title"] = f"{record['title']} {number}"
        for name in ("arxiv_id", "pmid", "issn", "isbn", "doi"):
            record.pop(name, None)
        record["identifiers"] = [{"type": "doi", "value": f"10.5555/{number}"}]
        if edited and number % 100 == 0:
            record["abstract"] = "Edited by somebody"
        record["id"] = number + APART * edited
        yield record["id"], msgspec.json.encode(record)


if __name__ == "__main__":
    print(json.dumps(planned(Path(sys.argv[1]))))

"""Snapshots of generated libraries, made by the steps of a backup without its listing.

Half of the publications of a night are the real ones of the sandbox, again and again, with all their mistakes; the others are generated.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.resources import files as resource_files
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.measured import TENANT
from benchmarks.publications import BLOCK, Publications
from pipelines.backup import files, staging
from pipelines.records.raw import RawRecords
from pipelines.records.tables.registry import raw_table
from pipelines.store.parquet import table_writer
from pipelines.store.snapshots.facts import ResourceFacts
from pipelines.store.snapshots.publishing import publish
from pipelines.store.snapshots.snapshots import DataFolder
from pipelines.store.snapshots.unfinished import continue_capture

FIRST_NIGHT = datetime(2026, 11, 20, 2, 0, tzinfo=UTC)

NIGHTS = ("first", "nightly")
"""In the second one, one record in a hundred was edited."""

EDITED = 100
RECORDS_AT_ONCE = 2_000


def make_nights(data: DataFolder, count: int) -> None:
    """Make the snapshots of `NIGHTS`, each of `count` publications, unless they are there."""
    if data.snapshots():
        return
    for number in range(len(NIGHTS)):
        make_snapshot(data, TENANT, night(count, number), FIRST_NIGHT + timedelta(days=number))


def night(count: int, number: int) -> Iterator[tuple[int, bytes]]:
    """Yields the ids and the JSON of the publications of a night."""
    lines = gzip.decompress(resource_files("sandbox.library").joinpath("publications.jsonl.gz").read_bytes())
    real = cycle(lines.splitlines())
    for identifier, generated in enumerate(generated_publications(count), start=1):
        record = generated if identifier % 2 else msgspec.json.decode(next(real))
        record["id"] = identifier
        if number and identifier % EDITED == 0:
            record["title"] = f"{record['title']} (edited)"
        yield identifier, msgspec.json.encode(record)


def generated_publications(count: int, first: int = 0) -> Iterator[dict[str, Any]]:
    """Yields `count` generated publications, from the number `first` on."""
    publications = Publications(first + count)
    for start in range(first, first + count, BLOCK):
        yield from msgspec.json.decode(b"[%b]" % publications.json(start, start + BLOCK), type=list[dict[str, Any]])


def make_snapshot(data: DataFolder, tenant: str, records: Iterable[tuple[int, bytes]], now: datetime) -> None:
    """Make and publish a snapshot."""
    data.prepare()
    library = {"base_url": "https://library.example.org", "api": "v2"}
    capture = continue_capture(data, tenant, f"run {now}", ["publications"], **library, now=now)
    rows = write_raw(capture.raw_path("publications"), records)
    capture.add_table("raw_publications", capture.raw_path("publications"), rows)
    capture.facts.resources["publications"] = ResourceFacts(
        endpoint="publications/all",
        records=rows,
        distinct_ids=rows,
        without_id=0,
        pages=-(-rows // BLOCK),
        x_total=rows,
        requests=0,
        seconds=0.0,
        complete=True,
        problems=[],
    )
    capture.save()
    staging.stage(capture, "publications")
    files.skip_files(capture)
    publish(data, capture, now)


def write_raw(path: Path, records: Iterable[tuple[int, bytes]]) -> int:
    """Write a raw table; returns its rows."""
    table, rows, remaining = raw_table("publications"), 0, iter(records)
    with table_writer(path, table) as writer:
        while chunk := list(islice(remaining, RECORDS_AT_ONCE)):
            batch = RawRecords()
            page = rows // BLOCK + 1
            batch.add([msgspec.Raw(encoded) for _, encoded in chunk], [identifier for identifier, _ in chunk], page)
            writer.write(batch.batch(table.schema))
            rows += len(chunk)
    return rows

"""Reads what a migration compares: the resources of the target now, proved like a backup, and the tables of a snapshot."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.backup import read
from pipelines.backup.nested import read_nested
from pipelines.errors import StopError
from pipelines.humanize import counted
from pipelines.inventory import nested_of, nested_resource
from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.comparison_database import in_steps
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import Plan
from pipelines.records.identifiers.kinds import Kinds
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.records.tables.registry import (
    beside_links,
    field_of_entries,
    leading_key,
    named_by,
    raw_table,
    says_more,
)
from pipelines.records.tables.shared_columns import POSITION
from pipelines.records.values import RecordId, decode_record, record_id
from pipelines.service.client import LibraryClient
from pipelines.store.durable import storage_errors
from pipelines.store.encryption import PersonalKey
from pipelines.store.entries import keys_of_entries
from pipelines.store.parquet import create_view, escaped, literal, open_in_duckdb, open_table, row_batches, table_writer
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.facts import ResourceFacts, Unreadable
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot


@dataclass(frozen=True)
class RecordListing:
    """The raw table of a resource on this machine, and its key where it is encrypted."""

    path: Path
    key: PersonalKey | None = None
    lists: dict[str, str] = field(default_factory=dict)
    """List that each record has at an address of its own, as `nested` names it → the field of the records that has its entries."""

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield each record; `STEP` of them are in memory."""
        with storage_errors(self.path), open_table(self.path, self.key) as file:
            for batch in row_batches(file, ["payload"], STEP):
                for payload in batch.column("payload").cast(pa.binary()).to_pylist():
                    yield decode_record(payload or b"")

    def ids(self) -> Iterator[set[RecordId]]:
        """Yield the ids, those of `STEP` records at a time. The column has those that are whole numbers, and the record the others."""
        with storage_errors(self.path), open_table(self.path, self.key) as file:
            for batch in row_batches(file, ["id"], STEP):
                if batch.column("id").null_count:
                    break
                yield {number for number in batch.column("id").to_pylist() if number is not None}
            else:
                return
        for records in in_steps(self.records()):
            yield {number for number, _record in numbered(records)}

    @property
    def has_text_ids(self) -> bool:
        """Whether any record has an id that is no whole number."""
        with storage_errors(self.path), open_table(self.path, self.key) as file:
            return any(batch.column("id").null_count for batch in row_batches(file, ["id"], STEP))

    @property
    def rows(self) -> int:
        """The number of records."""
        with storage_errors(self.path), open_table(self.path, self.key) as file:
            return file.metadata.num_rows


def numbered(records: Iterable[Mapping[str, Any]]) -> Iterator[tuple[RecordId, Mapping[str, Any]]]:
    """Yield the records that have an id, with it."""
    for record in records:
        if (number := record_id(record.get("id"))) is not None:
            yield number, record


def read_resource(
    capture: Capture,
    client: LibraryClient,
    folder: Path,
    resource: str,
    lists: Sequence[str],
    *,
    kinds: Kinds,
    on_progress: Callable[[read.Progress], None],
) -> RecordListing:
    """Read a resource of a target, proved like a backup; its table is in `folder`, encrypted for persons.

    `capture`: a new one, or that of an interrupted reading. `lists`: those that each record has at an address of its own.

    Raises `StopError` unless the reading is proved complete.
    """
    known = capture.facts.resources
    facts = known.get(resource) or read.read_raw(capture, client, resource, on_progress, alone=True, kinds=kinds)
    whole, records = _raw(capture, resource), _whole(capture, facts).records
    if unidentified := records - sum(map(len, whole.ids())):
        shutil.rmtree(capture.path, ignore_errors=True)
        raise StopError(
            f"{counted(unidentified, 'record')} among the {resource} of '{capture.facts.tenant}' have no id, by which a migration knows "
            f"records: it would create again what is there. Leave {resource} out (--resources)."
        )
    for name in lists:
        _whole(capture, known.get(nested_resource(name)) or read_nested(capture, client, name, on_progress))
    raw = folder / f"target-{resource}.parquet"
    with storage_errors(raw):
        for name in lists:
            whole = _with_entries(whole, _raw(capture, nested_resource(name)), name, capture.path)
        shutil.move(whole.path, raw)
        shutil.rmtree(capture.path)
    return replace(whole, path=raw)


def _whole(capture: Capture, result: ResourceFacts | Unreadable) -> ResourceFacts:
    """The facts of a list that was read. Raises `StopError`, and removes the capture, unless it is proved to be whole."""
    if isinstance(result, ResourceFacts) and result.complete:
        return result
    shutil.rmtree(capture.path, ignore_errors=True)
    name, problems = (
        (result.endpoint, result.problems) if isinstance(result, ResourceFacts) else ("A list", [result.message])
    )
    raise StopError(
        f"{name} of '{capture.facts.tenant}' could not be read whole, so it is unknown what is missing there: {' '.join(problems)} Wait "
        "until no one is editing it, then run the same command again."
    )


def _raw(capture: Capture, resource: str) -> RecordListing:
    """A list that was read."""
    return RecordListing(capture.raw_path(resource), capture.key_of(f"raw_{resource}"))


def reading_name(run: str, plan: Plan, journal: Journal) -> str:
    """The name of a reading. It changes with each write of the plan, so that no reading from before a write is resumed after it."""
    return f"{run}-{re.sub(r'[^0-9]', '', journal.last_change(plan.name))}"


def snapshot_listing(data: DataFolder, source: Snapshot, resource: str, folder: Path) -> RecordListing:
    """A resource of a snapshot, on this machine; encrypted tables stay encrypted.

    A record has the list that it has at an address of its own, as if it showed the numbers itself.
    """
    listing = _raw_listing(data, source, resource, folder)
    for nested in nested_of([resource], source.manifest.resources):
        name = f"{resource}/{source.manifest.resources[nested].endpoint.rpartition('/')[2]}"
        led = named_by(nested)
        is_read = led is not None and f"raw_{led}" in source.manifest.tables
        read_led_to = partial(_raw_listing, data, source, str(led), folder) if is_read else None
        entries = _raw_listing(data, source, nested, folder)
        listing = _with_entries(listing, entries, name, folder, read_led_to=read_led_to)
    return listing


def _raw_listing(data: DataFolder, source: Snapshot, resource: str, folder: Path) -> RecordListing:
    name = f"raw_{resource}"
    key = data.keys.to_read(source.manifest.tables[name].key, f"The table {name} of {source.name}")
    return RecordListing(local_table(data, source, name, folder), key)


def _with_entries(
    records: RecordListing,
    entries: RecordListing,
    name: str,
    folder: Path,
    *,
    read_led_to: Callable[[], RecordListing] | None = None,
) -> RecordListing:
    """The records of a resource with the entries of the list of this name that each has at an address of its own.

    `read_led_to`: reads the records to which the entries lead, whose own values say nothing of the link.
    """
    resource, _, _below = name.partition("/")
    joined = folder / f"with-{nested_resource(name)}.parquet"
    sql = resources.files("sql").joinpath("migration", "with_entries.sql").read_text(encoding="utf-8")
    with (
        open_in_duckdb(records.path, records.key) as database,
        table_writer(joined, raw_table(resource), records.key) as writer,
    ):
        create_view(database, "entries", escaped(entries.path), entries.key)
        nested, keys = nested_resource(name), keys_of_entries(database, "entries")
        key = leading_key(nested, keys)
        if key == "id" and read_led_to is None:
            keys = []  # the entries are the records themselves, and nobody knows what those have
        beside = [name for name in keys if says_more(nested, key, name) and not {*name} & {'"', "\\"}]
        if beside and read_led_to:
            led_to = read_led_to()
            create_view(database, "led_to", escaped(led_to.path), led_to.key)
        else:
            database.execute("CREATE VIEW led_to AS SELECT id, payload FROM file WHERE false")
        field_name, paths = field_of_entries(nested, key), [f'$."{name}"' for name in beside]
        names = {
            "key": field_name,
            "beside": beside_links(field_name),
            "reference": key,
            "names": f"[{', '.join(map(literal, beside))}]::VARCHAR[]",
            "paths": f"[{', '.join(literal(path) for path in paths)}]::VARCHAR[]",
            "position": POSITION.name,
        }
        for batch in database.sql(sql.format(**names)).to_arrow_reader(STEP):
            writer.write(batch.cast(raw_table(resource).schema))
    return RecordListing(joined, records.key, {**records.lists, name: field_name})


def local_table(data: DataFolder, source: Snapshot, table: str, folder: Path) -> Path:
    """A table of a snapshot as a local file; a table in a bucket is copied into `folder`."""
    facts = source.manifest.tables[table]
    address = source.address_of(facts)
    if "://" not in address:
        return Path(address)
    copy = folder / f"source-{table}.parquet"
    with storage_errors(copy), data.objects.open(f"{source.key}/{facts.path}") as content, copy.open("wb") as to:
        shutil.copyfileobj(content, to)
    return copy


def file_table(data: DataFolder, source: Snapshot, folder: Path) -> str | None:
    """Returns the local path of the snapshot's file table, if it has one."""
    if PUBLICATION_FILES.name not in source.manifest.tables:
        return None
    return str(local_table(data, source, PUBLICATION_FILES.name, folder))

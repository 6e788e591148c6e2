"""Normalises one side of a migration for matching: a row for each publication, in the form that version 3 takes.

Each side is normalised in a process of its own, because that takes much of the time of a plan. Only one batch of records is in memory
(I11).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.migration.model.comparable import KEYS, RECORDS, STEP, ComparableLibrary, column_of, records_table
from pipelines.publication_fields import REFERENCES, WRITTEN
from pipelines.records.batches import collector_paused, named_batch, table_batch, transposed
from pipelines.records.canonical_json import SENT_OTHERWISE, CanonicalPublication, CanonicalReader
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.verdicts import GOOD
from pipelines.records.tables.description import Table
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import table_writer


def normalise(
    raw: Path,
    folder: Path,
    kinds: Kinds = STANDARD_KINDS,
    sent: Collection[str] = GOOD,
    *,
    first_day: bool = False,
) -> ComparableLibrary:
    """Normalise the publications of a raw table.

    `kinds`: the identifier types, and the fields that are compared besides the documented ones. `sent`: verdicts of the identifiers that
    are sent. `first_day`: a date that is only a year or a month counts as its first day.
    """
    names = tuple(kinds.additional)
    table, reader = records_table(names), CanonicalReader(kinds, frozenset(sent), first_day=first_day)
    with storage_errors(raw), ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        stack.enter_context(collector_paused())
        file = stack.enter_context(pq.ParquetFile(raw))
        with (
            table_writer(folder / f"{RECORDS.name}.parquet", table) as records,
            table_writer(folder / f"{KEYS.name}.parquet", KEYS) as keys,
        ):
            for payloads in file.iter_batches(STEP, columns=["payload"]):
                texts = cast("list[bytes]", payloads.column(0).cast(pa.binary()).to_pylist())
                rows = [row for text in texts if (row := reader.read(text)) is not None]
                records.write(_records_batch(rows, table, names))
                keys.write(table_batch(KEYS, transposed([(row.id, *key) for row in rows for key in row.keys], KEYS)))
        return ComparableLibrary(folder, records.rows, file.metadata.num_rows - records.rows, names)


def _records_batch(rows: Sequence[CanonicalPublication], table: Table, additional: Iterable[str]) -> pa.RecordBatch:
    """Some rows of `RECORDS`, with additional fields."""
    columns: dict[str, Sequence[Any]] = {
        "id": [row.id for row in rows],
        "fingerprint": [row.fingerprint for row in rows],
        "content": [_content(row.compared) for row in rows],
        **{column_of(name): [row.compared.get(name) for row in rows] for name in (*WRITTEN, *additional)},
        **{f"{name}_sent": [row.sent.get(name) for row in rows] for name in SENT_OTHERWISE},
        "files": [row.files for row in rows],
        "unsent": [row.unsent for row in rows],
        "empty": [row.empty for row in rows],
        "invalid": [row.invalid for row in rows],
    }
    return named_batch(table, columns)


def _content(compared: Mapping[str, str]) -> str:
    content = "\n".join([begin + compared[name] for name, begin in _CONTENT if name in compared])
    return hashlib.sha256(content.encode()).hexdigest()


_CONTENT = [(name, f"{name}:") for name in sorted(WRITTEN) if name not in REFERENCES]

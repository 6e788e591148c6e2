"""Normalises one side of a migration for matching: a row for each publication, in the form that version 3 takes.

The result depends on the raw records alone: rows of an earlier plan are taken over where a record is the same (earlier_rows.py). Each
side is normalised in a process of its own, because that takes much of the time of a plan. Only one batch of records is in memory (I11).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.migration.earlier_rows import EarlierRows, KnownRow, earlier_rows, rules_of, write_facts
from pipelines.migration.model.comparable import KEYS, RECORDS, STEP, ComparableLibrary, column_of, records_table
from pipelines.publication_fields import REFERENCES, WRITTEN
from pipelines.records.additional_fields import FieldRule
from pipelines.records.batches import collector_paused, named_batch, table_batch, transposed
from pipelines.records.canonical_json import SENT_OTHERWISE, CanonicalPublication, CanonicalReader
from pipelines.records.identifiers.configured import kinds_described
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.identifiers.verdicts import GOOD
from pipelines.records.residue import without_queries
from pipelines.records.tables.description import Table
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import TableWriter, table_writer


def normalise(  # noqa: PLR0917  a side, and what is compared of it
    raw: Path,
    folder: Path,
    kinds_text: str = "",
    sent: Sequence[str] = tuple(GOOD),
    additional: Mapping[str, FieldRule] | None = None,
    earlier: Sequence[Path] = (),
    *,
    first_day: bool = False,
) -> ComparableLibrary:
    """Normalise the publications of a raw table.

    `kinds_text`: `Kinds.described`, because a text can be passed to another process. `sent`: verdicts of the identifiers that are sent.
    `additional`: the fields that are compared besides the documented ones. `earlier`: folders of sides that were normalised before, the
    newest first. `first_day`: a date that is only a year or a month counts as its first day.
    """
    kinds = (kinds_described(kinds_text) if kinds_text else STANDARD_KINDS).with_additional(additional or {})
    rules = rules_of(kinds_text, sent, kinds.additional, first_day=first_day)
    side = _Side(
        records_table(kinds.additional),
        tuple(kinds.additional),
        CanonicalReader(kinds, frozenset(sent), first_day=first_day),
    )
    with storage_errors(raw), ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        stack.enter_context(collector_paused())
        file = stack.enter_context(pq.ParquetFile(raw))
        known = stack.enter_context(earlier_rows(raw, folder, earlier, rules))
        with (
            table_writer(folder / f"{RECORDS.name}.parquet", side.table) as records,
            table_writer(folder / f"{KEYS.name}.parquet", KEYS) as keys,
        ):
            for group in range(file.num_row_groups):
                side.normalise_group(file, group, known, records, keys)
        library = ComparableLibrary(folder, records.rows, file.metadata.num_rows - records.rows, side.additional)
        write_facts(library, rules, side.groups)
    return library


class _Side:
    """What the rows of one side are made with. `groups`: of each batch so far, the rows of both tables."""

    def __init__(self, table: Table, additional: tuple[str, ...], reader: CanonicalReader) -> None:
        self.table = table
        self.additional = additional
        self.groups: list[tuple[int, int]] = []
        self._reader = reader

    def normalise_group(
        self, file: pq.ParquetFile, group: int, known: EarlierRows | None, records: TableWriter, keys: TableWriter
    ) -> None:
        """Write the rows of one row group of the raw table. Where all of its records are known, their payloads are not even read."""
        count, payloads = file.metadata.row_group(group).num_rows, None
        for begin in range(0, count, STEP):
            size = min(STEP, count - begin)
            rows = known.next(size) if known is not None else [None] * size
            new = [begin + place for place, row in enumerate(rows) if row is None]
            if new and payloads is None:
                payloads = file.read_row_group(group, columns=["payload", "sha256"])
            texts = self._read(payloads if len(new) == count else payloads.take(new)) if payloads is not None else []
            self._write(rows, texts, known, records, keys)

    def _read(self, payloads: pa.Table) -> list[_Read]:
        texts = cast("list[bytes]", payloads.column("payload").cast(pa.binary()).to_pylist())
        hashes, read = cast("list[str]", payloads.column("sha256").to_pylist()), self._reader.read
        return [(read(text), _unsigned(text, sha256)) for text, sha256 in zip(texts, hashes, strict=True)]

    def _write(
        self,
        rows: Sequence[KnownRow | None],
        texts: Iterable[_Read],
        known: EarlierRows | None,
        records: TableWriter,
        keys: TableWriter,
    ) -> None:
        """Write a batch in the order of the raw table. `texts`: what was read anew, for each row that is not known."""
        read = iter(texts)
        fresh: list[tuple[CanonicalPublication, str]] = []
        order: list[KnownRow | int] = []
        found: list[tuple[int, str, str]] = []
        for row in rows:
            if row is not None:
                order.append(row)
                found += row.keys
                continue
            publication, sha256 = next(read)
            if publication is not None:
                order.append(len(fresh))
                fresh.append((publication, sha256))
                found += [(publication.id, *key) for key in publication.keys]
        batch = _records_batch(fresh, self.table, self.additional)
        records.write(batch if known is None or len(fresh) == len(order) else known.rows(batch, order))
        keys.write(table_batch(KEYS, transposed(found, KEYS)))
        self.groups.append((len(order), len(found)))


_Read = tuple[CanonicalPublication | None, str]
"""A record that was read, none where it cannot be moved, and the SHA-256 that tells whether it is still the same."""


def _unsigned(payload: bytes, sha256: str) -> str:
    unsigned = without_queries(payload)
    return sha256 if unsigned is payload else hashlib.sha256(unsigned).hexdigest()


def _records_batch(
    found: Sequence[tuple[CanonicalPublication, str]], table: Table, additional: Iterable[str]
) -> pa.RecordBatch:
    """Some rows of `RECORDS`, with additional fields."""
    rows = [publication for publication, _sha256 in found]
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
        "sha256": [sha256 for _publication, sha256 in found],
    }
    return named_batch(table, columns)


def _content(compared: Mapping[str, str]) -> str:
    content = "\n".join([begin + compared[name] for name, begin in _CONTENT if name in compared])
    return hashlib.sha256(content.encode()).hexdigest()


_CONTENT = [(name, f"{name}:") for name in sorted(WRITTEN) if name not in REFERENCES]

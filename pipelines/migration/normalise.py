"""Normalises one side of a migration for matching: a row for each publication, in the form that version 3 takes.

Only one batch of records is in memory (I11).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.migration.model.comparable import (
    KEYS,
    RECORDS,
    SENT_OTHERWISE,
    STEP,
    ComparableLibrary,
    column_of,
    records_table,
)
from pipelines.publication_fields import REFERENCES, WRITTEN
from pipelines.records.additional_fields import is_sent_empty
from pipelines.records.batches import batch_of_columns, batch_of_rows
from pipelines.records.forms import form_of
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.typed_identifiers import count_left_out
from pipelines.records.identifiers.verdicts import GOOD
from pipelines.records.matching import comparable, fingerprint, identifying_keys
from pipelines.records.residue import residue_json, without_addresses
from pipelines.records.tables.description import Table
from pipelines.records.values import compact_json, decode_record, whole_number
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import table_writer

_FILES = frozenset({"cover", "assets"})


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
    table, read = records_table(names), partial(publication_of, kinds=kinds, sent=frozenset(sent), first_day=first_day)
    with storage_errors(raw), ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        file = stack.enter_context(pq.ParquetFile(raw))
        with (
            table_writer(folder / f"{RECORDS.name}.parquet", table) as records,
            table_writer(folder / f"{KEYS.name}.parquet", KEYS) as keys,
        ):
            for payloads in file.iter_batches(STEP, columns=["payload"]):
                texts = cast("list[bytes]", payloads.column(0).cast(pa.binary()).to_pylist())
                rows = [row for text in texts if (row := read(decode_record(text))) is not None]
                records.write(_records_batch(rows, table, names))
                keys.write(batch_of_rows(KEYS, [(row.id, *key) for row in rows for key in row.keys]))
        return ComparableLibrary(folder, records.rows, file.metadata.num_rows - records.rows, names)


class ComparablePublication(NamedTuple):
    """The parts of a publication that are compared and sent."""

    id: int
    fingerprint: str | None
    compared: Mapping[str, str]
    """Field → JSON text, the result of `matching.comparable`."""
    sent: Mapping[str, str]
    """Field of `SENT_OTHERWISE` → JSON text for POST."""
    keys: Sequence[tuple[str, str]]
    """Type and value of each identifier that names this publication only."""
    files: str | None
    """JSON object of id, cover and assets as received, without addresses (I10); None if there are no files."""
    unsent: str | None
    """JSON object of path → value that version 3 will not receive; without files."""
    invalid: int
    """Number of identifiers that are not sent."""
    empty: str | None
    """JSON object of the additional fields with an empty text or list, as far as the target takes that."""


def publication_of(
    record: Mapping[str, Any], kinds: Kinds = STANDARD_KINDS, sent: AbstractSet[str] = GOOD, *, first_day: bool = False
) -> ComparablePublication | None:
    """The comparable form of a record; None if its id is not a whole number. Never raises on data. Parameters as for `form_of`."""
    number = whole_number(record.get("id"))
    if number is None:
        return None
    without_files = {name: value for name, value in record.items() if name not in _FILES}
    form = form_of(without_files, kinds, sent, first_day=first_day)
    return ComparablePublication(
        number,
        fingerprint(form.fields),
        comparable(form.fields, kinds),
        {name: compact_json(form.fields[name]) for name in SENT_OTHERWISE if name in form.fields},
        identifying_keys(form, kinds),
        _files(record),
        residue_json(form.unsent),
        count_left_out(form.identifiers, sent),
        _empty(record, kinds),
    )


def _files(record: Mapping[str, Any]) -> str | None:
    cover, assets = record.get("cover"), record.get("assets")
    if cover is None and not assets:
        return None
    return compact_json(without_addresses({"id": record["id"], "cover": cover, "assets": assets}))


def _empty(record: Mapping[str, Any], kinds: Kinds) -> str | None:
    """A link is empty only as a list."""
    empty = {
        name: record[name]
        for name, rule in kinds.additional.items()
        if is_sent_empty(record.get(name)) and (record[name] == [] or not rule.leads_to) and rule.takes(record[name])
    }
    return compact_json(empty) if empty else None


def _records_batch(rows: Sequence[ComparablePublication], table: Table, additional: Iterable[str]) -> pa.RecordBatch:
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
    return batch_of_columns(table, columns)


def _content(compared: Mapping[str, str]) -> str:
    content = "\n".join([begin + compared[name] for name, begin in _CONTENT if name in compared])
    return hashlib.sha256(content.encode()).hexdigest()


_CONTENT = [(name, f"{name}:") for name in sorted(WRITTEN) if name not in REFERENCES]

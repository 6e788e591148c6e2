"""Lays out one side of a migration for matching: a row for each publication, in the form that version 3 takes.

A function of the raw records alone; each side in a process of its own, because making forms is what takes time. Nothing is held but a batch
of records (I11).
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.inventory import IDENTIFIER_LIST
from pipelines.migration.classifying import Field
from pipelines.records.batches import table_batch
from pipelines.records.forms import WRITTEN, Form, form_of
from pipelines.records.identifiers.configured import kinds_described
from pipelines.records.identifiers.kinds import STANDARD_KINDS, Kinds
from pipelines.records.identifiers.verdicts import GOOD
from pipelines.records.matching import comparable, fingerprint, identifying_keys
from pipelines.records.publications import REFERENCES
from pipelines.records.residue import residue_json
from pipelines.records.tables import Column, Table
from pipelines.records.values import compact_json, decode_record, whole_number
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import exactly, literal, row_batches, table_writer

FIELDS = tuple(Field(name, is_set=name in (IDENTIFIER_LIST, "categories")) for name in WRITTEN)
"""What is compared of a publication."""

CONTRIBUTOR = "contributor"
"""The reference of a publication that can be led into another library."""

STEP = 2000
"""Records whose forms are in memory at once."""

_TEXT = pa.string()
RECORDS = Table(
    "records",
    "One row for each publication of a side.",
    ("id",),
    (
        Column("id", pa.int64(), "The service's identifier of the record.", required=True),
        Column("fingerprint", _TEXT, "Title, year and first author in one form; empty where one of them is missing."),
        Column(
            "content",
            _TEXT,
            "Digest of all that is compared, references excepted: they are of their own library.",
            required=True,
        ),
        *(Column(name, _TEXT, f"What is compared of {name}: JSON, empty where there is nothing.") for name in WRITTEN),
        Column("form", _TEXT, "What POST and PATCH are sent: JSON.", required=True),
        Column("files", _TEXT, "Its cover and attached files, as it describes them: JSON, empty where it has none."),
        Column(
            "unsent", _TEXT, "What version 3 will not hold: JSON object of path → value, empty where that is nothing."
        ),
        Column(
            "invalid",
            pa.int32(),
            "Identifiers that are not sent because they break the rules of their type.",
            required=True,
        ),
        Column("sha256", _TEXT, "SHA-256 of the record's JSON as it was received.", required=True),
    ),
)
KEYS = Table(
    "keys",
    "One row for each identifier that names a publication and no other.",
    ("id", "type", "value"),
    (
        Column("id", pa.int64(), "The publication.", required=True),
        Column("type", _TEXT, "Kind of identifier.", required=True),
        Column("value", _TEXT, "Its canonical value.", required=True),
    ),
)


@dataclass(frozen=True)
class Side:
    """One side, laid out in a folder."""

    folder: Path
    records: int
    unfit: int
    """Records that cannot be moved: without an id that is a whole number, or no JSON object."""

    def path(self, table: Table) -> Path:
        """The file of one of its tables."""
        return self.folder / f"{table.name}.parquet"

    def views(self, name: str) -> Iterator[str]:
        """SQL that shows it as `name` and `name_keys`."""
        for view, table in ((name, RECORDS), (f"{name}_keys", KEYS)):
            yield f"CREATE OR REPLACE TEMP VIEW {view} AS FROM read_parquet({literal(exactly(self.path(table)))})"


def lay_out(raw: Path, folder: Path, kinds_text: str = "", sent: Sequence[str] = tuple(GOOD)) -> Side:
    """Lay out the publications of a raw table.

    `kinds_text`: what `Kinds.described` says, for it goes from process to process. `sent`: verdicts of the identifiers that are sent.
    """
    kinds = kinds_described(kinds_text) if kinds_text else STANDARD_KINDS
    verdicts = frozenset(sent)
    records = unfit = 0
    collecting = gc.isenabled()
    gc.disable()  # millions of forms and not one cycle
    try:
        with storage_errors(raw), pq.ParquetFile(raw) as file, ExitStack() as stack:
            folder.mkdir(parents=True, exist_ok=True)
            writers = {
                table: stack.enter_context(table_writer(folder / f"{table.name}.parquet", table))
                for table in (RECORDS, KEYS)
            }
            for batch in row_batches(file, ["payload", "sha256"], STEP):
                rows = list(_rows(batch, kinds, verdicts))
                unfit += batch.num_rows - len(rows)
                records += len(rows)
                writers[RECORDS].write(table_batch(RECORDS, _columns(rows, kinds, verdicts)))
                keys = [(number, *key) for number, form, _sha256 in rows for key in identifying_keys(form, kinds)]
                writers[KEYS].write(table_batch(KEYS, list(zip(*keys, strict=True)) if keys else [()] * 3))
    finally:
        if collecting:
            gc.enable()
    return Side(folder, records, unfit)


def _rows(batch: pa.RecordBatch, kinds: Kinds, sent: frozenset[str]) -> Iterator[tuple[int, Form, str]]:
    payloads = cast("list[bytes]", batch.column("payload").cast(pa.binary()).to_pylist())
    for payload, sha256 in zip(payloads, cast("list[str]", batch.column("sha256").to_pylist()), strict=True):
        record = decode_record(payload)
        number = whole_number(record.get("id"))
        if number is not None:
            yield number, form_of(record, kinds, sent), sha256


def _columns(rows: Sequence[tuple[int, Form, str]], kinds: Kinds, sent: frozenset[str]) -> list[Sequence[Any]]:
    forms = [form for _number, form, _sha256 in rows]
    compared = [comparable(form.fields, kinds) for form in forms]
    return [
        [number for number, _form, _sha256 in rows],
        [fingerprint(form.fields) for form in forms],
        [_content(one) for one in compared],
        *([one.get(name) for one in compared] for name in WRITTEN),
        [compact_json(form.fields) for form in forms],
        [_files(form) for form in forms],
        [residue_json(form.unsent) for form in forms],
        [sum(one.verdict not in sent for one in form.identifiers) for form in forms],
        [sha256 for _number, _form, sha256 in rows],
    ]


def _files(form: Form) -> str | None:
    return msgspec.json.encode(form.files).decode() if form.files else None


def _content(compared: Mapping[str, str]) -> str:
    told = "\n".join(f"{name}:{text}" for name, text in sorted(compared.items()) if name not in REFERENCES)
    return hashlib.sha256(told.encode()).hexdigest()

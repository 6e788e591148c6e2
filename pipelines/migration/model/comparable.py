"""One side of a migration in comparable form: a row for each publication, in the form that version 3 takes, and its keys."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.publication_fields import DATE_FIELDS, IDENTIFIER_LIST, WRITTEN
from pipelines.records.tables.description import Column, Table
from pipelines.store.parquet import escaped, literal


@dataclass(frozen=True)
class Field:
    """A compared field of a publication. `is_set`: a JSON array without order, of which one side may have more entries."""

    name: str
    is_set: bool = False
    is_additional: bool = False
    """Whether the service does not document it."""
    is_date: bool = False

    @property
    def column(self) -> str:
        """Its column in `RECORDS`."""
        return column_of(self.name) if self.is_additional else self.name


FIELDS = tuple(
    Field(name, is_set=name in (IDENTIFIER_LIST, "categories"), is_date=name in DATE_FIELDS) for name in WRITTEN
)
"""The compared fields of every publication."""


SENT_OTHERWISE = (IDENTIFIER_LIST, "categories")
"""Fields that are compared as sets, but sent in the order of the record."""


def column_of(name: str) -> str:
    """The column of a field in `RECORDS`. The prefix keeps additional fields apart from other columns: one may be named `content`."""
    return name if name in WRITTEN else f"field:{name}"


CONTRIBUTOR = "contributor"
"""The reference of a publication that can be mapped to another library."""

STEP = 2000
"""Records in memory at once."""

_TEXT = pa.string()
RECORDS = Table(
    "records",
    "One row for each publication.",
    ("id",),
    (
        Column("id", pa.int64(), "The service's identifier of the record.", required=True),
        Column(
            "fingerprint", _TEXT, "Title, year and first author in canonical form; empty where one of them is missing."
        ),
        Column(
            "content",
            _TEXT,
            "Digest of all compared fields except references, which are valid in their own library only.",
            required=True,
        ),
        *(Column(name, _TEXT, f"The compared form of {name}: JSON, empty for an empty field.") for name in WRITTEN),
        *(
            Column(f"{name}_sent", _TEXT, f"The sent form of {name}: JSON, empty for an empty field.")
            for name in SENT_OTHERWISE
        ),
        Column(
            "files",
            _TEXT,
            "Id, cover and assets of the record without their addresses: JSON, empty where it has none.",
        ),
        Column(
            "unsent",
            _TEXT,
            "Values that are not sent, apart from files: JSON object of path → value, empty where there are none.",
        ),
        Column("empty", _TEXT, "Additional fields with an empty text or list: JSON object of field → value."),
        Column(
            "invalid",
            pa.int32(),
            "Identifiers that are not sent because they break the rules of their type.",
            required=True,
        ),
    ),
)
KEYS = Table(
    "keys",
    "One row for each identifier that identifies a publication.",
    ("id", "type", "value"),
    (
        Column("id", pa.int64(), "The publication.", required=True),
        Column("type", _TEXT, "Kind of identifier.", required=True),
        Column("value", _TEXT, "Its canonical value.", required=True),
    ),
)


def records_table(additional: Iterable[str] = ()) -> Table:
    """`RECORDS` with a column for each of these additional fields."""
    columns = [
        Column(column_of(name), _TEXT, f"The compared form of {name}: JSON, empty for an empty field.")
        for name in additional
    ]
    return replace(RECORDS, columns=(*RECORDS.columns, *columns)) if columns else RECORDS


@dataclass(frozen=True)
class ComparableLibrary:
    """The publications of one side in comparable form, in a folder."""

    folder: Path
    records: int
    unfit: int
    """Records that cannot be moved, because they have no whole number as id or are no JSON object."""
    additional: tuple[str, ...] = ()
    """The fields that are compared besides the documented ones."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The compared fields."""
        return (*FIELDS, *(Field(name, is_additional=True) for name in self.additional))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the compared fields."""
        return (*WRITTEN, *self.additional)

    def path(self, table: Table) -> Path:
        """The file of one of its tables."""
        return self.folder / f"{table.name}.parquet"

    def views(self, name: str) -> Iterator[str]:
        """Yield SQL that creates the views `name` and `name_keys`."""
        for view, table in ((name, RECORDS), (f"{name}_keys", KEYS)):
            yield f"CREATE OR REPLACE TEMP VIEW {view} AS FROM read_parquet({literal(escaped(self.path(table)))})"


def sent_json(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """Field → the JSON that is sent, of some fields of a row of `RECORDS`; without empty fields."""
    found = ((name, record[f"{name}_sent" if name in SENT_OTHERWISE else column_of(name)]) for name in names)
    return {name: text for name, text in found if text is not None}


def digest(text: str | None) -> str | None:
    """The digest of a field in the journal, which later shows who changed it: DuckDB's md5_number of its JSON, in decimal digits."""
    if text is None:
        return None
    return _digest_of_short(text) if len(text) <= _SHORT else _digest_of(text)


def _digest_of(text: str) -> str:
    return str(int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest(), "little"))


_SHORT = 40
"""Longest text, in characters, whose digest is cached: types, dates and categories repeat in many records."""

_digest_of_short = lru_cache(2**14)(_digest_of)

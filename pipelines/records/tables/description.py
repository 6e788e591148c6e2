"""How a table is described: name, key, and for each column its Arrow type and a sentence.

Parquet schemas, Dagster's column metadata, the DuckDB views, the Postgres tables and `bookferry tables` follow from these
descriptions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import pyarrow as pa


class Part(StrEnum):
    """What a column takes of the value that it is made from."""

    VALUE = "value"
    """The value itself, where the column's type can hold it; a date column takes a whole date only."""
    DAY = "day"
    """A whole date, also one in another order that has one reading, beside the column with the text that was sent."""
    YEAR = "year"
    PRECISION = "precision"


@dataclass(frozen=True)
class Column:
    """One column: its Arrow type, its meaning, and whether every row must fill it.

    `personal`: the column holds data of a person who uses the library. The files have such columns; the public views do not.
    `references`: the column of another table whose rows this column names, such as publications.id. `json`: the text is a JSON object.
    `made_from`: the column of the raw table that a staged column is made from; empty if it has another source.
    `path`: the keys from the record, or from the entry of a list, to the value; the column's own name if nothing is said.
    """

    name: str
    type: pa.DataType
    comment: str
    required: bool = False
    personal: bool = False
    references: str = ""
    json: bool = False
    made_from: str = "payload"
    path: tuple[str, ...] = ()
    part: Part = Part.VALUE

    @property
    def source(self) -> tuple[str, ...]:
        """The keys that lead to the value."""
        return self.path or (self.name,)


@dataclass(frozen=True)
class Table:
    """One table. `key`: columns that together identify a row. `indexes`: columns by which people look rows up.

    `entries`: the key of a list in the record, whose entries are the rows; empty if each record is a row. `plain`: the column that takes an
    entry that is no object.
    """

    name: str
    comment: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    indexes: tuple[tuple[str, ...], ...] = ()
    entries: str = ""
    plain: str = ""

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema, with each comment in its field's metadata."""
        return pa.schema(
            [
                pa.field(column.name, column.type, nullable=not column.required, metadata=_metadata(column))
                for column in self.columns
            ],
            metadata={"comment": self.comment},
        )

    @property
    def impersonal(self) -> Table:
        """The table without its personal columns."""
        return replace(self, columns=tuple(column for column in self.columns if not column.personal))


def _metadata(column: Column) -> dict[bytes | str, bytes | str]:
    return {"comment": column.comment, **({"personal": "true"} if column.personal else {})}

"""The Arrow schema of a library's publications, as a person would get it: inferred from the first of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def learned_schema(records: list[dict[str, Any]]) -> pa.Schema:
    """The inferred schema; a field that was empty in all of them is text."""
    inferred = pa.Table.from_pylist(records).schema
    return pa.schema([field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in inferred])

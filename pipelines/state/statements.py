"""Turns our statements, which have `?` or `:name` for values, into those of psycopg."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pipelines.state.store import Values

_MARK = re.compile(r"\?|:([a-z_]+)|%")
"""A place for a value, or a character that psycopg would take for one."""


@lru_cache(maxsize=512)
def for_postgres(statement: str) -> str:
    """Returns a statement with psycopg's marks. Our statements have no `?`, `:` or quotation with them but for values."""
    return _MARK.sub(lambda mark: f"%({mark[1]})s" if mark[1] else "%s" if mark[0] == "?" else "%%", statement)


def values_for_postgres(values: Values) -> Any:
    """Returns values that Postgres takes: a text has no NUL there, and an enumeration's member is its text."""
    if isinstance(values, Mapping):
        return {name: _value(value) for name, value in values.items()}
    return [_value(value) for value in values]


def _value(value: Any) -> Any:
    return str(value).replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value

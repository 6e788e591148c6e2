"""The resources of version 3 as the sandbox declares them: what a shape is made from."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.endpoints import Schema
from sandbox.state.records import TABLES
from sandbox.v3 import V3


@dataclass(frozen=True, slots=True)
class NativeField:
    """``shown``, ``create`` and ``change`` are its schemas in records and payloads; None where it does not occur.

    ``reference`` is the resource whose ids it has.
    """

    name: str
    shown: Schema | None
    create: Schema | None
    change: Schema | None
    reference: str | None

    @property
    def any_schema(self) -> Schema:
        """The schema that says what kind of value it is."""
        return self.shown or self.create or self.change or {}

    @property
    def is_list(self) -> bool:
        """Whether its value is a list."""
        return self.any_schema.get("type") == "array"


@dataclass(frozen=True, slots=True)
class NativeResource:
    """``record``, ``create`` and ``change`` are the names of its schemas, ``defaults`` values of a record that a payload leaves out."""

    name: str
    record: str
    create: str
    change: str
    fields: Mapping[str, NativeField]
    defaults: Mapping[str, Any]

    @property
    def listing(self) -> str:
        """The name of the schema of a page."""
        return f"{self.record}List"

    def filled(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the values of a new record, also those that only the state needs."""
        missing = {name: value for name, value in self.defaults.items() if name not in values}
        if self.name == "users" and "email" not in values:
            missing["email"] = f"{secrets.token_hex(8)}@invented.example"
        return {**missing, **values}


_RECORDS = {
    "publications": "Publication",
    "users": "User",
    "hard_copies": "HardCopy",
    "locations": "Location",
    "collections": "Collection",
    "authorities": "Authority",
    "tasks": "Task",
}
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "users": {"name": "Unnamed"},
    "locations": {"name": "Unnamed"},
    "collections": {"name": "Unnamed"},
    "authorities": {"name": "Unnamed", "kind": "person"},
    "tasks": {"title": "Unnamed"},
}
_REFERENCES = {table.name: table.references for table in TABLES}


def _resource(name: str, record: str) -> NativeResource:
    create, change = f"{record}Create", f"{record}{'Update' if name == 'publications' else 'Change'}"
    shown, created, changed = (V3.schemas[each]["properties"] for each in (record, create, change))
    fields = {
        each: NativeField(
            each, shown.get(each), created.get(each), changed.get(each), _REFERENCES.get(name, {}).get(each)
        )
        for each in (*shown, *changed)
        if each != "id"
    }
    return NativeResource(name, record, create, change, fields, _DEFAULTS.get(name, {}))


RESOURCES: Mapping[str, NativeResource] = {name: _resource(name, record) for name, record in _RECORDS.items()}

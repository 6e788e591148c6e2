"""Other shapes as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.endpoints import Schema
from sandbox.shapes.native import NativeField, NativeResource


@dataclass(frozen=True, slots=True)
class FieldShape:
    """A field of a resource. ``native``: the sandbox's own field that it shows; None for one that is stored as it is sent."""

    name: str
    native: NativeField | None
    form: str = "plain"
    member: str = ""
    write_as: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    schema: Schema = field(default_factory=dict)
    seed: tuple[Any, ...] = ()
    required: bool = False
    read_only: bool = False

    @property
    def sent_name(self) -> str:
        """Its name in payloads."""
        return self.write_as or self.name

    def seeded(self, number: int) -> Any:
        """Returns the value of a record in which nobody has set it."""
        return self.seed[(number - 1) % len(self.seed)] if self.seed else None


@dataclass(frozen=True, slots=True)
class MergeShape:
    """Another merge: its address and the name of the id in its payload."""

    path: str | None = None
    method: str | None = None
    field: str = "into_id"


@dataclass(frozen=True, slots=True)
class ResourceShape:
    """A resource. ``wrapped``: the name around payloads, or empty. ``replaces``: whether a change empties what it lacks.

    ``status``: that of creates; None for the usual one.
    """

    native: NativeResource
    fields: tuple[FieldShape, ...]
    wrapped: str = ""
    verb: str = "PATCH"
    replaces: bool = False
    answer: str = "record"
    status: int | None = None
    merge: MergeShape | None = None


@dataclass(frozen=True, slots=True)
class Shapes:
    """The shapes of a tenant. ``text`` is a description to serve literally; ``lies`` are wrong schemas in a true one."""

    resources: Mapping[str, ResourceShape]
    missing: bool
    text: str | None
    lies: Mapping[str, Mapping[str, Schema | None]]

"""The fields of a library's resources, for `describe`: in its records, in its own description, and in Bookferry's tables.

The records are those of the newest snapshot; of a resource that it lacks, one page of the service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from pipelines.doctor.look import Look
from pipelines.inventory import NOT_LISTED, RESOURCES
from pipelines.records.residue import IGNORED
from pipelines.records.shapes.observation import ANY_KEY, OTHERS, FieldShape, Observer, RecordShape
from pipelines.records.tables.observed_columns import united
from pipelines.records.tables.publication_fields import IDENTIFIER_FIELDS, IDENTIFIER_LIST, PUBLICATION_KEYS
from pipelines.records.tables.registry import STAGED
from pipelines.shapes.model import FieldSchema, ResourceSchema
from pipelines.store.snapshots.snapshots import Snapshot
from pipelines.version import VERSION

_KNOWN = PUBLICATION_KEYS | {*IDENTIFIER_FIELDS, IDENTIFIER_LIST}

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
"""A name that a programmer gave."""

COMMON = 0.1
"""Share of the objects that have a key, from which it counts as a name in a file for others. Keys of a map may be values, such as names."""

_SAFE_HEADERS = re.compile(
    r"(?:accept|allow|content|server|date|etag|link|vary|via|cache|age|x-[a-z-]{1,40}|strict|transfer)[a-z-]*"
)


class DescribedField(NamedTuple):
    """One field of a resource."""

    field: str
    records: str
    """What the records have: kinds and share; empty if none has it."""
    description: str
    """What the description says; empty if it does not name the field."""
    bookferry: str
    """Where Bookferry keeps it."""


@dataclass(frozen=True)
class DescribedResource:
    """What is known of one resource."""

    resource: str
    shape: RecordShape
    source: str
    """Where the records come from, in words; empty if none were seen."""
    schema: ResourceSchema
    status: int | None = None
    """The HTTP status of its list, where that was asked for."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Path → observed column."""

    def fields(self) -> Iterator[DescribedField]:
        """Yield the fields, those of the records first."""
        seen = set[str]()
        for path, shape in self.shape.paths():
            if not {*path} & ({OTHERS} | IGNORED):
                name = ".".join(path)
                seen.add(name)
                yield DescribedField(name, _in_records(shape, self.shape), self._described(path), self._kept(path))
        for name in {**self.schema.record, **(self.schema.create.fields if self.schema.create else {})}:
            if name not in seen:
                yield DescribedField(name, "", self._described((name,)), "")

    def _kept(self, path: tuple[str, ...]) -> str:
        """Where Bookferry keeps a field."""
        first, *lists = STAGED[self.resource]
        if len(path) == 1 and path[0] in {column.name for column in first.columns}:
            return f"column {path[0]}"
        for table in lists:
            if path == (table.entries,):
                return f"table {table.name}"
        if self.resource == "publications":
            return "tables" if path[0] in _KNOWN else "residue"
        name = self.columns.get(".".join(path))
        return f"column {name}, observed" if name else ""

    def _described(self, path: tuple[str, ...]) -> str:
        schema: FieldSchema | None = FieldSchema(members=self.schema.record)
        for name in path:
            schema = _members(schema).get(name) if schema is not None else None
        text = _schema_text(schema) if schema is not None else ""
        if len(path) > 1 or self.schema.create is None:
            return text
        written = self.schema.create.fields.get(path[0])
        if written is None:
            return f"{text}; not written" if text else ""
        return f"{text or _schema_text(written)}; {'needed' if path[0] in self.schema.create.required else 'written'}"


def _members(schema: FieldSchema) -> dict[str, FieldSchema]:
    return schema.members or (schema.entries.members if schema.entries else {})


def _in_records(field_shape: FieldShape, shape: RecordShape) -> str:
    kinds = " or ".join(sorted(field_shape.kinds)) or "always empty"
    return f"{kinds}, {field_shape.seen:,} of {shape.records:,}" if field_shape.seen != shape.records else kinds


def _schema_text(schema: FieldSchema) -> str:
    kinds = " or ".join(kind for kind in schema.types if kind != "null") or "any"
    form = f" ({schema.format})" if schema.format else ""
    choices = f": {', '.join(schema.choices[:6])}" if schema.choices else ""
    return f"{kinds}{form}{choices}{', read only' if schema.read_only else ''}"


def describe(look: Look) -> list[DescribedResource]:
    """Every resource, from the newest snapshot that has records of it, else from the library. Raises if nothing at all can be learned."""
    look.data.prepare()
    library = look.chosen.base_url, look.api
    snapshots = [
        snapshot
        for snapshot in look.data.snapshots(look.tenant)
        if (snapshot.manifest.base_url, snapshot.manifest.api) == library
    ]
    described = [_described(look, resource, snapshots) for resource in RESOURCES]
    if look.description.problem and look.trouble is not None and not any(resource.source for resource in described):
        raise look.trouble
    return described


def _described(look: Look, resource: str, snapshots: Sequence[Snapshot]) -> DescribedResource:
    schema = look.description.resources.get(resource, ResourceSchema())
    observed = united(column for snapshot in snapshots for column in snapshot.manifest.observed.get(resource, ()))
    columns = {".".join(column.path): column.name for column in observed}
    for snapshot in reversed(snapshots):
        shape = snapshot.manifest.shapes.get(resource, RecordShape())
        if shape.records:
            return DescribedResource(resource, shape, f"snapshot {snapshot.name}", schema, columns=columns)
    answer = look.list_of(resource) if (look.api, resource) not in NOT_LISTED else None
    if answer is None or answer.records is None:
        return DescribedResource(resource, RecordShape(), "", schema, None if answer is None else int(answer.status))
    observer = Observer()
    observer.observe(answer.records)
    total = answer.paging.total if answer.paging is not None else None
    observer.shape.sampled = total is None or total > observer.shape.records
    return DescribedResource(resource, observer.shape, "one page of the service", schema, int(answer.status), columns)


def public_shapes(look: Look, resources: Sequence[DescribedResource]) -> dict[str, Any]:
    """What may be given to others: shapes, counts and names of headers; no value of a record, no name, no address, no secret.

    A key that few objects have may be a value, such as the name of a person; such keys are counted together.
    """
    headers = {name.lower() for name in look.first.response.headers} if look.first is not None else ()
    return {
        "tool": f"bookferry {VERSION}",
        "api": look.api,
        "description": {
            "read": not look.description.problem,
            "notes": look.description.notes,
            "operations": look.description.operations,
        },
        "headers": sorted(name for name in headers if _SAFE_HEADERS.fullmatch(name)),
        "resources": {
            described.resource: {
                "status": described.status,
                "records": described.shape.records,
                "sampled": described.shape.sampled,
                "fields": _public(described.shape.fields, described.shape.records, described.schema.record),
                "create": described.schema.create,
                "change": described.schema.change,
                "record": described.schema.record,
            }
            for described in resources
        },
    }


def _public(fields: dict[str, FieldShape], objects: int, schemas: dict[str, FieldSchema]) -> dict[str, FieldShape]:
    """The fields whose names are no values: documented, described, or those that many objects have."""
    public = {
        name: _public_shape(shape, schemas.get(name, FieldSchema()))
        for name, shape in fields.items()
        if name in schemas
        or name in _KNOWN
        or name == ANY_KEY
        or (_NAME.fullmatch(name) and objects > 1 and shape.seen >= COMMON * objects)
    }
    hidden = len(fields) - len(public)
    return {**public, **({OTHERS: FieldShape(hidden)} if hidden else {})}


def _public_shape(shape: FieldShape, schema: FieldSchema) -> FieldShape:
    members = _public(shape.members, shape.kinds.get("object", 0), _members(schema))
    entries = shape.entries and _public_shape(shape.entries, schema.entries or FieldSchema())
    return msgspec.structs.replace(shape, members=members, entries=entries)

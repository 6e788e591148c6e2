"""What a library's resources look like: from its own description, from its records, and only then from our assumptions.

The records are those of the newest snapshot; resources that it lacks are looked at in one page of the service.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec

from pipelines.errors import BookferryError
from pipelines.inventory import LIST_PATHS, NOT_LISTED, RESOURCES
from pipelines.publication_fields import IDENTIFIER_FIELDS, IDENTIFIER_LIST, PUBLICATION_KEYS
from pipelines.records.residue import IGNORED
from pipelines.records.shapes.columns import united
from pipelines.records.shapes.observation import ANY_KEY, OTHERS, FieldShape, Observer, RecordShape
from pipelines.records.tables.registry import STAGED
from pipelines.service.client import Waiting, open_client
from pipelines.service.clock import SystemClock
from pipelines.service.probe import Probe, ProbeResponse
from pipelines.service.self_description import ask_description
from pipelines.service_limits import PER_PAGE
from pipelines.settings.settings import Settings
from pipelines.shapes.model import Description, FieldSchema, ResourceSchema
from pipelines.store.snapshots.snapshots import Snapshot
from pipelines.store.stores import open_data
from pipelines.version import VERSION

MOST_REQUESTS = 16
"""Requests to one tenant: its description, and a page of each list."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,49}")
"""A name that a programmer gave."""

COMMON = 0.1
"""Share of the objects that have a key, from which it counts as a name in a file for others. Keys of a map may be values, such as names."""

_SAFE_HEADERS = re.compile(
    r"(?:accept|allow|content|server|date|etag|link|vary|via|cache|age|x-[a-z-]{1,40}|strict|transfer)[a-z-]*"
)


@dataclass(frozen=True)
class LearnedResource:
    """One resource: what is known of it, and from where."""

    resource: str
    shape: RecordShape
    source: str
    """Where the records come from, in words; empty if none were seen."""
    schema: ResourceSchema = field(default_factory=ResourceSchema)
    status: int | None = None
    """The HTTP status of its list, where that was asked for and had no records."""


@dataclass(frozen=True)
class LearnedField:
    """One field of a resource."""

    path: str
    records: str
    """What the records have: kinds and share; empty if none has it."""
    described: str
    """What the description says; empty if it does not name the field."""
    here: str
    """Where Bookferry keeps it."""


@dataclass(frozen=True)
class LearnedLibrary:
    """All that is known of a tenant's shapes."""

    tenant: str
    api: str
    description: Description
    resources: list[LearnedResource]
    headers: list[str]
    """Names of the headers of a page."""
    requests: int
    columns: dict[str, dict[str, str]]
    """Resource → path → observed column."""

    def fields(self, resource: LearnedResource) -> Iterator[LearnedField]:
        """Yield the fields of a resource, those of its records first."""
        schema, seen = resource.schema, set[str]()
        for path, shape in resource.shape.paths():
            if {*path} & ({OTHERS} | IGNORED):
                continue
            name = ".".join(path)
            seen.add(name)
            yield LearnedField(
                name, _in_records(shape, resource.shape), _described(schema, path), self._kept(resource.resource, path)
            )
        for name in {**schema.record, **(schema.create.fields if schema.create else {})}:
            if name not in seen:
                yield LearnedField(name, "", _described(schema, (name,)), "")

    def _kept(self, resource: str, path: tuple[str, ...]) -> str:
        """Where Bookferry keeps a field."""
        first, *lists = STAGED[resource]
        if len(path) == 1 and path[0] in {column.name for column in first.columns}:
            return f"column {path[0]}"
        if len(path) == 1 and (table := next((table for table in lists if table.entries == path[0]), None)) is not None:
            return f"table {table.name}"
        if resource == "publications":
            return "tables" if path[0] in _KNOWN else "residue"
        name = self.columns.get(resource, {}).get(".".join(path))
        return f"column {name}, observed" if name else ""


_KNOWN = PUBLICATION_KEYS | {*IDENTIFIER_FIELDS, IDENTIFIER_LIST}


def learn_library(
    settings: Settings, tenant: str, on_wait: Callable[[Waiting], None] = lambda _: None
) -> LearnedLibrary:
    """Ask the service, and look into the newest snapshot. Raises `BookferryError` where the service cannot be asked at all."""
    data, chosen, clock = open_data(settings), settings.tenant(tenant), SystemClock()
    data.prepare()
    snapshots = [
        snapshot
        for snapshot in data.snapshots(tenant)
        if (snapshot.manifest.base_url, snapshot.manifest.api) == (chosen.base_url, chosen.api)
    ]
    with open_client(settings, tenant, state=data.state, on_wait=on_wait) as client:
        probe = Probe(client, clock, MOST_REQUESTS)
        description = ask_description(probe, chosen.api, clock.now().isoformat(timespec="seconds"))
        headers: list[str] = []
        resources = []
        for resource in RESOURCES:
            schema = description.resources.get(resource, ResourceSchema())
            found = _from_snapshots(resource, schema, snapshots)
            if found is None and (chosen.api, resource) not in NOT_LISTED:
                answer = _page(probe, resource)
                headers = headers or _header_names(answer)
                found = _from_page(resource, schema, answer)
            resources.append(found or LearnedResource(resource, RecordShape(), "", schema))
        columns = {
            resource: {
                ".".join(column.path): column.name
                for column in united(
                    one for snapshot in snapshots for one in snapshot.manifest.observed.get(resource, ())
                )
            }
            for resource in RESOURCES
        }
        return LearnedLibrary(tenant, chosen.api, description, resources, headers, probe.requests, columns)


def _from_snapshots(resource: str, schema: ResourceSchema, snapshots: list[Snapshot]) -> LearnedResource | None:
    for snapshot in reversed(snapshots):
        shape = snapshot.manifest.shapes.get(resource)
        if shape is not None and shape.records:
            return LearnedResource(resource, shape, f"snapshot {snapshot.name}", schema)
    return None


def _page(probe: Probe, resource: str) -> ProbeResponse | None:
    try:
        return probe.ask(LIST_PATHS[resource], page=1, per_page=PER_PAGE)
    except BookferryError:  # one list that cannot be read says nothing about the others
        return None


def _from_page(resource: str, schema: ResourceSchema, answer: ProbeResponse | None) -> LearnedResource:
    if answer is None or answer.records is None:
        status = answer.status if answer is not None else None
        return LearnedResource(resource, RecordShape(), "", schema, status)
    observer = Observer()
    observer.observe(answer.records)
    total = answer.paging.total if answer.paging is not None else None
    observer.shape.sampled = total is None or total > observer.shape.records
    return LearnedResource(resource, observer.shape, "one page of the service", schema, HTTPStatus.OK)


def _header_names(answer: ProbeResponse | None) -> list[str]:
    return [] if answer is None else sorted({name.lower() for name in answer.response.headers})


def _in_records(field_shape: FieldShape, shape: RecordShape) -> str:
    kinds = " or ".join(sorted(field_shape.kinds)) or "always empty"
    return f"{kinds}, {field_shape.seen:,} of {shape.records:,}" if field_shape.seen != shape.records else kinds


def _described(schema: ResourceSchema, path: tuple[str, ...]) -> str:
    fields, found = schema.record, None
    for name in path:
        found = fields.get(name)
        if found is None:
            break
        fields = found.members or (found.entries.members if found.entries else {})
    said = _schema_text(found) if found is not None else ""
    if len(path) > 1 or schema.create is None:
        return said
    written = schema.create.fields.get(path[0])
    if written is None:
        return f"{said}; not written" if said else ""
    needed = "; needed" if path[0] in schema.create.required else "; written"
    return f"{said or _schema_text(written)}{needed}"


def _schema_text(schema: FieldSchema) -> str:
    kinds = " or ".join(kind for kind in schema.types if kind != "null") or "any"
    form = f" ({schema.format})" if schema.format else ""
    choices = f": {', '.join(schema.choices[:6])}" if schema.choices else ""
    return f"{kinds}{form}{choices}{', read only' if schema.read_only else ''}"


def report_document(library: LearnedLibrary) -> dict[str, Any]:
    """What may be given to others: shapes, counts and names of headers; no value of a record, no name, no address, no secret.

    A key that few objects have may be a value, such as the name of a person; such keys are counted together.
    """
    return {
        "tool": f"bookferry {VERSION}",
        "api": library.api,
        "description": {
            "read": not library.description.problem,
            "notes": library.description.notes,
            "operations": {
                name: [parameter for parameter in parameters if _NAME.fullmatch(parameter)]
                for name, parameters in library.description.operations.items()
                if re.fullmatch(r"[A-Z]+ [A-Za-z0-9_/{}.-]{1,150}", name)
            },
        },
        "headers": [name for name in library.headers if _SAFE_HEADERS.fullmatch(name)],
        "resources": {
            one.resource: {
                "status": one.status,
                "records": one.shape.records,
                "sampled": one.shape.sampled,
                "fields": _reported(one.shape.fields, one.shape.records, one.schema.record),
                "create": _reported_payload(one.schema.create),
                "change": _reported_payload(one.schema.change),
                "record": _reported_schemas(one.schema.record),
            }
            for one in library.resources
        },
    }


def _reported(fields: dict[str, FieldShape], objects: int, described: dict[str, FieldSchema]) -> dict[str, Any]:
    """Fields with their counts. A name that only a few objects have is left out, unless the description has it."""
    found: dict[str, Any] = {}
    others = 0
    for name, shape in fields.items():
        is_common = objects < 1 / COMMON or shape.seen >= COMMON * objects
        if name not in described and not (_NAME.fullmatch(name) and is_common and (objects > 1 or name in _KNOWN)):
            others += 1
            continue
        inner = described.get(name, FieldSchema())
        members = inner.members or (inner.entries.members if inner.entries else {})
        found[name] = {
            "seen": shape.seen,
            "kinds": shape.kinds,
            **({"map": True} if ANY_KEY in shape.members else {}),
            **({"members": _reported(shape.members, shape.kinds.get("object", 0), members)} if shape.members else {}),
            **({"entries": _reported_entries(shape.entries, members)} if shape.entries else {}),
        }
    return {**found, **({OTHERS: others} if others else {})}


def _reported_entries(entries: FieldShape, described: dict[str, FieldSchema]) -> dict[str, Any]:
    return {
        "seen": entries.seen,
        "kinds": entries.kinds,
        "members": _reported(entries.members, entries.kinds.get("object", 0), described),
    }


def _reported_payload(payload: Any) -> Any:
    if payload is None:
        return None
    return {**msgspec.to_builtins(payload), "fields": _reported_schemas(payload.fields)}


def _reported_schemas(fields: dict[str, FieldSchema]) -> dict[str, Any]:
    return {name: msgspec.to_builtins(schema) for name, schema in fields.items() if _NAME.fullmatch(name)}

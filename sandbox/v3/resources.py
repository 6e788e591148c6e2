"""Declares a simple resource of version 3: endpoints and schemas are made from its fields.

A list has pages and filters by whole values. A payload has the fields of the schema. An id that is not in the account is 404.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from werkzeug.wrappers import Response

from sandbox.both_versions.listing import LIST_HEADERS, PAGING, list_response
from sandbox.both_versions.paging import requested_page
from sandbox.both_versions.schemas import ID, INTEGER, page_of, payload_object, response_object
from sandbox.endpoints import Call, Endpoint, Parameter, Schema, SuccessResponse, named
from sandbox.errors import record_not_found
from sandbox.responses import created, deleted, json_response
from sandbox.state.drafts import MissingReference
from sandbox.state.records import EXTRA, Records, Row, Table

Render = Callable[[Row, Call], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Resource:
    """``name`` is the schema of a record, ``path`` that of its list, ``noun`` its name for people.

    ``fields``: those of records and payloads; ``required``: those that a create needs; ``read_only``: fields of records only.
    ``defaults``: values of a new record. ``filters``: query parameters and their columns.
    """

    table: Table
    name: str
    noun: str
    path: str
    read: str
    write: str
    fields: Mapping[str, Schema]
    required: tuple[str, ...]
    read_only: Mapping[str, Schema] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    filters: Mapping[str, str] = field(default_factory=dict)

    def schemas(self) -> dict[str, Schema]:
        """Returns the schemas of the record, its list and its payloads."""
        return {
            self.name: response_object({"id": INTEGER, **self.fields, **self.read_only}),
            f"{self.name}List": page_of(self.name),
            f"{self.name}Create": payload_object(self.fields, required=self.required),
            f"{self.name}Change": payload_object(self.fields),
        }

    def records(self, call: Call) -> Records:
        """Returns the table of the tenant's records."""
        return call.tenant.records[self.table.name]

    def payload_values(self, call: Call) -> Row:
        """Returns the known fields of the payload; by variation it may contain others."""
        known = {name: value for name, value in call.payload.items() if name in self.fields}
        return known if call.extra is None else {**known, EXTRA: call.extra}

    def listing(self) -> Endpoint:
        """Returns the endpoint that lists records."""
        return list_endpoint(self, record)

    def creation(self) -> Endpoint:
        """Returns the endpoint that creates a record."""

        def create(call: Call) -> Response:
            row = write_or_404(lambda: self.records(call).create({**self.defaults, **self.payload_values(call)}))
            return created(record(row, call), call.settings.variations)

        return Endpoint(
            method="POST",
            path=self.path,
            summary=f"Create a {self.noun}",
            handler=named(create, f"create_{self.table.name}"),
            payload=f"{self.name}Create",
            success=SuccessResponse(f"The {self.noun}", self.name),
            refusals=(404,),
            scope=self.write,
        )

    def change(self) -> Endpoint:
        """Returns the endpoint that changes a record."""

        def change(call: Call) -> Response:
            row = write_or_404(lambda: self.records(call).change(call.number or 0, self.payload_values(call)))
            return json_response(record(row, call))

        return Endpoint(
            method="PATCH",
            path=f"{self.path}/{{id}}",
            summary=f"Change a {self.noun}",
            handler=named(change, f"change_{self.table.name}"),
            payload=f"{self.name}Change",
            success=SuccessResponse(f"The changed {self.noun}", self.name),
            refusals=(404,),
            scope=self.write,
        )

    def deletion(self) -> Endpoint:
        """Returns the endpoint that deletes a record."""

        def delete(call: Call) -> Response:
            if not self.records(call).remove(call.number or 0):
                raise record_not_found()
            return deleted(call.settings.variations)

        return Endpoint(
            method="DELETE",
            path=f"{self.path}/{{id}}",
            summary=f"Delete a {self.noun}",
            handler=named(delete, f"delete_{self.table.name}"),
            success=SuccessResponse("An empty object", "Nothing"),
            refusals=(404,),
            scope=self.write,
        )

    def merging(self, doc: str) -> Endpoint:
        """Returns the endpoint that merges a record into another."""

        def merge(call: Call) -> Response:
            row = row_or_404(self.records(call).merge(call.number or 0, call.payload["into_id"]))
            return json_response(record(row, call))

        return Endpoint(
            method="PATCH",
            path=f"{self.path}/{{id}}/merge",
            summary=f"Merge a {self.noun} into another",
            doc=doc,
            handler=named(merge, f"merge_{self.table.name}"),
            payload="Merge",
            success=SuccessResponse(f"The other {self.noun}", self.name),
            refusals=(404,),
            scope=self.write,
        )


def record(row: Row, call: Call) -> Row:
    """Returns the record of a row; only other shapes show its further values."""
    return {name: value for name, value in row.items() if name != EXTRA or call.extra is not None}


MERGE = {"Merge": payload_object({"into_id": ID}, required=("into_id",))}


def list_endpoint(resource: Resource, render: Render) -> Endpoint:
    """Returns the endpoint that lists the records of a resource; ``render`` makes the record of a row."""

    def listing(call: Call) -> Response:
        page = requested_page(call.request, call.settings.variations)
        values = {column: call.request.args.get(name, "").strip() for name, column in resource.filters.items()}
        filters = {column: value for column, value in values.items() if value}
        descending = call.settings.variations.order == "descending"
        part = resource.records(call).page(filters, limit=page.size, offset=page.offset, descending=descending)
        return list_response(call, page, [render(row, call) for row in part.rows], part.total)

    return Endpoint(
        method="GET",
        path=resource.path,
        summary=f"List every {resource.noun}",
        doc="Every filter has to match a whole value, whatever its case. Ordered by id.",
        handler=named(listing, f"list_{resource.table.name}"),
        parameters=(*(Parameter(name, f"The whole {name}") for name in resource.filters), *PAGING),
        success=SuccessResponse("A page", f"{resource.name}List", LIST_HEADERS),
        scope=resource.read,
    )


def write_or_404(write: Callable[[], Row | None]) -> Row:
    """Returns the written row; raises 404 for a missing record or reference."""
    try:
        return row_or_404(write())
    except MissingReference:
        raise record_not_found() from None


def row_or_404(row: Row | None) -> Row:
    """Returns the row, or raises 404."""
    if row is None:
        raise record_not_found()
    return row

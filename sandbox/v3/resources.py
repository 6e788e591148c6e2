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
from sandbox.responses import deleted
from sandbox.state.records import Document, MissingReference, Records

Render = Callable[[Document, Call], Document]
MERGE = {"Merge": payload_object({"into_id": ID}, required=("into_id",))}


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """``key`` is its name in the state, ``name`` the schema of a record, ``path`` that of its list, ``noun`` its name for people.

    ``fields``: those of records and payloads; ``required``: those that a create needs; ``read_only``: fields of records only.
    ``defaults``: values of a new record. ``filters``: query parameters and their fields. ``changed`` ends the name of the schema of a
    change.
    """

    key: str
    name: str
    noun: str = ""
    path: str = ""
    read: str = "library:read"
    write: str = "library:write"
    fields: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    read_only: Mapping[str, Schema] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    filters: Mapping[str, str] = field(default_factory=dict)
    changed: str = "Change"

    @property
    def change_schema(self) -> str:
        """The name of the schema of a change."""
        return f"{self.name}{self.changed}"

    def schemas(self) -> dict[str, Schema]:
        """Returns the schemas of the record, its list and its payloads."""
        return {
            self.name: response_object({"id": INTEGER, **self.fields, **self.read_only}),
            f"{self.name}List": page_of(self.name),
            f"{self.name}Create": payload_object(self.fields, required=self.required),
            self.change_schema: payload_object(self.fields),
        }

    def records(self, call: Call) -> Records:
        """Returns the tenant's records."""
        return call.tenant.records[self.key]

    def new(self, values: Document) -> Document:
        """Returns the document of a new record."""
        return {**dict.fromkeys((*self.fields, *self.read_only)), **self.defaults, **values}

    def record(self, document: Document, _call: Call) -> Document:
        """Returns the record of a document, without what no API shows."""
        document.pop("of_author", None)
        return document

    def listing(self, render: Render | None = None) -> Endpoint:
        """Returns the endpoint that lists records; ``render`` makes the record of a document."""
        rendered = render or self.record

        def listing(call: Call) -> Response:
            page = requested_page(call.request, call.settings.variations)
            values = {name: call.request.args.get(parameter, "").strip() for parameter, name in self.filters.items()}
            filters = {name: value for name, value in values.items() if value}
            descending = call.settings.variations.order == "descending"
            part = self.records(call).page(filters, limit=page.size, offset=page.offset, descending=descending)
            return list_response(call, page, [rendered(each, call) for each in part.documents], part.total)

        return Endpoint(
            method="GET",
            path=self.path,
            summary=f"List every {self.noun}",
            doc="Every filter has to match a whole value, whatever its case. Ordered by id.",
            handler=named(listing, f"list_{self.key}"),
            parameters=(*(Parameter(name, f"The whole {name}") for name in self.filters), *PAGING),
            success=SuccessResponse("A page", f"{self.name}List", LIST_HEADERS),
            scope=self.read,
            resource=self.key,
        )

    def creation(self) -> Endpoint:
        """Returns the endpoint that creates a record."""

        def create(call: Call) -> Document | None:
            return self.records(call).create(self.new(call.payload))

        return self._writing(
            "create",
            f"Create a {self.noun}",
            create,
            path=self.path,
            payload=f"{self.name}Create",
            success=f"The {self.noun}",
        )

    def change(self) -> Endpoint:
        """Returns the endpoint that changes a record."""

        def change(call: Call) -> Document | None:
            return self.records(call).change(call.number or 0, call.payload)

        success = f"The changed {self.noun}"
        return self._writing("change", f"Change a {self.noun}", change, payload=self.change_schema, success=success)

    def merging(self, doc: str) -> Endpoint:
        """Returns the endpoint that merges a record into another."""

        def merge(call: Call) -> Document | None:
            return self.records(call).merge(call.number or 0, call.payload["into_id"])

        return self._writing(
            "merge",
            f"Merge a {self.noun} into another",
            merge,
            path=f"{self.path}/{{id}}/merge",
            payload="Merge",
            success=f"The other {self.noun}",
            doc=doc,
        )

    def _writing(
        self,
        action: str,
        summary: str,
        write: Callable[[Call], Document | None],
        *,
        payload: str,
        success: str,
        path: str | None = None,
        doc: str = "",
    ) -> Endpoint:
        """Returns an endpoint that answers the written record; a missing record or reference is 404."""

        def handle(call: Call) -> Response:
            try:
                return self.answer(write(call), call)
            except MissingReference:
                raise record_not_found() from None

        return Endpoint(
            method="POST" if action == "create" else "PATCH",
            path=f"{self.path}/{{id}}" if path is None else path,
            summary=summary,
            doc=doc,
            handler=named(handle, f"{action}_{self.key}"),
            payload=payload,
            success=SuccessResponse(success, self.name),
            refusals=(404,),
            scope=self.write,
            resource=self.key,
            action=action,
        )

    def answer(self, document: Document | None, call: Call) -> Response:
        """Returns the response with the record of a document, or raises 404."""
        if document is None:
            raise record_not_found()
        return call.answer(self.record(document, call))

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
            handler=named(delete, f"delete_{self.key}"),
            success=SuccessResponse("An empty object", "Nothing"),
            refusals=(404,),
            scope=self.write,
        )

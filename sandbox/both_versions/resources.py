"""Declares a resource: its endpoints are made from its actions, and the schemas of a simple one from its fields.

A list has pages and filters by whole values. A payload has the fields of the schema. An id that is not in the account is 404.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from werkzeug.wrappers import Response

from sandbox.both_versions.paging import PAGING, Page, page_headers, requested_page
from sandbox.both_versions.schemas import ID, INTEGER, page_of, payload_object, response_object
from sandbox.endpoints import Call, Endpoint, Parameter, Schema
from sandbox.responses import json_response
from sandbox.state.records import Document, DocumentPage, Records

MERGE = {"Merge": payload_object({"into_id": ID}, required=("into_id",))}

# Action → method, path below that of the list, and summary
_ACTIONS = {
    "list": ("GET", "", "List every {}"),
    "create": ("POST", "", "Create a {}"),
    "get": ("GET", "/{id}", "One {}"),
    "change": ("PATCH", "/{id}", "Change a {}"),
    "delete": ("DELETE", "/{id}", "Delete a {}"),
    "merge": ("PATCH", "/{id}/merge", "Merge a {} into another"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """``key`` is its name in the state, ``name`` the schema of a record, ``path`` that of its list, ``noun`` its name for people.

    ``fields``: those of records and payloads; ``required``: those that a create needs; ``read_only``: fields of records only.
    ``defaults``: values of a new record. ``filters``: query parameters and their fields. ``docs``: what the description says about an
    action. ``deprecated``: what every response of these endpoints announces.
    """

    key: str
    name: str
    noun: str
    path: str
    actions: tuple[str, ...]
    read: str = "library:read"
    write: str = "library:write"
    fields: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    read_only: Mapping[str, Schema] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    filters: Mapping[str, str] = field(default_factory=dict)
    docs: Mapping[str, str] = field(default_factory=dict)
    deprecated: tuple[str, ...] = ()

    def schemas(self) -> dict[str, Schema]:
        """Returns the schemas of the record, its list and its payloads."""
        return {
            self.name: response_object({"id": INTEGER, **self.fields, **self.read_only}),
            f"{self.name}List": page_of(self.name),
            f"{self.name}Create": payload_object(self.fields, required=self.required),
            f"{self.name}Change": payload_object(self.fields),
        }

    def endpoints(self) -> Iterator[Endpoint]:
        """Yields the endpoints of its actions."""
        payloads = {"create": f"{self.name}Create", "change": f"{self.name}Change", "merge": "Merge"}
        for action in self.actions:
            method, rest, summary = _ACTIONS[action]
            yield Endpoint(
                method=method,
                path=f"{self.path}{rest}",
                summary=summary.format(self.noun),
                doc=self.docs.get(action, ""),
                handler=getattr(self, action),
                parameters=self.parameters() if action == "list" else (),
                payload=payloads.get(action),
                answer={"list": f"{self.name}List", "delete": "Nothing"}.get(action, self.name),
                scope=self.read if method == "GET" else self.write,
                resource=self.key,
                action=action,
                deprecated=self.deprecated if action != "delete" else (),
            )

    def parameters(self) -> tuple[Parameter, ...]:
        """Returns the query parameters of its list."""
        return *(Parameter(name, f"The whole {name}, whatever its case") for name in self.filters), *PAGING

    def records(self, call: Call) -> Records:
        """Returns the tenant's records."""
        return call.tenant.records[self.key]

    def new(self, values: Document) -> Document:
        """Returns the document of a new record."""
        return {**dict.fromkeys((*self.fields, *self.read_only)), **self.defaults, **values}

    def sent(self, call: Call) -> Document:
        """Returns the payload as it is stored."""
        return dict(call.payload)

    def record(self, document: Document, call: Call) -> Document:  # noqa: ARG002  # other resources need the call
        """Returns the record of a document, without what no API shows."""
        document.pop("of_author", None)
        return document

    def list(self, call: Call) -> Response:
        """Answers a page of records."""
        page = requested_page(call.request, call.settings.variations)
        matches = self.select(call, page, descending=call.settings.variations.order == "descending")
        return list_response(call, page, [self.record(document, call) for document in matches.documents], matches.total)

    def select(self, call: Call, page: Page, *, descending: bool) -> DocumentPage:
        """Returns the documents of a page."""
        values = {name: call.request.args.get(parameter, "").strip() for parameter, name in self.filters.items()}
        filters = {name: value for name, value in values.items() if value}
        return self.records(call).page(filters, limit=page.size, offset=page.offset, descending=descending)

    def get(self, call: Call) -> Response:
        """Answers a record."""
        return self.answer(self.records(call).get(call.number), call)

    def create(self, call: Call) -> Response:
        """Creates a record."""
        return self.answer(self.records(call).create(self.new(self.sent(call))), call)

    def change(self, call: Call) -> Response:
        """Changes a record."""
        return self.answer(self.records(call).change(call.number, self.sent(call)), call)

    def merge(self, call: Call) -> Response:
        """Merges a record into another, which is the answer."""
        return self.answer(self.records(call).merge(call.number, call.payload["into_id"]), call)

    def delete(self, call: Call) -> Response:
        """Deletes a record."""
        self.records(call).remove(call.number)
        return json_response({})

    def answer(self, document: Document, call: Call) -> Response:
        """Returns the response with the record of a document."""
        return call.answer(self.record(document, call))


def list_response(call: Call, page: Page, records: Sequence[Document], total: int) -> Response:
    """Returns ``{"records": [...]}`` with the headers of a page; the backup list is by variation the array alone."""
    variations, shown = call.settings.variations, call.shown(records)
    bare = call.endpoint.path.endswith("/all") and variations.all_endpoint == "bare"
    headers = page_headers(call.request, page, total, variations)
    return json_response(shown if bare else {"records": shown}, headers=headers)

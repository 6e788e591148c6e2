"""Lists of other records that each record of a resource has at an address of its own, under any name (``lists`` of a shape)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from werkzeug.wrappers import Response

from sandbox.both_versions.paging import PAGING, requested_page
from sandbox.both_versions.resources import Resource, list_response
from sandbox.both_versions.schemas import ID, INTEGER, TEXT_OR_NULL, page_of, payload_object, response_object
from sandbox.endpoints import Call, Endpoint, Schema
from sandbox.errors import record_not_found
from sandbox.responses import json_response
from sandbox.state.records import EXTRA, Document
from sandbox.validation import one_of

_FIRST_LINK = 9000


@dataclass(frozen=True, slots=True)
class RecordList:
    """One list: ``GET /tasks/{id}/assignees``, and a POST with an id under ``key``. ``of``: the resource of its records.

    ``entries``: they are ``records``, with id and name; or each has an id of its own, and that of its record under ``key`` (``links``) or
    in an object (``objects``).
    """

    name: str
    of: str = ""
    key: str = "id"
    entries: str = one_of("records", "links", "objects")
    added: bool = True

    def schemas(self, resource: Resource) -> dict[str, Schema]:
        """Returns the schemas of an entry, of a page and of the payload."""
        entry = f"{resource.name}_{self.name}"
        members = {
            "records": {"name": TEXT_OR_NULL},
            "links": {self.key: ID},
            "objects": {self.key.removesuffix("_id"): response_object({"id": ID})},
        }
        return {
            entry: response_object({"id": INTEGER, **members[self.entries]}),
            f"{entry}List": page_of(entry),
            f"{entry}Create": payload_object({self.key: ID}, required=(self.key,)),
        }

    def endpoints(self, resource: Resource) -> Iterator[Endpoint]:
        """Yields the endpoints of the list."""
        entry, path = f"{resource.name}_{self.name}", f"{resource.path}/{{id}}/{self.name}"

        def numbers(call: Call) -> list[int]:
            return list((resource.records(call).get(call.number).get(EXTRA) or {}).get(self.name, ()))

        def shown(call: Call, ids: list[int]) -> list[Document]:
            if self.entries == "links":
                return [{"id": _FIRST_LINK + number, self.key: number} for number in ids]
            if self.entries == "objects":
                return [{"id": _FIRST_LINK + number, self.key.removesuffix("_id"): {"id": number}} for number in ids]
            names = self._names(call, ids)
            return [{"id": number, "name": names[number]} for number in ids]

        def show(call: Call) -> Response:
            ids, page = numbers(call), requested_page(call.request, call.settings.variations)
            return list_response(call, page, shown(call, ids[page.offset : page.offset + page.size]), len(ids))

        def add(call: Call) -> Response:
            ids, number = numbers(call), call.payload[self.key]
            if number not in self._names(call, [number]):
                raise record_not_found()
            resource.records(call).change(call.number, {EXTRA: {self.name: [*ids, number]}})
            return json_response(shown(call, [number])[0])

        yield Endpoint(
            "GET",
            path,
            f"List the {self.name} of a {resource.noun}",
            show,
            parameters=PAGING,
            answer=f"{entry}List",
            scope=resource.read,
            action="list",
        )
        if self.added:
            yield Endpoint(
                "POST",
                path,
                f"Add to the {self.name} of a {resource.noun}",
                add,
                payload=f"{entry}Create",
                answer=entry,
                scope=resource.write,
            )

    def _names(self, call: Call, numbers: list[int]) -> dict[int, str]:
        if self.of == "publications":
            return dict(call.tenant.publications.titles(numbers))
        return call.tenant.records[self.of].texts(numbers)

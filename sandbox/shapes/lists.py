"""Lists of other records that each record of a resource has at an address of its own, under any name (``lists`` of a shape)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

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
    """One list: ``GET /tasks/{id}/assignees``, a POST with an id under ``key`` if ids are ``added``, and a DELETE if they are ``removed``.

    ``of``: the resource of its records. ``entries``: they are ``records``, with id and name or title; or each has an id of its own, and
    that of its record under ``key`` (``links``) or in an object (``objects``). ``kept_in``: the sandbox's own field that has the ids.
    ``beside``: the name of a text that each entry has, too, which no POST takes.
    """

    name: str
    of: str = ""
    key: str = "id"
    entries: str = one_of("records", "links", "objects")
    added: bool = True
    removed: bool = False
    kept_in: str = ""
    beside: str = ""

    @property
    def _text(self) -> str:
        return "title" if self.of == "publications" else "name"

    def schemas(self, resource: Resource) -> dict[str, Schema]:
        """Returns the schemas of an entry, of a page and of the payload."""
        entry = f"{resource.name}_{self.name}"
        members = {
            "records": {self._text: TEXT_OR_NULL},
            "links": {self.key: ID},
            "objects": {self.key.removesuffix("_id"): response_object({"id": ID})},
        }
        return {
            entry: response_object(
                {"id": INTEGER, **members[self.entries], **dict.fromkeys(self._beside(0), TEXT_OR_NULL)}
            ),
            f"{entry}List": page_of(entry),
            f"{entry}Create": payload_object({self.key: ID}, required=(self.key,)),
        }

    def endpoints(self, resource: Resource) -> Iterator[Endpoint]:
        """Yields the endpoints of the list."""
        entry, path = f"{resource.name}_{self.name}", f"{resource.path}/{{id}}/{self.name}"
        yield Endpoint(
            "GET",
            path,
            f"List the {self.name} of a {resource.noun}",
            partial(self._show, resource),
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
                partial(self._add, resource),
                payload=f"{entry}Create",
                answer=entry,
                scope=resource.write,
            )
        if self.removed:
            yield Endpoint(
                "DELETE",
                f"{path}/{{member_id}}",
                f"Remove from the {self.name} of a {resource.noun}",
                partial(self._remove, resource),
                scope=resource.write,
                action="delete",
            )

    def _numbers(self, resource: Resource, call: Call) -> list[int]:
        record = resource.records(call).get(call.number)
        return list(record[self.kept_in] if self.kept_in else (record.get(EXTRA) or {}).get(self.name, ()))

    def _keep(self, resource: Resource, call: Call, ids: list[int]) -> None:
        values = {self.kept_in: ids} if self.kept_in else {EXTRA: {self.name: ids}}
        resource.records(call).change(call.number, values)

    def _shown(self, call: Call, ids: list[int]) -> list[Document]:
        if self.entries == "records":
            names = self._names(call, ids)
            return [{"id": number, self._text: names[number], **self._beside(number)} for number in ids]
        return [{"id": _FIRST_LINK + number, **self._link(number), **self._beside(number)} for number in ids]

    def _link(self, number: int) -> Document:
        return {self.key: number} if self.entries == "links" else {self.key.removesuffix("_id"): {"id": number}}

    def _beside(self, number: int) -> Document:
        return {self.beside: f"{self.beside} of {number}"} if self.beside else {}

    def _show(self, resource: Resource, call: Call) -> Response:
        ids, page = self._numbers(resource, call), requested_page(call.request, call.settings.variations)
        return list_response(call, page, self._shown(call, ids[page.offset : page.offset + page.size]), len(ids))

    def _add(self, resource: Resource, call: Call) -> Response:
        ids, number = self._numbers(resource, call), call.payload[self.key]
        if number not in self._names(call, [number]):
            raise record_not_found()
        self._keep(resource, call, [*ids, number])
        return json_response(self._shown(call, [number])[0])

    def _remove(self, resource: Resource, call: Call) -> Response:
        ids, number = self._numbers(resource, call), call.number_in("member_id")
        if number not in ids:
            raise record_not_found()
        self._keep(resource, call, [member for member in ids if member != number])
        return json_response({})

    def _names(self, call: Call, numbers: list[int]) -> dict[int, str]:
        if self.of == "publications":
            return call.tenant.publications.titles(numbers)
        return call.tenant.records[self.of].texts(numbers)

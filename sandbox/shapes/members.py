"""The publications of a collection at an address of their own, for a shape whose records do not show them."""

from __future__ import annotations

from werkzeug.wrappers import Response

from sandbox.both_versions.paging import PAGING, requested_page
from sandbox.both_versions.resources import list_response
from sandbox.both_versions.schemas import ID, INTEGER, page_of, payload_object, response_object
from sandbox.endpoints import TEXT, Call, Endpoint
from sandbox.errors import record_not_found
from sandbox.responses import json_response

SCHEMAS = {
    "CollectionMember": response_object({"id": INTEGER, "title": TEXT}),
    "CollectionMemberList": page_of("CollectionMember"),
    "CollectionMemberCreate": payload_object({"publication_id": ID}, required=("publication_id",)),
}


def list_members(call: Call) -> Response:
    """Answers a page of the publications of a collection, in its own order."""
    numbers = call.tenant.records["collections"].get(call.number)["publication_ids"]
    page = requested_page(call.request, call.settings.variations)
    shown = numbers[page.offset : page.offset + page.size]
    titles = call.tenant.publications.titles(shown)
    return list_response(call, page, [{"id": number, "title": titles[number]} for number in shown], len(numbers))


def add_member(call: Call) -> Response:
    """Adds a publication to the end of a collection, also one that it has."""
    collections, number = call.tenant.records["collections"], call.payload["publication_id"]
    before = collections.get(call.number)["publication_ids"]
    collections.change(call.number, {"publication_ids": [*before, number]})
    return json_response({"id": number, "title": call.tenant.publications.titles([number])[number]})


def remove_member(call: Call) -> Response:
    """Removes a publication from a collection."""
    collections, number = call.tenant.records["collections"], call.number_in("member_id")
    before = collections.get(call.number)["publication_ids"]
    if number not in before:
        raise record_not_found()
    collections.change(call.number, {"publication_ids": [member for member in before if member != number]})
    return json_response({})


LISTING = Endpoint(
    method="GET",
    path="/collections/{id}/publications",
    summary="List the publications of a collection",
    handler=list_members,
    parameters=PAGING,
    answer="CollectionMemberList",
    scope="library:read",
    action="list",
)

ADDITION = Endpoint(
    method="POST",
    path="/collections/{id}/publications",
    summary="Add a publication to a collection",
    handler=add_member,
    payload="CollectionMemberCreate",
    answer="CollectionMember",
    scope="library:write",
)

REMOVAL = Endpoint(
    method="DELETE",
    path="/collections/{id}/publications/{member_id}",
    summary="Remove a publication from a collection",
    handler=remove_member,
    scope="library:write",
    action="delete",
)

ENDPOINTS = {"listed": (LISTING,), "added": (LISTING, ADDITION), "removed": (LISTING, ADDITION, REMOVAL)}
"""What ``Shape.members`` says → the endpoints."""

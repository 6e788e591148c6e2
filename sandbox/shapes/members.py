"""The publications of a collection at an address of their own, for a shape whose records do not show them."""

from __future__ import annotations

from werkzeug.wrappers import Response

from sandbox.both_versions.listing import LIST_HEADERS, PAGING, list_response
from sandbox.both_versions.paging import requested_page
from sandbox.both_versions.schemas import ID, INTEGER, page_of, payload_object, response_object
from sandbox.endpoints import TEXT, Call, Endpoint, SuccessResponse
from sandbox.errors import record_not_found
from sandbox.responses import json_response
from sandbox.state.records import MissingReference

SCHEMAS = {
    "CollectionMember": response_object({"id": INTEGER, "title": TEXT}),
    "CollectionMemberList": page_of("CollectionMember"),
    "CollectionMemberCreate": payload_object({"publication_id": ID}, required=("publication_id",)),
}


def list_members(call: Call) -> Response:
    """Answers a page of the publications of a collection, in its own order."""
    collection = call.tenant.records["collections"].get(call.number or 0)
    if collection is None:
        raise record_not_found()
    page, numbers = requested_page(call.request, call.settings.variations), collection["publication_ids"]
    shown = numbers[page.offset : page.offset + page.size]
    titles = call.tenant.publications.titles(shown)
    return list_response(call, page, [{"id": number, "title": titles[number]} for number in shown], len(numbers))


def add_member(call: Call) -> Response:
    """Adds a publication to the end of a collection, also one that it has."""
    collections, number = call.tenant.records["collections"], call.payload["publication_id"]
    collection = collections.get(call.number or 0)
    if collection is None:
        raise record_not_found()
    try:
        collections.change(collection["id"], {"publication_ids": [*collection["publication_ids"], number]})
    except MissingReference:
        raise record_not_found() from None
    return json_response({"id": number, "title": call.tenant.publications.titles([number])[number]})


LISTING = Endpoint(
    method="GET",
    path="/collections/{id}/publications",
    summary="List the publications of a collection",
    handler=list_members,
    parameters=PAGING,
    success=SuccessResponse("A page", "CollectionMemberList", LIST_HEADERS),
    refusals=(404,),
    scope="library:read",
)

ADDITION = Endpoint(
    method="POST",
    path="/collections/{id}/publications",
    summary="Add a publication to a collection",
    handler=add_member,
    payload="CollectionMemberCreate",
    success=SuccessResponse("The publication", "CollectionMember"),
    refusals=(404,),
    scope="library:write",
)

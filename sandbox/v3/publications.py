"""Publications in version 3: lists, single records, and everything that changes them."""

from __future__ import annotations

from werkzeug.wrappers import Response

from sandbox.both_versions import publication_changes
from sandbox.both_versions.listing import (
    LIST_HEADERS,
    PAGING,
    all_publications,
    publication_criteria,
    publication_filters,
    publication_page,
)
from sandbox.endpoints import Call, Endpoint, SuccessResponse
from sandbox.errors import record_not_found
from sandbox.responses import json_response
from sandbox.v3.draft_changes import draft_change
from sandbox.v3.render import publication_record


def list_publications(call: Call) -> Response:
    """The publications that meet every filter of the query."""
    return publication_page(call, publication_criteria(call), publication_record)


def list_all_publications(call: Call) -> Response:
    """The backup list: every publication, page by page, whatever filters the query carries."""
    return all_publications(call, publication_record)


def get_publication(call: Call) -> Response:
    """One publication."""
    found = call.tenant.publications.get(call.number or 0)
    if found is None:
        raise record_not_found()
    return json_response(publication_record(found, call))


def create_publication(call: Call) -> Response:
    """A new publication."""
    return publication_changes.create_publication(call, draft_change(call), publication_record)


def change_publication(call: Call) -> Response:
    """A publication with some fields replaced."""
    publication_changes.find_publication(call)
    return publication_changes.change_publication(call, draft_change(call), publication_record)


def delete_publication(call: Call) -> Response:
    """Remove a publication, with its assets."""
    return publication_changes.remove_publication(call)


_LISTED = SuccessResponse("A page of publications", "PublicationList", LIST_HEADERS)

ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/publications",
        summary="Search publications",
        doc="Every given filter has to match. Ordered by id.",
        handler=list_publications,
        parameters=publication_filters(deprecated=False),
        success=_LISTED,
        scope="library:read",
    ),
    Endpoint(
        method="GET",
        path="/publications/all",
        summary="All publications, for a backup",
        handler=list_all_publications,
        parameters=PAGING,
        refusals=(404,),
        success=_LISTED,
        scope="library:read",
    ),
    Endpoint(
        method="GET",
        path="/publications/{id}",
        summary="One publication",
        handler=get_publication,
        success=SuccessResponse("The publication", "Publication"),
        refusals=(404,),
        scope="library:read",
    ),
    Endpoint(
        method="POST",
        path="/publications",
        summary="Create a publication",
        doc="File content in `assets` or `assets_attributes` needs the scope `assets:write` too. "
        "404 when a contributor, category, organization or uploaded file does not exist.",
        handler=create_publication,
        payload="PublicationCreate",
        success=SuccessResponse("The new publication", "Publication"),
        refusals=(404,),
        scope="library:write",
    ),
    Endpoint(
        method="PATCH",
        path="/publications/{id}",
        summary="Change a publication",
        doc="A field that is given replaces what was there, a list as a whole; files are added. Else like creating.",
        handler=change_publication,
        payload="PublicationUpdate",
        success=SuccessResponse("The publication as it is now", "Publication"),
        refusals=(404,),
        scope="library:write",
    ),
    Endpoint(
        method="DELETE",
        path="/publications/{id}",
        summary="Delete a publication",
        handler=delete_publication,
        success=SuccessResponse("It is gone, and its assets too"),
        refusals=(404,),
        scope="library:write",
    ),
)

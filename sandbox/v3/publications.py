"""Publications in version 3: lists, single records, and everything that changes them."""

from __future__ import annotations

from werkzeug.wrappers import Response

from sandbox.answers import json_response
from sandbox.both_versions import changes
from sandbox.both_versions.listing import (
    LIST_HEADERS,
    PAGING,
    all_publications,
    publication_criteria,
    publication_filters,
    publication_page,
)
from sandbox.endpoints import Answer, Call, Endpoint
from sandbox.errors import record_not_found
from sandbox.v3.changes import filling
from sandbox.v3.render import publication


def list_publications(call: Call) -> Response:
    """The publications that meet every filter of the query."""
    return publication_page(call, publication_criteria(call), publication)


def list_all_publications(call: Call) -> Response:
    """The backup list: every publication, page by page, whatever filters the query carries."""
    return all_publications(call, publication)


def get_publication(call: Call) -> Response:
    """One publication."""
    found = call.tenant.publications.get(call.number or 0)
    if found is None:
        raise record_not_found()
    return json_response(publication(found, call))


def create_publication(call: Call) -> Response:
    """A new publication."""
    return changes.create_publication(call, filling(call), publication)


def change_publication(call: Call) -> Response:
    """A publication with some fields replaced."""
    changes.find_publication(call)
    return changes.change_publication(call, filling(call), publication)


def delete_publication(call: Call) -> Response:
    """Remove a publication, with its assets."""
    return changes.remove_publication(call)


_LISTED = Answer("A page of publications", "PublicationList", LIST_HEADERS)

ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/publications",
        summary="Search publications",
        doc="Every given filter has to match. Ordered by id.",
        handler=list_publications,
        parameters=publication_filters(deprecated=False),
        answer=_LISTED,
        scope="library:read",
    ),
    Endpoint(
        method="GET",
        path="/publications/all",
        summary="All publications, for a backup",
        handler=list_all_publications,
        parameters=PAGING,
        refusals=(404,),
        answer=_LISTED,
        scope="library:read",
    ),
    Endpoint(
        method="GET",
        path="/publications/{id}",
        summary="One publication",
        handler=get_publication,
        answer=Answer("The publication", "Publication"),
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
        answer=Answer("The new publication", "Publication"),
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
        answer=Answer("The publication as it is now", "Publication"),
        refusals=(404,),
        scope="library:write",
    ),
    Endpoint(
        method="DELETE",
        path="/publications/{id}",
        summary="Delete a publication",
        handler=delete_publication,
        answer=Answer("It is gone, and its assets too"),
        refusals=(404,),
        scope="library:write",
    ),
)

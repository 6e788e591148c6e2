"""Endpoints of publications in version 2."""

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
from sandbox.v2.draft_changes import draft_change
from sandbox.v2.render import publication_record

# Assumption: the only deprecated field that is announced; flat identifiers are announced as parameters
_DEPRECATED_FIELDS = ("import_state",)
_DEPRECATION = {
    "X-API-Deprecation": "Deprecated fields of the response; deprecated parameters and fields of the request"
}


def list_publications(call: Call) -> Response:
    """Lists the publications that match every filter."""
    return publication_page(call, publication_criteria(call), publication_record)


def list_all_publications(call: Call) -> Response:
    """Lists every publication for a backup; it ignores filters."""
    return all_publications(call, publication_record)


def get_publication(call: Call) -> Response:
    """Returns a publication."""
    found = call.tenant.publications.get(call.number or 0)
    if found is None:
        raise record_not_found()
    return json_response(publication_record(found, call))


def create_publication(call: Call) -> Response:
    """Creates a publication."""
    return publication_changes.create_publication(call, draft_change(call), publication_record)


def change_publication(call: Call) -> Response:
    """Changes fields of a publication; adds or removes entries of its lists."""
    publication_changes.find_publication(call)
    return publication_changes.change_publication(call, draft_change(call), publication_record)


def delete_publication(call: Call) -> Response:
    """Deletes a publication and its assets."""
    return publication_changes.remove_publication(call)


_LISTED = SuccessResponse("A page of publications", "PublicationList", LIST_HEADERS | _DEPRECATION)

ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/publications",
        summary="Search publications",
        doc="Every filter has to match. Ordered by id.",
        handler=list_publications,
        parameters=publication_filters(deprecated=True),
        success=_LISTED,
        deprecated_fields=_DEPRECATED_FIELDS,
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
        deprecated_fields=_DEPRECATED_FIELDS,
        scope="library:read",
    ),
    Endpoint(
        method="GET",
        path="/publications/{id}",
        summary="One publication",
        handler=get_publication,
        success=SuccessResponse("The publication", "Publication", _DEPRECATION),
        refusals=(404,),
        deprecated_fields=_DEPRECATED_FIELDS,
        scope="library:read",
    ),
    Endpoint(
        method="POST",
        path="/publications",
        summary="Create a publication",
        doc="404 for an unknown contributor or uploaded file; an unknown category or organization is left out.",
        handler=create_publication,
        payload="PublicationCreate",
        success=SuccessResponse("The new publication", "Publication", _DEPRECATION),
        refusals=(404,),
        deprecated_fields=_DEPRECATED_FIELDS,
        scope="library:write",
    ),
    Endpoint(
        method="PATCH",
        path="/publications/{id}",
        summary="Change a publication",
        doc="Adds entries of authors, categories and assets, and removes those with `_destroy`. The rest is as in a create.",
        handler=change_publication,
        payload="PublicationUpdate",
        success=SuccessResponse("The changed publication", "Publication", _DEPRECATION),
        refusals=(404,),
        deprecated_fields=_DEPRECATED_FIELDS,
        scope="library:write",
    ),
    Endpoint(
        method="DELETE",
        path="/publications/{id}",
        summary="Delete a publication",
        handler=delete_publication,
        success=SuccessResponse("The publication and its assets are deleted"),
        refusals=(404,),
        scope="library:write",
    ),
)

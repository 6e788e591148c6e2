"""Publications in version 2: lists, single records, the backup list of everything, and what changes them."""

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

# Assumption: of an answer's fields only this one is announced; flat identifiers are announced as the parameters they are
_DEPRECATED_FIELDS = ("import_state",)
_DEPRECATION = {"X-API-Deprecation": "Deprecated fields of the answer and deprecated parameters that were used"}


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
    """A publication with some fields replaced, and entries of its lists added or taken away."""
    publication_changes.find_publication(call)
    return publication_changes.change_publication(call, draft_change(call), publication_record)


def delete_publication(call: Call) -> Response:
    """Remove a publication, with its assets."""
    return publication_changes.remove_publication(call)


_LISTED = SuccessResponse("A page of publications", "PublicationList", LIST_HEADERS | _DEPRECATION)

ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/publications",
        summary="Search publications",
        doc="Every given filter has to match. Ordered by id.",
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
        doc="404 when a contributor or an uploaded file does not exist; a category or an organization that does not is left out.",
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
        doc="Entries of authors, categories and assets are added; one that is marked `_destroy` is taken away. Else like creating.",
        handler=change_publication,
        payload="PublicationUpdate",
        success=SuccessResponse("The publication as it is now", "Publication", _DEPRECATION),
        refusals=(404,),
        deprecated_fields=_DEPRECATED_FIELDS,
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

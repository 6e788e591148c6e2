"""Publications: their endpoints, which differ between the versions in the form of records and in how a payload changes a draft."""

from __future__ import annotations

from collections.abc import Callable

from werkzeug.wrappers import Response

from sandbox.both_versions.listing import (
    LIST_HEADERS,
    PAGING,
    Render,
    all_publications,
    publication_criteria,
    publication_filters,
    publication_page,
)
from sandbox.both_versions.publication_changes import DraftChange
from sandbox.endpoints import Call, Endpoint, SuccessResponse, named
from sandbox.errors import record_not_found
from sandbox.responses import deleted
from sandbox.state.records import Document, MissingReference

# Assumption: the only deprecated field that version 2 announces; flat identifiers are announced as parameters
_DEPRECATED_FIELDS = ("import_state",)
_DEPRECATION = {
    "X-API-Deprecation": "Deprecated fields of the response; deprecated parameters and fields of the request"
}


def publication_endpoints(
    render: Render, draft_change: Callable[[Call], DraftChange], *, deprecated: bool, docs: tuple[str, str]
) -> tuple[Endpoint, ...]:
    """Returns the endpoints of a version, which may be the ``deprecated`` one. ``docs``: of a create and a change."""
    headers = _DEPRECATION if deprecated else {}
    create_doc, change_doc = docs

    def list_publications(call: Call) -> Response:
        return publication_page(call, publication_criteria(call), render)

    def list_all_publications(call: Call) -> Response:
        return all_publications(call, render)

    def get_publication(call: Call) -> Response:
        return call.answer(render(_of_path(call), call))

    def create_publication(call: Call) -> Response:
        return call.answer(render(_written(call, None, draft_change(call), skip_missing=deprecated), call))

    def change_publication(call: Call) -> Response:
        number = _of_path(call)["id"]
        return call.answer(render(_written(call, number, draft_change(call), skip_missing=deprecated), call))

    def endpoint(handler: Callable[[Call], Response], method: str, path: str, summary: str, **more: object) -> Endpoint:
        answered = SuccessResponse("A page of publications", "PublicationList", LIST_HEADERS | headers)
        if "success" in more:
            answered = SuccessResponse(str(more.pop("success")), "Publication", headers)
        return Endpoint(
            method=method,
            path=path,
            summary=summary,
            handler=handler,
            success=answered,
            deprecated_fields=_DEPRECATED_FIELDS if deprecated else (),
            scope="library:read" if method == "GET" else "library:write",
            resource="publications",
            **more,  # type: ignore[arg-type]
        )

    return (
        endpoint(
            list_publications,
            "GET",
            "/publications",
            "Search publications",
            doc="Every filter has to match. Ordered by id.",
            parameters=publication_filters(deprecated=deprecated),
        ),
        endpoint(
            list_all_publications,
            "GET",
            "/publications/all",
            "All publications, for a backup",
            parameters=PAGING,
            refusals=(404,),
        ),
        endpoint(
            get_publication, "GET", "/publications/{id}", "One publication", success="The publication", refusals=(404,)
        ),
        endpoint(
            create_publication,
            "POST",
            "/publications",
            "Create a publication",
            doc=create_doc,
            payload="PublicationCreate",
            success="The new publication",
            refusals=(404,),
            action="create",
        ),
        endpoint(
            change_publication,
            "PATCH",
            "/publications/{id}",
            "Change a publication",
            doc=change_doc,
            payload="PublicationUpdate",
            success="The changed publication",
            refusals=(404,),
            action="change",
        ),
        Endpoint(
            method="DELETE",
            path="/publications/{id}",
            summary="Delete a publication",
            handler=named(_delete, "delete_publication"),
            success=SuccessResponse("The publication and its assets are deleted"),
            refusals=(404,),
            scope="library:write",
        ),
    )


def _of_path(call: Call) -> Document:
    """Returns the publication of the path, or raises 404."""
    stored = call.tenant.publications.get(call.number or 0)
    if stored is None:
        raise record_not_found()
    return stored


def _written(call: Call, number: int | None, change: DraftChange, *, skip_missing: bool) -> Document:
    """Returns the created or changed publication; a missing record or reference is 404."""
    publications, manner = call.tenant.publications, call.settings.variations.author_authorities
    try:
        stored = publications.write(number, change, authorities=manner, skip_missing=skip_missing)
    except MissingReference:
        raise record_not_found() from None
    if stored is None:
        raise record_not_found()
    return stored


def _delete(call: Call) -> Response:
    if not call.tenant.publications.remove(call.number or 0):
        raise record_not_found()
    return deleted(call.settings.variations)

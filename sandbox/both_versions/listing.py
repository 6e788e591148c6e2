"""Lists in both versions: filters, pages and the object around the records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from werkzeug.wrappers import Response

from sandbox.both_versions.paging import Page, page_headers, requested_page
from sandbox.endpoints import Call, Parameter
from sandbox.errors import record_not_found
from sandbox.responses import json_response
from sandbox.state.records import Document
from sandbox.state.search import Criteria

SEARCHABLE_IDENTIFIERS = ("doi", "isbn", "issn", "arxiv_id", "pmid")

_WHOLE_NUMBER = {"type": ["integer", "string"]}
PAGING = (
    Parameter(
        "page", "Number of the page, from 1. A value that is no whole number above 0 counts as absent.", _WHOLE_NUMBER
    ),
    Parameter("per_page", "Entries on a page: 25 by default, cut to 50. Read like `page`.", _WHOLE_NUMBER),
)
LIST_HEADERS = {
    "X-Total": "Total number of entries",
    "Link": "Addresses of the first, previous, next and last page",
}

Render = Callable[[Document, Call], dict[str, Any]]


def publication_filters(*, deprecated: bool) -> tuple[Parameter, ...]:
    """Returns the query parameters of a search; ``deprecated``: whether the flat identifiers are."""
    identifiers = (
        Parameter(name, f"The whole stored {name}, without case and outer blanks.", deprecated=deprecated)
        for name in SEARCHABLE_IDENTIFIERS
    )
    return (
        *identifiers,
        Parameter("author", "Words that all occur in the names of the authors"),
        Parameter("category", "The name of a category, whatever its case"),
        Parameter("year", "The year of publication, as YYYY"),
        Parameter("query", "Full text: words that all occur in title, authors, abstract, identifiers or categories"),
        *PAGING,
    )


def publication_criteria(call: Call) -> Criteria:
    """Returns the filters of the query. A filter without a value is ignored."""
    filters = {name: value for name, value in call.request.args.items() if value.strip()}
    return Criteria(
        identifiers={name: filters[name] for name in SEARCHABLE_IDENTIFIERS if name in filters},
        author=filters.get("author", ""),
        category=filters.get("category", ""),
        year=filters.get("year", ""),
        text=filters.get("query", ""),
        partial=call.settings.variations.identifier_search == "contains",
    )


def publication_page(call: Call, criteria: Criteria, render: Render, *, bare: bool = False) -> Response:
    """Returns the requested page of the publications that meet the criteria."""
    page = requested_page(call.request, call.settings.variations)
    descending = call.settings.variations.order == "descending"
    matches = call.tenant.publications.search(criteria, limit=page.size, offset=page.offset, descending=descending)
    return list_response(call, page, [render(each, call) for each in matches.documents], matches.total, bare=bare)


def all_publications(call: Call, render: Render) -> Response:
    """Returns a page of the backup list, which ignores filters; 404 in a version without it."""
    variations = call.settings.variations
    if variations.all_endpoint == "missing" or variations.all_in not in {"both", call.version.name}:
        raise record_not_found()
    return publication_page(call, Criteria(), render, bare=variations.all_endpoint == "bare")


def list_response(
    call: Call, page: Page, records: Sequence[dict[str, Any]], total: int, *, bare: bool = False
) -> Response:
    """Returns ``{"records": [...]}`` with the headers of a page; ``bare`` returns the array alone."""
    headers, shown = page_headers(call.request, page, total, call.settings.variations), call.shown(records)
    return json_response(shown if bare else {"records": shown}, headers=headers)

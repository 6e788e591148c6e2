"""Publications: the versions differ in the form of records and in how a payload changes one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from werkzeug.wrappers import Response

from sandbox.both_versions.files import asset_record, cover_record, stored_file
from sandbox.both_versions.paging import PAGING, Page
from sandbox.both_versions.resources import Resource
from sandbox.endpoints import Call, Endpoint, Parameter
from sandbox.errors import record_not_found
from sandbox.state.records import Document, DocumentPage
from sandbox.state.search import Criteria

SEARCHABLE_IDENTIFIERS = ("doi", "isbn", "issn", "arxiv_id", "pmid")

_TEXTS = ("title", "publishable_type", "published_on", "abstract")
_REFERENCES = ("contributor", "organization")
_FILES = ("assets", "assets_attributes")


class Publications(Resource):
    """The publications of a version, which may be the deprecated one."""

    def parameters(self) -> tuple[Parameter, ...]:
        """Returns the query parameters of a search."""
        deprecated = bool(self.deprecated)
        identifiers = (
            Parameter(name, f"The whole stored {name}, without case and outer blanks.", deprecated=deprecated)
            for name in SEARCHABLE_IDENTIFIERS
        )
        return (
            *identifiers,
            Parameter("author", "Words that all occur in the names of the authors"),
            Parameter("category", "The name of a category, whatever its case"),
            Parameter("year", "The year of publication, as YYYY"),
            Parameter(
                "query", "Full text: words that all occur in title, authors, abstract, identifiers or categories"
            ),
            *PAGING,
        )

    def endpoints(self) -> Iterator[Endpoint]:
        """Yields the endpoints, with that of the backup list."""
        for endpoint in super().endpoints():
            yield endpoint
            if endpoint.action == "list":
                path, summary = f"{self.path}/all", "All publications, for a backup"
                yield replace(
                    endpoint, path=path, summary=summary, handler=self.all, parameters=PAGING, refusals=(404,)
                )

    def all(self, call: Call) -> Response:
        """Answers a page of the backup list, which ignores filters; 404 where there is none."""
        if call.settings.variations.all_endpoint == "missing":
            raise record_not_found()
        return self.list(call)

    def select(self, call: Call, page: Page, *, descending: bool) -> DocumentPage:
        """Returns the publications of a page. A filter without a value is ignored."""
        named = {parameter.name for parameter in call.endpoint.parameters}
        filters = {name: value for name, value in call.request.args.items() if value.strip() and name in named}
        criteria = Criteria(
            identifiers={name: filters[name] for name in SEARCHABLE_IDENTIFIERS if name in filters},
            author=filters.get("author", ""),
            category=filters.get("category", ""),
            year=filters.get("year", ""),
            text=filters.get("query", ""),
        )
        return call.tenant.publications.search(criteria, limit=page.size, offset=page.offset, descending=descending)

    def create(self, call: Call) -> Response:
        """Creates a publication."""
        return self._write(None, call)

    def change(self, call: Call) -> Response:
        """Changes a publication."""
        call.tenant.publications.get(call.number)  # a missing one is refused before its files are stored
        return self._write(call.number, call)

    def _write(self, number: int | None, call: Call) -> Response:
        change, manner = self.edited(call), call.settings.variations.author_authorities
        written = call.tenant.publications.write(number, change, authorities=manner, skip_missing=bool(self.deprecated))
        return self.answer(written, call)

    def edited(self, call: Call) -> Callable[[Document], Document]:
        """Returns how a payload changes a document. It stores the files at once, because that needs a transaction of its own."""
        raise NotImplementedError


def publication_record(stored: Document, call: Call, identifiers: Document, references: Document) -> Document:
    """Returns the record of a publication; the versions differ in its identifiers and references."""
    record: Document = {
        **{name: stored[name] for name in ("id", *_TEXTS, "authors")},
        **identifiers,
        "categories": stored["categories"],
        **references,
        "cover": stored["cover"] and cover_record(stored["cover"], call),
        "assets": [asset_record(asset, call) for asset in stored["assets"]],
    }
    return record | (_further_fields(stored["id"]) if call.settings.variations.extra_fields else {})


def _further_fields(number: int) -> Document:
    """Returns fields that docs/service.md does not know, as a service may have them, for the publication with this id."""
    return {
        "pmcid": f"PMC{number}",
        "language": "en" if number % 2 else None,
        "links": [{"rel": "self", "position": number}],
        "review": {"state": "open", "notes": []},
    }


def common_changes(call: Call) -> Document:
    """Returns the changes that both versions write alike: texts, references and cover, if they are in the payload."""
    changes = {name: call.payload[name] for name in (*_TEXTS, *_REFERENCES) if name in call.payload}
    if "cover" in call.payload:
        changes["cover"] = call.payload["cover"] and stored_file(call.payload["cover"], call)
    return changes


def file_entries(call: Call) -> list[Mapping[str, Any]]:
    """Returns the entries of ``assets`` and ``assets_attributes``; any entry needs ``assets:write``, too."""
    sent = [entry for name in _FILES for entry in call.payload.get(name, ())]
    if sent:
        call.signed_in.require("assets:write")
    return sent


def author(entry: Mapping[str, Any]) -> Document:
    """Returns an author; the default type is person."""
    return {"name": entry["name"], "type": entry.get("type", "person")}

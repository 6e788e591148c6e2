"""A POST with a lost response, in a service that changes the records that it stores (I8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from pipelines.migration.apply.ambiguous_writes import Ambiguous, Lookup, Present
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.resource_types import RESOURCE_TYPES
from pipelines.publication_fields import WRITTEN
from pipelines.records.forms import form_of
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.matching import comparable
from pipelines.service.client import LibraryClient
from tests.service.scripted import Answer, Script, ScriptedServer

SENT = {"title": " A  title\n"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"id": 5, **SENT}, Present),
        ({"id": 5, "title": "A title", "publishable_type": "Book"}, Present),
        ({"id": 5, "title": "A title.", "abstract": "Of another one?"}, Ambiguous),
        ({"id": 5, "title": "Another title"}, type(None)),
    ],
    ids=["as it was sent", "without blanks, and with a kind", "with more than was sent", "another record"],
)
def test_a_created_record_is_found_although_the_service_changed_it(
    *,
    serve: Callable[[Script], ScriptedServer],
    client_for: Callable[..., LibraryClient],
    found: dict[str, Any],
    expected: type,
) -> None:
    """Only the title identifies this record: it is taken where only blanks differ; otherwise a person decides."""
    client = client_for(serve(lambda _request: Answer({"records": [found]})).url)
    compared = comparable(form_of(SENT).fields)
    expected_digests = {name: digest(compared.get(name)) for name in WRITTEN}
    lookup = Lookup(client, STANDARD_KINDS, lambda _resource, ids: set(ids))
    result = lookup.publication(SENT, expected_digests, final=True)
    assert isinstance(result, expected)


COPY = {"publication_id": 7, "barcode": "B 1", "note": "Worn"}


@pytest.mark.parametrize(
    ("found", "first", "final"),
    [
        ({"id": 5, **COPY, "status": None}, Present([{"id": 5, **COPY, "status": None}]), None),
        ({"id": 5, **COPY, "barcode": "b  1", "note": "As new"}, None, Ambiguous([5])),
        ({"id": 5, **COPY, "barcode": "B 2"}, None, None),
        ({"id": 5, "note": "Worn"}, None, None),
    ],
    ids=["as it was sent", "the same barcode", "another barcode", "without a key"],
)
def test_a_record_of_another_resource_is_looked_up_by_its_values_and_its_key(
    *,
    serve: Callable[[Script], ScriptedServer],
    client_for: Callable[..., LibraryClient],
    found: dict[str, Any],
    first: Present | None,
    final: Ambiguous | None,
) -> None:
    """One that differs under the same key may be the one that was sent: it is never sent again without a person."""
    client = client_for(serve(lambda _request: Answer({"records": [found]})).url)
    copies = RESOURCE_TYPES["hard_copies"]
    expected = {name: digest(text) for name, text in copies.compared(COPY).items()}
    lookup = Lookup(client, STANDARD_KINDS, lambda _resource, ids: set(ids))
    assert lookup.other_resource(copies, COPY, expected, final=False) == first
    assert lookup.other_resource(copies, COPY, expected, final=True) == (first or final)
    unnamed = {"note": "Torn"}
    assert lookup.other_resource(copies, unnamed, {"note": digest('"Torn"')}, final=True) is None, "no key, no doubt"


@pytest.mark.parametrize("resource", ["publications", "collections"])
def test_a_record_that_differs_is_no_doubt_once_the_journal_has_it(
    serve: Callable[[Script], ScriptedServer], client_for: Callable[..., LibraryClient], resource: str
) -> None:
    """Another thread created it, and notes its id a moment later: the final lookup waits for that, twice."""
    server = serve(
        lambda _request: Answer({"records": [{"id": 5, "title": "A title.", "name": "A title", "abstract": "x"}]})
    )
    unknown = [{5}, {5}, set[int]()]

    def new_ids(_resource: str, _ids: Iterable[int]) -> set[int]:
        return unknown.pop(0)

    lookup = Lookup(client_for(server.url), STANDARD_KINDS, new_ids)
    if resource == "publications":
        assert lookup.publication(SENT, {"title": "of another text"}, final=True) is None
    else:
        sent = {"name": "A title", "description": "Another one"}
        expected = {name: digest(text) for name, text in RESOURCE_TYPES[resource].compared(sent).items()}
        assert lookup.other_resource(RESOURCE_TYPES[resource], sent, expected, final=True) is None
    assert unknown == []

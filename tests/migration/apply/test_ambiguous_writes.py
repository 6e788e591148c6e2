"""A POST with a lost response, in a service that changes the records that it stores (I8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipelines.migration.apply.ambiguous_writes import Ambiguous, Lookup, Present
from pipelines.migration.model.comparable import digest
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

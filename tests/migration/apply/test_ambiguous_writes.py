"""What a POST made whose answer was lost, in a service that keeps records in a form of its own (I8)."""

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
    ids=["as it was sent", "without blanks, and with a kind", "with more than was sent", "another one"],
)
def test_a_record_that_the_service_keeps_otherwise_is_not_made_twice(
    *,
    serve: Callable[[Script], ScriptedServer],
    client_for: Callable[..., LibraryClient],
    found: dict[str, Any],
    expected: type,
) -> None:
    """A record without identifier and date is told by nothing but its title: taken where only blanks differ, else a person's to judge."""
    client = client_for(serve(lambda _request: Answer({"records": [found]})).url)
    shown = comparable(form_of(SENT).fields)
    wanted = {name: digest(shown.get(name)) for name in WRITTEN}
    lookup = Lookup(client, STANDARD_KINDS, lambda _resource, ids: set(ids), lambda _resource, _moment: set())
    finding = lookup.publication(SENT, wanted, sent_at=client.clock.now())
    assert isinstance(finding, expected)

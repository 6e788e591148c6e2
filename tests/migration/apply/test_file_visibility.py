"""A record without `assets`: it has no files, or the service does not show them.

The documentation does not say whether every response has that field (service.md#not-shown).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipelines.migration.apply.file_visibility import FileVisibility
from pipelines.service.client import LibraryClient
from tests.service.scripted import Answer, Received, Script, ScriptedServer


@pytest.mark.parametrize(
    ("listed", "attached", "expected"),
    [
        ([{"id": 1}, {"id": 2, "assets": []}], {"id": 9}, True),
        ([{"id": 1}], {"id": 9, "assets": [{"id": 3}]}, True),
        ([{"id": 1}, {"id": 2, "assets": None}], {"id": 9}, False),
    ],
    ids=["another record shows some", "the record of a file that was attached shows it", "none does"],
)
def test_a_record_without_assets_has_no_files_where_the_service_shows_any(
    *,
    serve: Callable[[Script], ScriptedServer],
    client_for: Callable[..., LibraryClient],
    listed: list[dict[str, object]],
    attached: dict[str, object],
    expected: bool,
) -> None:
    """I8: otherwise a file with a lost response would wait for a person forever, in a service that leaves out empty lists."""

    def script(request: Received) -> Answer:
        return Answer(attached if request.path.endswith("/9") else {"records": listed})

    server = serve(script)
    visibility = FileVisibility(client_for(server.url), lambda: [9])
    assert visibility.shows_all({"id": 5}) is expected
    requests = len(server.received)
    assert visibility.shows_all({"id": 5}) is expected, "it is asked once"
    assert len(server.received) == requests
    assert visibility.shows_all({"id": 6, "assets": []})
    assert visibility.shows_all({"id": 7})
    assert len(server.received) == requests

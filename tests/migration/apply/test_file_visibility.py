"""What a record without `assets` means: whether every response has that field is not shown (service.md#not-shown)."""

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
def test_no_files_shown_are_no_files_where_the_service_shows_any(
    *,
    serve: Callable[[Script], ScriptedServer],
    client_for: Callable[..., LibraryClient],
    listed: list[dict[str, object]],
    attached: dict[str, object],
    expected: bool,
) -> None:
    """I8: else a file whose answer was lost waits for a person for ever, in a service that leaves out what is empty."""

    def script(request: Received) -> Answer:
        return Answer(attached if request.path.endswith("/9") else {"records": listed})

    server = serve(script)
    shown = FileVisibility(client_for(server.url), lambda: [9])
    assert shown.shows_all({"id": 5}) is expected
    asked = len(server.received)
    assert shown.shows_all({"id": 6, "assets": []})
    assert shown.shows_all({"id": 7})
    assert len(server.received) == asked

"""A PUT replaces a record, so that it is read just before: at its address, else in its list, and never as before an earlier change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, cast

import pytest

from pipelines.migration.apply.target_records import TargetRecords
from pipelines.migration.model.target_reading import RecordListing
from pipelines.service.client import LibraryClient
from pipelines.store.encryption import PersonalKey
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, Received, Script, ScriptedServer


class Library:
    """The authorities of a library, which may have addresses of their own; it counts what is read."""

    def __init__(self, *, has_addresses: bool) -> None:
        self.records = {number: {"id": number, "name": f"Person {number}"} for number in range(1, 9)}
        self.singles = self.lists = 0
        self._has_addresses = has_addresses

    def answer(self, request: Received) -> Answer:
        """One record."""
        self.singles += 1
        record = self.records.get(int(request.path.rpartition("/")[2])) if self._has_addresses else None
        return Answer({"error": {"code": "RecordNotFound"}}, status=404) if record is None else Answer(record)

    @contextmanager
    def listing(self, _resource: str) -> Iterator[RecordListing]:
        """The list as it is now."""
        self.lists += 1
        now = Listed([*self.records.values()])
        yield cast(RecordListing, now)


class Listed:
    """A list that was read."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self.key = PersonalKey(bytes(32))
        self.records: Callable[[], Iterator[Mapping[str, Any]]] = lambda: iter(records)


@pytest.fixture(params=[True, False], ids=["with addresses", "without addresses"])
def library(request: pytest.FixtureRequest) -> Library:
    return Library(has_addresses=request.param)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def records(
    library: Library,
    clock: ManualClock,
    serve: Callable[[Script], ScriptedServer],
    client_for: Callable[..., LibraryClient],
) -> Iterator[TargetRecords]:
    with closing(TargetRecords(client_for(serve(library.answer).url, clock=clock), library.listing)) as target:
        yield target


def test_many_records_cost_a_request_each_or_one_list(library: Library, records: TargetRecords) -> None:
    """Those that are gone, too."""
    assert [records.current("authorities", number) for number in library.records] == [*library.records.values()]
    assert [records.current("authorities", number) for number in range(10, 20)] == [None] * 10
    assert (library.singles, library.lists) in {(18, 0), (1, 1)}


def test_a_record_that_was_written_is_read_again(library: Library, records: TargetRecords) -> None:
    """A second PUT with the record as it was before the first would take that one back."""
    for number in library.records:
        records.current("authorities", number)
    for number, name in ((5, "Changed"), (9, "New")):
        library.records[number] = {"id": number, "name": name}
        records.changed("authorities", number)
    assert [records.current("authorities", number) for number in range(1, 10)] == [*library.records.values()]
    assert records.current("authorities", 10) is None

"""A PUT replaces a record, so that it is read just before: a few singly, many in their list, and never as before an earlier change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, cast

import pytest

from pipelines.migration.apply.request_forms.whole_records import FEW, FRESH_SECONDS, WholeRecords
from pipelines.migration.model.target_reading import TargetListing
from pipelines.service.client import LibraryClient
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
    def listing(self, _resource: str) -> Iterator[TargetListing]:
        """The list as it is now."""
        self.lists += 1
        now = Listed([*self.records.values()])
        yield cast(TargetListing, now)


class Listed:
    """A list that was read."""

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self.rows = len(records)
        self.records: Callable[[], Iterator[Mapping[str, Any]]] = lambda: iter(records)


@pytest.fixture(params=[True, False], ids=["with addresses", "without addresses"])
def library(request: pytest.FixtureRequest) -> Library:
    return Library(has_addresses=request.param)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def whole(
    library: Library,
    clock: ManualClock,
    serve: Callable[[Script], ScriptedServer],
    client_for: Callable[..., LibraryClient],
) -> Iterator[WholeRecords]:
    with closing(WholeRecords(client_for(serve(library.answer).url, clock=clock), library.listing)) as records:
        yield records


def test_many_records_cost_a_few_requests_and_one_list(library: Library, whole: WholeRecords) -> None:
    assert [whole.read("authorities", number) for number in library.records] == [*library.records.values()]
    assert library.singles <= FEW
    assert library.lists == 1


def test_a_record_that_was_changed_is_read_again(library: Library, whole: WholeRecords) -> None:
    """A second PUT with the record as it was before the first would take that one back."""
    for number in library.records:
        whole.read("authorities", number)
    library.records[5] = {"id": 5, "name": "Changed"}
    whole.forget("authorities", 5)
    assert whole.read("authorities", 5) == {"id": 5, "name": "Changed"}
    assert whole.read("authorities", 6) == {"id": 6, "name": "Person 6"}


def test_a_record_that_was_created_since_is_found(library: Library, whole: WholeRecords) -> None:
    for number in library.records:
        whole.read("authorities", number)
    library.records[9] = {"id": 9, "name": "New"}
    assert whole.read("authorities", 9) == {"id": 9, "name": "New"}
    assert whole.read("authorities", 10) is None


def test_a_list_grows_old(library: Library, whole: WholeRecords, clock: ManualClock) -> None:
    for number in library.records:
        whole.read("authorities", number)
    library.records[5] = {"id": 5, "name": "Edited by somebody"}
    clock.sleep(FRESH_SECONDS + 1)
    assert whole.read("authorities", 5) == {"id": 5, "name": "Edited by somebody"}

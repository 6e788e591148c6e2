"""Faults (sandbox/README.md) in process; ``test_process.py`` tests those that need a socket."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from email.utils import parsedate_to_datetime

import pytest

from sandbox.faults import parse_fault
from tests.sandbox.conftest import FakeClock, Service


def add_fault(service: Service, fault: str, **details: object) -> None:
    service.tenant.faults.add(parse_fault({"fault": fault, **details}))


@pytest.mark.long
def test_the_next_n_matching_requests_fail(library: Service) -> None:
    add_fault(library, "status", status=500, times=2, match={"method": "get", "path": "page=3(&|$)"})
    statuses = [library.get(f"/publications?page={page}").status_code for page in (1, 3, 2, 3, 3, 30)]
    assert statuses == [200, 500, 200, 500, 200, 200]


@pytest.mark.parametrize(("retry_after", "header"), [(None, None), (5, "5"), (-7, "-7"), ("soon", "soon")])
def test_a_status_with_or_without_retry_after(library: Service, retry_after: object, header: str | None) -> None:
    add_fault(library, "status", status=429, retry_after=retry_after)
    answer = library.get("/publications")
    assert answer.status_code == 429
    assert answer.json()["error"]["code"] == "FaultOnOrder"
    assert answer.headers.get("Retry-After") == header


def test_retry_after_as_a_date(library: Service, clock: FakeClock) -> None:
    add_fault(library, "status", retry_after="http-date")
    date = parsedate_to_datetime(library.get("/publications").headers["Retry-After"])
    assert date.timestamp() == clock.time + 2


def test_a_reset_leaves_no_answer(library: Service) -> None:
    add_fault(library, "reset")
    with pytest.raises(ConnectionResetError):
        library.get("/publications")
    assert library.get("/publications").status_code == 200


def test_a_body_that_breaks_off(library: Service) -> None:
    add_fault(library, "cut")
    with pytest.raises(ConnectionAbortedError):
        library.get("/publications")


@pytest.mark.parametrize("path", ["/publications", "/publications/1", "/nothing"])
def test_a_body_that_is_no_json(library: Service, path: str) -> None:
    healthy = library.get(path)
    add_fault(library, "garble")
    answer = library.get(path)
    assert answer.status_code == healthy.status_code
    with pytest.raises(json.JSONDecodeError):
        answer.json()


def test_a_request_that_hangs_is_answered_in_the_end(library: Service, clock: FakeClock) -> None:
    add_fault(library, "hang", seconds=120)
    assert library.get("/publications").status_code == 200
    assert clock.slept == [120]


def test_failed_requests_count_too(library: Service) -> None:
    add_fault(library, "reset")
    with pytest.raises(ConnectionResetError):
        library.get("/publications")
    assert library.tenant.counts()["requests"] == 1
    assert [each.status for each in library.tenant.request_log] == [None]


LATE = {"fault": "late", "least_seconds": 20, "seconds": 55, "match": {"method": "POST", "path": "publications$"}}


def create(service: Service) -> int:
    with service.client() as client:
        return client.post("/publications", json={"title": "On tides"}).status_code


def test_a_late_request_is_held_for_a_random_time(make_service: Callable[[int], Service], clock: FakeClock) -> None:
    service = make_service(1)
    add_fault(service, **LATE)
    assert create(service) == 200
    assert [20 <= seconds <= 55 for seconds in clock.slept] == [True]


@pytest.mark.parametrize("answer", ["reset", "status"])
def test_a_late_request_takes_effect_after_another_answer(make_service: Callable[[int], Service], answer: str) -> None:
    """A proxy answers 504, or the connection breaks; the service carries the request out all the same."""
    service = make_service(1)
    before = service.tenant.publications.count()
    add_fault(service, **LATE, answer=answer, status=504)
    if answer == "reset":
        with pytest.raises(ConnectionResetError):
            create(service)
    else:
        assert create(service) == 504
    for thread in [each for each in threading.enumerate() if each.name == "late effect"]:
        thread.join()
    assert service.tenant.publications.count() == before + 1


def test_a_late_request_takes_effect_behind_others(make_service: Callable[[int], Service]) -> None:
    """Right after so many further ones, of the same kind."""
    service = make_service(1)
    before = service.tenant.publications.count()
    add_fault(service, **LATE, answer="status", status=504, behind=2)
    assert [create(service), create(service), service.get("/publications/1").status_code] == [504, 200, 200]
    assert service.tenant.publications.count() == before + 1
    assert create(service) == 200
    assert service.tenant.publications.count() == before + 3


@pytest.mark.long
def test_a_share_of_the_requests_meets_a_fault(library: Service) -> None:
    add_fault(library, "status", status=500, times=1000, share=0.3, seed=7)
    statuses = [library.get("/publications/1").status_code for _ in range(200)]
    assert 40 <= statuses.count(500) <= 80

"""Faults (sandbox/README.md) in process; ``test_process.py`` tests those that need a socket."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from sandbox.faults import parse_fault
from tests.sandbox.conftest import FakeClock, Service


def add_fault(service: Service, fault: str, **details: object) -> None:
    service.tenant.faults.add(parse_fault({"fault": fault, **details}))


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

"""service.md#deprecation: what `X-API-Deprecation` announces, in any form that a service may give it."""

from __future__ import annotations

import time

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.service.http.announcements import MAX_NAMES, Announcements, announced_names

URL = "https://library.example.org/api/v2/assets/17"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["import_state"], {"import_state": ""}),
        (["import_state, doi"], {"import_state": "", "doi": ""}),
        (["import_state", "doi, isbn"], {"import_state": "", "doi": "", "isbn": ""}),
        (["POST /users"], {"POST /users": ""}),
        (["PATCH /users/:id/roles"], {"PATCH /users/:id/roles": ""}),
        (["import_state; sunset=2026-12-31"], {"import_state": "2026-12-31"}),
        (['import_state; sunset="2026-12-31T23:59:59Z", doi'], {"import_state": "2026-12-31", "doi": ""}),
        (['import_state; sunset="Thu, 31 Dec 2026 23:59:59 GMT", doi'], {"import_state": "", "doi": ""}),
        (["doi; until 2027-01-31"], {"doi": "2027-01-31"}),
        (["true"], {"GET /assets/:id": ""}),
        (["This field goes away"], {"This field goes away": ""}),
        (["", " , "], {}),
    ],
)
def test_names_and_days(lines: list[str], expected: dict[str, str]) -> None:
    """service.md#deprecation: names separated by commas, each with its day behind a semicolon, or none."""
    assert announced_names(lines, "GET /assets/:id") == expected


@pytest.mark.long
@given(st.lists(st.text(max_size=80), max_size=3))
def test_any_text_is_read(lines: list[str]) -> None:
    """I13: the header comes from outside; names are short and have no control characters."""
    for name, day in announced_names(lines, "GET /x").items():
        assert len(name) <= 10 * 80 + 1, "an unprintable character is shown as an escape of ten"
        assert name.isprintable()
        assert day == "" or len(day) == 10


def response(*lines: str) -> httpx.Response:
    headers = [("X-API-Deprecation", line) for line in lines]
    return httpx.Response(200, headers=headers, request=httpx.Request("GET", URL))


def test_a_hostile_service_fills_nothing() -> None:
    """I13: a bounded number of names, in bounded time."""
    announcements, started = Announcements(), time.process_time()
    for number in range(300):
        announcements.note(
            response(", ".join(f"name{number}-{position}" for position in range(50)), '"' * 5000, "," * 5000)
        )
    assert len(announcements.days) == MAX_NAMES
    assert time.process_time() - started < 10

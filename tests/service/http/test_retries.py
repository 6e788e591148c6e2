"""I8 and I1: which requests are tried again, when, and for how long."""

from __future__ import annotations

from datetime import timedelta
from email.utils import format_datetime

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import TemporaryError
from pipelines.service.http.retries import MAX_THROTTLED, MAX_TRIES, RetryTransport
from pipelines.service.http.retry_after import DEFAULT_PAUSE, retry_after
from tests.service.manual_clock import MIDNIGHT, ManualClock

URL = "http://library.test/api/v2/publications"

Outcome = httpx.Response | Exception


class Service(httpx.BaseTransport):
    """Responses in order; the last one repeats."""

    def __init__(self, *outcomes: Outcome) -> None:
        self._outcomes = list(outcomes)
        self.tries = 0

    def handle_request(self, _request: httpx.Request) -> httpx.Response:
        """Return the next response."""
        outcome = self._outcomes[min(self.tries, len(self._outcomes) - 1)]
        self.tries += 1
        if isinstance(outcome, Exception):
            raise outcome
        body = httpx.ByteStream(outcome.content)  # not read yet, as it comes from a socket
        return httpx.Response(outcome.status_code, headers=outcome.headers, stream=body, extensions=outcome.extensions)


def answer(status: int = 200, content: bytes = b"[]", **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, headers=named, content=content)


def send(clock: ManualClock, service: Service, method: str = "GET", **options: object) -> httpx.Response:
    return RetryTransport(service, clock=clock, **options).handle_request(httpx.Request(method, URL))  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [408, 425, 500, 502, 503, 504, 520, 524, 599])
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_repeatable_methods_are_repeated(clock: ManualClock, method: str, status: int) -> None:
    """I8: GET, PATCH and DELETE may be repeated."""
    service = Service(answer(status), answer(status), answer(content=b'{"records": []}'))
    response = send(clock, service, method)
    assert (response.status_code, response.content, service.tries) == (200, b'{"records": []}', 3)


@pytest.mark.parametrize(
    "error", [httpx.LocalProtocolError("bad header"), httpx.UnsupportedProtocol("ftp"), RuntimeError("a mistake")]
)
def test_our_own_mistakes_are_not_repeated(clock: ManualClock, error: Exception) -> None:
    """The next try would be the same."""
    service = Service(error)
    with pytest.raises(type(error)):
        send(clock, service)
    assert service.tries == 1


def test_the_waits_become_longer_and_end(clock: ManualClock) -> None:
    """About a minute of trouble, then one message with what was tried, what came back, what to do."""
    retries: list[tuple[str, float]] = []
    service, begun = Service(httpx.ConnectError("refused")), clock.monotonic()
    with pytest.raises(TemporaryError) as caught:
        send(clock, service, on_retry=lambda reason, seconds: retries.append((reason, seconds)))
    assert service.tries == MAX_TRIES
    assert [reason for reason, _ in retries] == ["cannot connect: refused"] * (MAX_TRIES - 1)
    assert [seconds for _, seconds in retries] == [pytest.approx(wait, rel=0.1) for wait in (1, 2, 4, 8, 16, 30)]
    assert clock.monotonic() - begun == pytest.approx(61, rel=0.1)
    assert str(caught.value) == (
        f"GET {URL} failed after 7 tries in {clock.monotonic() - begun:.0f} s; last: cannot connect: refused. "
        "Is http://library.test the library's address? If not, correct base_url. "
        "Run the same command again when the service answers."
    )


def date_after(seconds: float) -> str:
    """Returns the HTTP date so many seconds after the start of the test's clock."""
    return format_datetime(MIDNIGHT + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Retry-After": "5"}, 5.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": date_after(90)}, 90.0),
        ({"Retry-After": "Friday, 20-Nov-26 00:01:30 GMT"}, 90.0),
        ({"Retry-After": date_after(90), "Date": date_after(80)}, 10.0),
        ({"Retry-After": date_after(-3600), "Date": date_after(-3610)}, 10.0),
        ({}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "Infinity"}, None),
        ({"Retry-After": "1e9"}, None),
        ({"Retry-After": "٥"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": date_after(90), "Date": date_after(91)}, None),
        ({"Retry-After": "Fri, 99 Foo 2026 00:00:00 GMT"}, None),
        ({"Retry-After": "9" * 5000}, 999_999_999_999_999_999.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], expected: float | None) -> None:
    """I1: seconds or an HTTP date, perhaps missing, absurd or in the past; a date is compared with the response's own Date."""
    response = httpx.Response(429, headers=[(name.encode(), value.encode()) for name, value in headers.items()])
    assert retry_after(response, MIDNIGHT) == expected


@pytest.mark.long
@given(text=st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=60), date=st.booleans())
def test_any_retry_after_is_a_positive_number_or_nothing(text: str, date: bool) -> None:
    """I1: an unusual Retry-After never crashes the client."""
    names = [b"Retry-After", b"Date"] if date else [b"Retry-After"]
    response = httpx.Response(429, headers=[(name, text.encode("latin-1")) for name in names])
    seconds = retry_after(response, MIDNIGHT)
    assert seconds is None or seconds > 0


@pytest.mark.parametrize("status", [429, 503])
def test_an_absurd_retry_after_ends_the_run_and_names_the_time(clock: ManualClock, status: int) -> None:
    """I1: after a request to wait two hours, a person decides whether to come back."""
    service, begun = Service(answer(status, retry_after="7200")), clock.monotonic()
    with pytest.raises(TemporaryError, match=r"Retry-After: 7200.*again after 20 November 2026 02:16 UTC"):
        send(clock, service)
    assert (service.tries, clock.monotonic()) == (1, begun)


def test_429s_are_no_failures_but_must_end(clock: ManualClock) -> None:
    """I1: 429 does not count as one of the few tries; thirty in a row outlast any window of one minute."""
    retries: list[tuple[str, float]] = []
    service = Service(answer(429))
    with pytest.raises(TemporaryError, match="failed after 30 tries"):
        send(clock, service, on_retry=lambda reason, seconds: retries.append((reason, seconds)))
    assert service.tries == MAX_THROTTLED
    assert retries == [("429 Too Many Requests", DEFAULT_PAUSE)] * (MAX_THROTTLED - 1)
    assert MAX_THROTTLED * DEFAULT_PAUSE > 60

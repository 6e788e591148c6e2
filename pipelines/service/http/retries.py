"""Decides whether a request is tried again, and when. No other module retries, and Dagster's own retries are off."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime, timedelta
from http import HTTPStatus

import httpx
from tenacity import RetryCallState, Retrying

from pipelines.errors import TemporaryError
from pipelines.service.clock import Clock
from pipelines.service.http.bodies import RECORDS, read_body
from pipelines.service.http.failures import (
    is_permanent,
    is_temporary,
    status_line,
    transport_error_text,
    was_never_sent,
)
from pipelines.service.http.retry_after import MAX_WAIT, pause_for_all, retry_after
from pipelines.service.redaction import outside_text

MAX_TRIES = 7
"""Tries of one request before the run gives up: with the waits between them, they cover about a minute of trouble."""

MAX_THROTTLED = 30
"""Responses 429 in a row for one request. A 429 is no failure, but it must not go on for ever."""


REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"})
"""Methods that are repeated after an unclear end. A POST may have had its effect, so it is repeated only if it certainly had none (I8)."""


LEFT_AT = "left_at"
"""Response extension of the inner transport: when the request left, on the clock's `monotonic`, after any wait for the budget."""

UNCLEAR = "unclear"
"""Request extension: an earlier try of this request may have had its effect."""

ANSWERED = "answered"
"""Request extension: the status of the last response, whether or not its body could be read."""

SECONDS = "seconds"
"""Response extension: seconds from the request's departure to the end of the response's body."""


class RetryTransport(httpx.BaseTransport):
    """Reads the whole response, and repeats a request whose failure may pass; a POST only if it had no effect.

    Returns a response whose body is complete, in memory, of bounded size, and valid JSON if its content type says so. When the tries are
    used up it raises `TemporaryError`, which names the number of tries, the seconds and the last failure. `on_retry` gets, before every
    wait, the last failure and the seconds to wait. Code that only probes a service sets fewer tries.
    """

    def __init__(
        self,
        inner: httpx.BaseTransport,
        *,
        clock: Clock,
        on_retry: Callable[[str, float], None] = lambda _reason, _seconds: None,
        most_tries: int = MAX_TRIES,
        most_throttled: int = MAX_THROTTLED,
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._on_retry = on_retry
        self._most_tries = most_tries
        self._most_throttled = most_throttled

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Try until a response is worth returning."""
        started = self._clock.monotonic()
        try:
            response = self._try_once(request)
        except httpx.TransportError as error:
            first = _ended(error)
        else:
            if not is_temporary(response.status_code):
                return response  # nearly always: then the retries need no set-up
            first = _ended(response)
        tries = [first.result]
        retrying = Retrying(
            retry=lambda state: _may_pass(state) and (request.method in REPEATABLE or _had_no_effect(state)),
            stop=lambda state: self._is_enough(state, self._clock.monotonic() - started),
            wait=lambda state: _seconds_to_wait(state, self._clock.now()),
            sleep=self._clock.sleep,
            before_sleep=lambda state: self._report(request, state),
            retry_error_callback=lambda state: self._give_up(request, state, self._clock.monotonic() - started),
        )
        answered: httpx.Response = retrying(lambda: tries.pop()() if tries else self._try_once(request))
        return answered

    def close(self) -> None:
        """Close the inner transport."""
        self._inner.close()

    def _try_once(self, request: httpx.Request) -> httpx.Response:
        request.extensions = {**request.extensions, ANSWERED: None}
        response = self._inner.handle_request(request)
        request.extensions[ANSWERED] = response.status_code
        response.request = request
        left_at = response.extensions.get(LEFT_AT, self._clock.monotonic())
        try:
            body = read_body(response, self._clock)
        finally:
            response.close()
        return httpx.Response(
            response.status_code,
            headers=[(name, value) for name, value in response.headers.raw if name.lower() not in _UNDONE],
            content=body,
            request=request,
            extensions={
                "reason_phrase": response.reason_phrase.encode("ascii", errors="replace"),
                SECONDS: self._clock.monotonic() - left_at,
                RECORDS: response.extensions.get(RECORDS),
            },
        )

    def _report(self, request: httpx.Request, state: RetryCallState) -> None:
        request.extensions[UNCLEAR] = request.extensions.get(UNCLEAR, False) or not _had_no_effect(state)
        response = _response(state)
        if response is not None and response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
            self._on_retry(_what_came_back(state), pause_for_all(response, self._clock.now()))
        else:
            self._on_retry(_what_came_back(state), state.upcoming_sleep)

    def _is_enough(self, state: RetryCallState, seconds: float) -> bool:
        response = _response(state)
        throttled = response is not None and response.status_code == HTTPStatus.TOO_MANY_REQUESTS
        tries = self._most_throttled if throttled else self._most_tries
        return state.attempt_number >= tries or seconds + (_asked(state, self._clock.now()) or 0.0) > MAX_WAIT

    def _give_up(self, request: httpx.Request, state: RetryCallState, seconds: float) -> httpx.Response:
        tries = f"{state.attempt_number} tries" if state.attempt_number > 1 else "1 try"
        now = self._clock.now()
        asked = _asked(state, now) or 0.0
        when = "when the service answers"
        if 60 < asked < timedelta(days=366).total_seconds():  # noqa: PLR2004  within a minute, a time of day does not help
            when = f"after {now + timedelta(seconds=asked):%d %B %Y %H:%M} UTC"
        raise TemporaryError(
            f"{request.method} {outside_text(request.url)} failed after {tries} in {seconds:.0f} s; last: {_what_came_back(state)}. "
            f"{_advice(request, state)}Nothing was lost: run the same command again {when}."
        ) from None


def _ended(outcome: httpx.Response | Exception) -> Future[httpx.Response]:
    """A try that has ended, whose `result` returns the response or raises the error."""
    found: Future[httpx.Response] = Future()
    if isinstance(outcome, Exception):
        found.set_exception(outcome)
    else:
        found.set_result(outcome)
    return found


def _advice(request: httpx.Request, state: RetryCallState) -> str:
    """What to check after a request to the library that reached no server."""
    if not isinstance(_error(state), httpx.ConnectError | httpx.ConnectTimeout) or _API not in request.url.path:
        return ""
    library = str(request.url).partition(_API)[0]
    return f"Is {outside_text(library)} the library's address? If not, correct base_url. "


_API = "/api/v"


_UNDONE = (
    b"content-encoding",
    b"content-length",
    b"transfer-encoding",
)  # they describe the body as it was sent, not as it is here


def _may_pass(state: RetryCallState) -> bool:
    response, error = _response(state), _error(state)
    if response is not None:
        return is_temporary(response.status_code)
    return isinstance(error, httpx.TransportError) and not is_permanent(error)


def _had_no_effect(state: RetryCallState) -> bool:
    """Whether a try certainly had no effect: the service put it off unread (429), or it never left."""
    response = _response(state)
    if response is not None:
        return response.status_code == HTTPStatus.TOO_MANY_REQUESTS
    return was_never_sent(_error(state))


def _seconds_to_wait(state: RetryCallState, now: datetime) -> float:
    """Returns the seconds that the service asked for, else those of `backoff`."""
    response = _response(state)
    if response is not None and response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        return 0.0  # the budget is paused, and the next try queues there like any other request
    return _asked(state, now) or backoff(state.attempt_number)


def backoff(tries: int) -> float:
    """Returns the seconds to wait after so many tries: 1, 2, 4, ... 30. A little randomness keeps clients from returning in step."""
    return float(min(30.0, 2.0 ** (tries - 1)) * random.uniform(0.9, 1.1))  # noqa: S311  not a secret


def _asked(state: RetryCallState, now: datetime) -> float | None:
    response = _response(state)
    return None if response is None else retry_after(response, now)


def _response(state: RetryCallState) -> httpx.Response | None:
    return None if state.outcome is None or state.outcome.failed else state.outcome.result()


def _error(state: RetryCallState) -> BaseException | None:
    return None if state.outcome is None else state.outcome.exception()


def _what_came_back(state: RetryCallState) -> str:
    response, error = _response(state), _error(state)
    if response is None:
        return transport_error_text(error)
    asked = response.headers.get("retry-after")
    return status_line(response) + (f" (Retry-After: {outside_text(asked, 60)})" if asked else "")

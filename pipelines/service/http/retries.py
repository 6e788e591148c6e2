"""When a request is tried again, and for how long: here and nowhere else. Dagster's own retries are off.

Also what a Retry-After asks for, because a 429 concerns more than the request that got it.
"""

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
    is_for_good,
    is_passing,
    status_line,
    was_never_sent,
    what_went_wrong,
)
from pipelines.service.http.retry_after import MAX_WAIT, pause_for_all, retry_after
from pipelines.service.redaction import outside_text

MAX_TRIES = 7
"""Tries of one request before the run gives up: with the waits between them, about a minute of trouble."""

MAX_THROTTLED = 30
"""Answers 429 in a row for one request. Being told to wait is not failing, but it must not go on for ever."""


REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"})
"""Any other, a POST, may have had its effect when it ended unclearly (trap A5): it is repeated only where it certainly had none."""


LEFT_AT = "left_at"
"""Extension of an answer from inside: when its request left, on the clock's `monotonic`, after any wait for the budget."""

UNCLEAR = "unclear"
"""Extension of a request: an earlier try of it may have had its effect."""

SECONDS = "seconds"
"""Extension of an answer that is returned: how long it took from leaving to the end of its body."""


class RetryTransport(httpx.BaseTransport):
    """Reads the whole answer, and repeats a request while it ended in a way that may pass; a POST only where it had no effect.

    Returns a response whose body is in memory, complete, of bounded size, and valid JSON if it says so. When the tries are used up it
    raises `TemporaryError`, which tells how often and how long was tried and what came back last. `on_retry` hears before every wait
    what came back and for how many seconds the request will wait. Fewer tries are for whoever looks at a service rather than reads it.
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
        """Try until there is an answer worth returning."""
        started = self._clock.monotonic()
        first: Future[httpx.Response] = Future()
        try:
            response = self._try_once(request)
        except httpx.TransportError as error:
            first.set_exception(error)
        else:
            if not is_passing(response.status_code):
                return response  # nearly always, so that the rest need not be set up
            first.set_result(response)
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
        """Close what is inside."""
        self._inner.close()

    def _try_once(self, request: httpx.Request) -> httpx.Response:
        response = self._inner.handle_request(request)
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
        if 60 < asked < timedelta(days=366).total_seconds():  # noqa: PLR2004  within a minute, the time of day tells nothing
            when = f"after {now + timedelta(seconds=asked):%d %B %Y %H:%M} UTC"
        raise TemporaryError(
            f"{request.method} {outside_text(request.url)} failed after {tries} in {seconds:.0f} s; last: {_what_came_back(state)}. "
            f"Nothing was lost: run the same command again {when}."
        ) from None


_UNDONE = (b"content-encoding", b"content-length", b"transfer-encoding")  # the body is as it was before these


def _may_pass(state: RetryCallState) -> bool:
    response, error = _response(state), _error(state)
    if response is not None:
        return is_passing(response.status_code)
    return isinstance(error, httpx.TransportError) and not is_for_good(error)


def _had_no_effect(state: RetryCallState) -> bool:
    """Whether a try certainly changed nothing: it was put off unread, or never left."""
    response = _response(state)
    if response is not None:
        return response.status_code == HTTPStatus.TOO_MANY_REQUESTS
    return was_never_sent(_error(state))


def _seconds_to_wait(state: RetryCallState, now: datetime) -> float:
    """The seconds that the service asked for, else those of `backoff`."""
    response = _response(state)
    if response is not None and response.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        return 0.0  # it has paused the budget, where the next try queues like any other request
    return _asked(state, now) or backoff(state.attempt_number)


def backoff(tries: int) -> float:
    """Seconds to wait after so many tries: 1, 2, 4, ... 30, with a little randomness so that clients do not return in step."""
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
        return what_went_wrong(error)
    asked = response.headers.get("retry-after")
    return status_line(response) + (f" (Retry-After: {outside_text(asked, 60)})" if asked else "")

"""The one policy of tries, for the API, storage services, downloads, sign-ins and webhooks. Dagster's own retries are off."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, NamedTuple, Self

import httpx
from tenacity import RetryCallState, Retrying, wait_exponential_jitter

from pipelines.errors import TemporaryError
from pipelines.service.clock import Clock
from pipelines.service.http.bodies import whole_response
from pipelines.service.http.failures import (
    is_permanent,
    is_temporary,
    status_line,
    transport_error_text,
    was_never_sent,
)
from pipelines.service.http.retry_after import DEFAULT_PAUSE, MAX_WAIT, retry_after
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

TRIES = "tries"
"""Request extension: tries of this request, and responses 429 in a row, if not `MAX_TRIES` and `MAX_THROTTLED`."""

ANSWERED = "answered"
"""Request extension: the status of the last response, whether or not its body could be read."""

SECONDS = "seconds"
"""Response extension: seconds from the request's departure to the end of the response's body."""


_BACKOFF = wait_exponential_jitter(max=30.0, jitter=0.1)
"""1, 2, 4, ... 30 seconds. A little randomness keeps clients from returning in step."""


class FailedTryError(Exception):
    """A try that failed. `may_pass`: another one may succeed, after `pause` seconds if the other side says how long."""

    def __init__(self, problem: str, *, may_pass: bool, pause: float | None = None) -> None:
        super().__init__(problem)
        self.may_pass = may_pass
        self.pause = pause


def retrying(
    sleep: Callable[[float], None],
    *,
    retry: Callable[[RetryCallState], bool],
    stop: Callable[[RetryCallState], bool],
    asked: Callable[[RetryCallState], float | None] = lambda _: None,
    before_sleep: Callable[[RetryCallState], None] | None = None,
    give_up: Callable[[RetryCallState], Any] | None = None,
) -> Retrying:
    """Returns what calls a function until `retry` says no; then, or when `stop` says yes, its last outcome is returned or raised.

    Waits the seconds that the other side asked for, else those of `_BACKOFF`. `give_up` replaces the outcome after `stop`.
    """

    def wait(state: RetryCallState) -> float:
        seconds = asked(state)
        return _BACKOFF(state) if seconds is None else seconds

    last: Callable[[RetryCallState], Any] = lambda state: state.outcome and state.outcome.result()  # noqa: E731
    return Retrying(
        sleep=sleep, retry=retry, stop=stop, wait=wait, before_sleep=before_sleep, retry_error_callback=give_up or last
    )


class RetryTransport(httpx.BaseTransport):
    """Reads the whole response, and repeats a request whose failure may pass; a POST only if it had no effect.

    Returns a response whose body is complete, in memory, of bounded size, and valid JSON if its content type says so. When the tries are
    used up it raises `TemporaryError`, which names the number of tries, the seconds and the last failure. `on_retry` gets, before every
    wait, the last failure and the seconds to wait. Code that only probes a service sets fewer tries (`TRIES`).
    """

    def __init__(
        self,
        inner: httpx.BaseTransport,
        *,
        clock: Clock,
        on_retry: Callable[[str, float], None] = lambda _reason, _seconds: None,
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._on_retry = on_retry

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Try until a response is worth returning."""
        started = self._clock.monotonic()

        def outcome(state: RetryCallState) -> _Outcome:
            return _Outcome.of(state, self._clock.now())

        def is_enough(state: RetryCallState) -> bool:
            tried = outcome(state)
            most = request.extensions.get(TRIES, (MAX_TRIES, MAX_THROTTLED))[tried.is_throttled]
            seconds = self._clock.monotonic() - started + (tried.asked or 0.0)
            return state.attempt_number >= most or seconds > MAX_WAIT

        def report(state: RetryCallState) -> None:
            tried = outcome(state)
            request.extensions[UNCLEAR] = request.extensions.get(UNCLEAR, False) or not tried.had_no_effect
            self._on_retry(tried.what, (tried.asked or DEFAULT_PAUSE) if tried.is_throttled else state.upcoming_sleep)

        def give_up(state: RetryCallState) -> httpx.Response:
            raise self._error(request, outcome(state), state, self._clock.monotonic() - started) from None

        tries = retrying(
            self._clock.sleep,
            retry=lambda state: (
                outcome(state).may_pass and (request.method in REPEATABLE or outcome(state).had_no_effect)
            ),
            stop=is_enough,
            # After a 429 the budget is paused, and the next try queues there like any other request
            asked=lambda state: 0.0 if outcome(state).is_throttled else outcome(state).asked,
            before_sleep=report,
            give_up=give_up,
        )
        return tries(self._try_once, request)

    def close(self) -> None:
        """Close the inner transport."""
        self._inner.close()

    def _try_once(self, request: httpx.Request) -> httpx.Response:
        request.extensions = {**request.extensions, ANSWERED: None}
        response = self._inner.handle_request(request)
        request.extensions[ANSWERED] = response.status_code
        left_at = response.extensions.get(LEFT_AT, self._clock.monotonic())
        whole = whole_response(response, request, self._clock)
        whole.extensions[SECONDS] = self._clock.monotonic() - left_at
        return whole

    def _error(self, request: httpx.Request, last: _Outcome, state: RetryCallState, seconds: float) -> TemporaryError:
        tries = f"{state.attempt_number} tries" if state.attempt_number > 1 else "1 try"
        when, asked = "when the service answers", last.asked or 0.0
        if 60 < asked < timedelta(days=366).total_seconds():  # noqa: PLR2004  within a minute, a time of day does not help
            when = f"after {self._clock.now() + timedelta(seconds=asked):%d %B %Y %H:%M} UTC"
        return TemporaryError(
            f"{request.method} {outside_text(request.url)} failed after {tries} in {seconds:.0f} s; last: {last.what}. "
            f"{_advice(request, state)}Run the same command again {when}."
        )


class _Outcome(NamedTuple):
    """What came back of a try."""

    what: str
    may_pass: bool
    """Whether another try may bring something else."""
    is_throttled: bool = False
    had_no_effect: bool = False
    """Whether it certainly had none: the service put it off unread (429), or it never left."""
    asked: float | None = None
    """The seconds that the service asks us to wait."""

    @classmethod
    def of(cls, state: RetryCallState, now: datetime) -> Self:
        """The outcome of the try that was made last."""
        error = _exception(state)
        if error is not None or state.outcome is None:
            may_pass = isinstance(error, httpx.TransportError) and not is_permanent(error)
            return cls(transport_error_text(error), may_pass, had_no_effect=was_never_sent(error))
        response: httpx.Response = state.outcome.result()
        named = response.headers.get("retry-after")
        what = status_line(response) + (f" (Retry-After: {outside_text(named, 60)})" if named else "")
        throttled = response.status_code == HTTPStatus.TOO_MANY_REQUESTS
        return cls(what, is_temporary(response.status_code), throttled, throttled, retry_after(response, now))


def _exception(state: RetryCallState) -> BaseException | None:
    return None if state.outcome is None else state.outcome.exception()


def _advice(request: httpx.Request, state: RetryCallState) -> str:
    """What to check after a request to the library that reached no server."""
    library, *of_a_library = re.split(r"/(?:api/v|oauth/)", str(request.url), maxsplit=1)
    if not isinstance(_exception(state), httpx.ConnectError | httpx.ConnectTimeout) or not of_a_library:
        return ""
    return f"Is {outside_text(library)} the library's address? If not, correct base_url. "

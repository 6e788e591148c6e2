"""When a request is tried again, and for how long: here and nowhere else. Dagster's own retries are off.

Also what a Retry-After asks for, because a 429 concerns more than the request that got it.
"""

from __future__ import annotations

import random
import re
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx
from tenacity import RetryCallState, Retrying

from pipelines.errors import TemporaryError
from pipelines.service.clock import Clock
from pipelines.service.http.bodies import RECORDS, GarbledBodyError, read_body
from pipelines.service.redaction import outside_text

MAX_TRIES = 7
"""Tries of one request before the run gives up: with the waits between them, about a minute of trouble."""

MAX_THROTTLED = 30
"""Answers 429 in a row for one request. Being told to wait is not failing, but it must not go on for ever."""

MAX_WAIT = 3600.0
"""Seconds that one request may take with all its waits. A service that asks for more ends the run, which says until when."""

UNTOLD = 5.0
"""Seconds that everybody waits after a 429 that does not say how long. `MAX_THROTTLED` of them outlast any one-minute window."""

REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE"})
"""Any other, a POST, may have had its effect when it ended unclearly (trap A5): it is repeated only where it certainly had none."""

FOR_GOOD = frozenset({HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED})
"""Statuses of the 500s that no waiting mends."""

PASSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
"""Statuses of the 400s that waiting may mend."""


LEFT_AT = "left_at"
"""Extension of an answer from inside: when its request left, on the clock's `monotonic`, after any wait for the budget."""

UNCLEAR = "unclear"
"""Extension of a request: an earlier try of it may have had its effect."""

SECONDS = "seconds"
"""Extension of an answer that is returned: how long it took from leaving to the end of its body."""


class Retried(httpx.BaseTransport):
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


def is_passing(status: int) -> bool:
    """Whether waiting may mend what a status says."""
    return status in PASSING or (status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in FOR_GOOD)


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


_NEVER_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.LocalProtocolError,
    httpx.UnsupportedProtocol,
)


def was_never_sent(error: BaseException | None) -> bool:
    """Whether a transport error came before anything could leave: there was no connection, or our own rules forbade it."""
    return isinstance(error, _NEVER_SENT)


def is_for_good(error: BaseException) -> bool:
    """Whether a transport error will be the same next time: our own mistake, or a certificate that is not trusted."""
    return isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol) or is_untrusted(error)


def is_untrusted(error: BaseException) -> bool:
    """Whether the certificate of whoever answered is not one that this machine trusts."""
    return any(isinstance(one, ssl.SSLCertVerificationError) for one in _chain(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


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


def what_went_wrong(error: BaseException | None) -> str:
    """A transport's error in plain words."""
    return f"{_PLAIN_NAMES.get(type(error), type(error).__name__)}: {outside_text(error)}".removesuffix(": ")


def status_line(response: httpx.Response) -> str:
    """Status and reason for a message: `503 Service Unavailable`."""
    reason = httpx.codes.get_reason_phrase(response.status_code) or outside_text(response.reason_phrase, 60)
    return f"{response.status_code} {reason}".strip()


_PLAIN_NAMES: dict[type, str] = {
    httpx.ConnectError: "cannot connect",
    httpx.ConnectTimeout: "connecting took too long",
    httpx.ProxyError: "the proxy refused",
    httpx.ReadError: "the connection broke while reading",
    httpx.ReadTimeout: "the answer took too long",
    httpx.RemoteProtocolError: "the connection broke",
    httpx.WriteError: "the connection broke while sending",
    httpx.WriteTimeout: "sending took too long",
    GarbledBodyError: "garbled answer",
}


def pause_for_all(response: httpx.Response, now: datetime) -> float:
    """Seconds for which a 429 stops everybody who talks to the library: the full Retry-After (I1).

    Nobody waits for what is beyond `MAX_WAIT`: the run ends, and the next one asks anew.
    """
    asked = retry_after(response, now)
    if asked is None:
        return UNTOLD
    return asked if asked <= MAX_WAIT else 0.0


def retry_after(response: httpx.Response, now: datetime) -> float | None:
    """Seconds the service asks us to wait: from its Retry-After as seconds or as an HTTP date (trap A7).

    `None` where the header is missing or says nothing usable (not a number, not a date, zero, in the past). A date is held against the
    service's own Date header where there is one, because our clock may be wrong.
    """
    text = response.headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        seconds = float(text[:18])  # longer is absurd anyway, and no float overflows
    else:
        then, sent = _http_date(text), _http_date(response.headers.get("date", ""))
        if then is None:
            return None
        seconds = (then - (sent or now)).total_seconds()
    return seconds if seconds > 0 else None


def _http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text[:100])
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

"""The one way to talk to a library: a client that is signed in, budgeted, pinned and retried."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import httpx

from pipelines.errors import ForeignOriginError, ProtocolError, RefusedError
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.http.budget import Budget
from pipelines.service.http.network import CONNECT_SECONDS, NetworkTransport
from pipelines.service.http.responses import (
    as_object,
    check_response,
    failed_write_error,
    unclear_error,
    unsent_error,
    write_result,
)
from pipelines.service.http.retries import RetryTransport
from pipelines.service.http.transport import BudgetTransport, OriginTransport, RequestMeter
from pipelines.service.redaction import keep_secret
from pipelines.service.search import MAX_PAGES, SearchResult, first_and_last_pages, look_up
from pipelines.service.sign_in.bearer import BearerAuth, TokenTransport, open_refresher
from pipelines.settings.credentials import BasicCredentials, SessionCookie
from pipelines.settings.settings import Settings
from pipelines.version import VERSION

READ_SECONDS = 60.0
"""Without a single byte from the service; then the request is sent again, or looked up, so that one that hangs holds nobody up for long."""


_HEADERS = {
    "accept": "application/json",
    "accept-encoding": "gzip",
    "connection": "keep-alive",
    "user-agent": f"bookferry/{VERSION}",
}


class SessionCookieAuth(httpx.Auth):
    """Sends the cookie of an already signed-in browser session (service-api.md, v2 authentication 2)."""

    def __init__(self, cookie: SessionCookie) -> None:
        self._cookie = cookie

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        """One request, one answer: v2 has nothing to refresh."""
        request.headers["cookie"] = f"_library_session={self._cookie.value}"
        yield request


@dataclass(frozen=True)
class Waiting:
    """Why nothing moves at the moment, for the person who watches."""

    reason: str
    seconds: float


class LibraryClient:
    """Requests to one tenant's API. Safe to use from several threads; close it when done.

    `on_wait` hears why nothing moves, from whichever thread waits.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api: str,
        auth: httpx.Auth,
        budget: Budget,
        requests_per_minute: int,
        clock: Clock,
        on_wait: Callable[[Waiting], None] = lambda _: None,
        transport: httpx.BaseTransport | None = None,
        meter: RequestMeter | None = None,
    ) -> None:
        self.api_url = f"{base_url}/api/{api}"
        self.requests_per_minute = requests_per_minute
        self.clock = clock
        self._on_wait = on_wait
        self._meter = meter or RequestMeter()
        self._budget = budget
        self._auth = auth
        self._timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS).as_dict()
        self._budgeted = BudgetTransport(
            transport or NetworkTransport(base_url), budget=budget, meter=self._meter, clock=clock
        )
        self._pinned = OriginTransport(self._budgeted, base_url=base_url)
        self._rings = RetryTransport(
            self._pinned, clock=clock, on_retry=lambda reason, seconds: on_wait(Waiting(reason, seconds))
        )
        self._asked = RetryTransport(self._pinned, clock=clock, most_tries=2, most_throttled=1)
        self._asked_unsigned = RetryTransport(self._budgeted, clock=clock, most_tries=2, most_throttled=1)

    @property
    def requests(self) -> int:
        """Requests sent by this client so far, every try counted."""
        return self._meter.requests

    def wait(self, why: Waiting) -> None:
        """Let time pass, and tell why."""
        self._on_wait(why)
        self.clock.sleep(why.seconds)

    def get(self, url: httpx.URL | str, params: dict[str, Any] | None = None) -> httpx.Response:
        """The answer 200 to a GET of an address below `api_url`, its body read.

        Raises `SignInError` on 401 and 403, `RefusedError` on any other 4xx, `ProtocolError` on what no API answers (a redirect, a
        web page), `TemporaryError` when the service did not recover in time, `ConfigurationError` when its certificate is not trusted.
        """
        try:
            response = self._send(httpx.Request("GET", url, params=params, headers=_HEADERS), self._auth, self._rings)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise unsent_error("GET", url, error) from None
        return check_response(response)

    def ask(
        self, url: httpx.URL | str, params: dict[str, Any] | None = None, *, signed_in: bool = True
    ) -> httpx.Response:
        """Whatever one GET is answered with, for looking at a service: tried twice at most, and not again after a 429.

        Raises what `get` raises, but for a status that waiting would not change: that is the answer. Without a sign-in there is nothing
        to keep at home (I2), so the page at `{base_url}/api` can be asked for, too.
        """
        request = httpx.Request("GET", url, params=params, headers={**_HEADERS, "accept": "*/*"})
        try:
            if signed_in:
                return self._send(request, self._auth, self._asked)
            return self._send(request, httpx.Auth(), self._asked_unsigned)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise unsent_error("GET", url, error) from None

    def get_record(self, path: str) -> dict[str, Any]:
        """The JSON object at a path below `api_url`, such as `publications/17`. Raises what `get` raises."""
        return as_object(self.get(f"{self.api_url}/{path}"))

    def find_record(self, path: str) -> dict[str, Any] | None:
        """The same, or nothing where there is no such record."""
        try:
            return self.get_record(path)
        except RefusedError as refusal:
            if refusal.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def search(self, params: Mapping[str, str], *, most_pages: int = MAX_PAGES) -> SearchResult:
        """Publications by flat parameters (`doi`, `isbn`, `query`, `year` …), of at most so many pages. Raises what `get` raises.

        The service may find inexactly and late: compare each record, and do not take an empty answer for a proof (trap A12).
        """
        return look_up(self.get, f"{self.api_url}/publications", params, most_pages)

    def list_ends(self, resource: str) -> list[dict[str, Any]]:
        """The records of the first page of a list and of its last two, where a new one stands. Raises what `get` raises."""
        return first_and_last_pages(self.get, f"{self.api_url}/{resource}")

    def write(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """POST, PATCH or DELETE of a path below `api_url`; the JSON of the answer, `None` where that is empty.

        A POST is repeated only where it certainly had no effect: after a 429, after a 401 and a new token, and where no connection came
        about. Else, if it ended unclearly, it raises `UnclearError` (trap A5). PATCH and DELETE are repeated as a GET is; a DELETE whose
        repetition is answered 404 has succeeded. For the rest it raises what `get` raises; of a POST, `TemporaryError` says that it had
        no effect. No message shows what was sent.
        """
        content = (
            b""
            if body is None and method != "POST"
            else json.dumps(body or {}, ensure_ascii=False, allow_nan=False).encode()
        )
        headers = {**_HEADERS, "content-type": "application/json"} if content else _HEADERS
        try:
            request = httpx.Request(method, f"{self.api_url}/{path}", content=content, headers=headers)
            response = self._send(request, self._auth, self._rings)
        except httpx.InvalidURL as error:
            raise unsent_error(method, path, error) from None
        except httpx.HTTPError as error:
            raise failed_write_error(request, error) from None
        except ForeignOriginError:
            raise
        except ProtocolError as error:  # of the body of the answer, which was not read to its end
            raise unclear_error(request, str(error)) if method == "POST" else error from None
        return write_result(response)

    def stream(self, url: httpx.URL, headers: dict[str, str], *, signed_in: bool) -> httpx.Response:
        """Whatever one GET of an address on the library's host is answered with, tried once; its body is still to be read: close it.

        Without a sign-in it may be any address there; it is charged to the budget all the same. Raises what httpx raises.
        """
        request = httpx.Request("GET", url, headers=headers)
        return self._send(request, self._auth, self._pinned) if signed_in else self.send_unsigned(request)

    def send_unsigned(self, request: httpx.Request) -> httpx.Response:
        """Whatever a request to the library's host without a sign-in is answered with; like `stream`, with any address and body."""
        return self._send(request, httpx.Auth(), self._budgeted)

    def _send(self, request: httpx.Request, auth: httpx.Auth, rings: httpx.BaseTransport) -> httpx.Response:
        """Through the rings, signed in as `auth` does it.

        httpx's own client would add redirects and cookies, both unwanted here, and leave each answer in a cycle of references, where it
        stays until the collector comes by: with pages of 100 kB, that is hundreds of megabytes.
        """
        flow = auth.sync_auth_flow(request)
        try:
            request = next(flow)
            while True:
                request.extensions = {**request.extensions, "timeout": self._timeout}
                response = rings.handle_request(request)
                response.request = request
                request = flow.send(response)
                response.close()
        except StopIteration:
            return response
        finally:
            flow.close()

    def close(self) -> None:
        """Close the connections and the budget's; requests that other threads still wait for end at once."""
        self._rings.close()
        self._budget.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def open_client(
    settings: Settings,
    tenant: str,
    *,
    state: Path,
    on_wait: Callable[[Waiting], None] = lambda _: None,
    clock: Clock | None = None,
) -> Iterator[LibraryClient]:
    """A client for `tenant`, signed in as the settings say, on the budget in the database `state`. Sends nothing yet.

    At the end every wait of its threads ends, too: for the budget, for a retry, for an answer. `on_wait` is called by all of them.
    """
    chosen = settings.tenant(tenant)
    library, limit = settings.budget_of(tenant)
    interrupted = threading.Event()
    clock = clock or SystemClock(interrupted)
    settings.check_sign_in(tenant)
    with ExitStack() as stack:
        budget = Budget(
            state,
            library,
            limit,
            clock,
            on_wait=lambda seconds: on_wait(Waiting("the budget is used up", seconds)),
            on_pause=lambda seconds: on_wait(Waiting(_asked_for(clock.now(), seconds), seconds)),
        )
        stack.callback(budget.close)
        meter, network = RequestMeter(), NetworkTransport(chosen.base_url)
        if chosen.api == "v2":
            auth: httpx.Auth = _sign_in(settings.credentials(tenant))
            transport: httpx.BaseTransport = network
        else:
            refresher = stack.enter_context(open_refresher(settings, tenant, budget=budget, clock=clock, meter=meter))
            auth, transport = BearerAuth(refresher), TokenTransport(network, refresher)
        client = LibraryClient(
            base_url=chosen.base_url,
            api=chosen.api,
            auth=auth,
            budget=budget,
            requests_per_minute=limit,
            clock=clock,
            on_wait=on_wait,
            transport=transport,
            meter=meter,
        )
        stack.callback(client.close)
        stack.callback(interrupted.set)
        yield client


def _sign_in(credentials: BasicCredentials | SessionCookie) -> httpx.Auth:
    if isinstance(credentials, SessionCookie):
        keep_secret(credentials.value)
        return SessionCookieAuth(credentials)
    keep_secret(credentials.password, f"{credentials.username}:{credentials.password}")
    return httpx.BasicAuth(credentials.username, credentials.password)


def _asked_for(now: datetime, seconds: float) -> str:
    """A 429's pause in words, with its end in the time of this machine: whoever watches may be sharing it with other runs."""
    return f"the service asked to wait (429), until {(now + timedelta(seconds=seconds)).astimezone():%H:%M:%S}"

"""The one way to talk to a library: a client with sign-in, budget, origin check and retries."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import unquote

import httpx

from pipelines.errors import ForeignOriginError, ProtocolError, RefusedError
from pipelines.records.values import RecordId, record_id
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.http.announcements import Announcements
from pipelines.service.http.bodies import MOST_BYTES
from pipelines.service.http.budget import Budget
from pipelines.service.http.envelope import record_with_id
from pipelines.service.http.network import CONNECT_SECONDS, NetworkTransport
from pipelines.service.http.redirects import at_other_slash
from pipelines.service.http.responses import (
    CreationAnswer,
    as_object,
    check_response,
    created,
    failed_write_error,
    unclear_error,
    unsent_error,
    write_result,
)
from pipelines.service.http.retries import TRIES, RetryTransport
from pipelines.service.http.transport import ON_LEAVE, BudgetTransport, OriginTransport
from pipelines.service.list_ends import ListEnds, ends_of_list
from pipelines.service.redaction import keep_secret
from pipelines.service.sign_in.bearer import BearerAuth, TokenTransport, open_refresher
from pipelines.settings.credentials import BasicCredentials, SessionCookie
from pipelines.settings.settings import Settings
from pipelines.shapes.documents import MAX_BYTES
from pipelines.state.store import State
from pipelines.version import VERSION

READ_SECONDS = 60.0
"""Seconds without a single byte from the service. Then the request is sent again, or its effect is looked up; a hanging request does not
delay a run for long."""


LOST_WRITE_SHARE = 1.25
"""The read timeout times this is how long after it was sent a request may still take effect. Lists and searches may lag behind a little."""

_HEADERS = {
    "accept": "application/json",
    "accept-encoding": "gzip",
    "connection": "keep-alive",
    "user-agent": f"bookferry/{VERSION}",
}


class SessionCookieAuth(httpx.Auth):
    """Sends the cookie of a browser session that is signed in already (service.md#v2)."""

    def __init__(self, cookie: SessionCookie) -> None:
        self._cookie = cookie

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        """Send one request and take its response: v2 has nothing to refresh."""
        request.headers["cookie"] = f"_library_session={self._cookie.value}"
        yield request


@dataclass(frozen=True)
class Waiting:
    """A wait that a person who watches should see: its reason and its seconds."""

    reason: str
    seconds: float


class LibraryClient:
    """Requests to one tenant's API. Safe to use from several threads; close it when done.

    `on_wait` gets every wait, from the thread that waits.
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
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self.api_url = f"{base_url}/api/{api}"
        self.requests_per_minute = requests_per_minute
        self.clock = clock
        self._on_wait = on_wait
        self._announcements = Announcements()
        self._budget = budget
        self._auth = auth
        self._timeout = httpx.Timeout(read_seconds, connect=CONNECT_SECONDS).as_dict()
        self.lost_write_seconds = LOST_WRITE_SHARE * read_seconds
        """Seconds after its departure for which a write without a response may still take effect (I8)."""
        self._budget_transport = BudgetTransport(transport or NetworkTransport(base_url), budget=budget, clock=clock)
        self._origin_transport = OriginTransport(self._budget_transport, base_url=base_url)
        self._transport, self._unsigned_transport = (
            RetryTransport(inner, clock=clock, on_retry=lambda reason, seconds: on_wait(Waiting(reason, seconds)))
            for inner in (self._origin_transport, self._budget_transport)
        )

    @property
    def requests(self) -> int:
        """Requests sent by this client so far; every try counts."""
        return self._budget.requests

    @property
    def announced(self) -> Mapping[str, str]:
        """What the responses so far announced in `X-API-Deprecation` (service.md#deprecation): name → day, empty if none is named."""
        return self._announcements.days

    def wait(self, wait: Waiting) -> None:
        """Wait, and report the wait."""
        self._on_wait(wait)
        self.clock.sleep(wait.seconds)

    def get(
        self, url: httpx.URL | str, params: dict[str, Any] | None = None, *, briefly: bool = False
    ) -> httpx.Response:
        """Return the response 200 to a GET of an address below `api_url`, its body read. `briefly`: two tries, and more only after a 429.

        Raises `SignInError` on 401, on 403 and if the service redirects to a page for people to sign in, `RefusedError` on any other 4xx,
        `ProtocolError` for a response that no API sends (another redirect, a web page), `TemporaryError` if the service did not recover in
        time, `ConfigurationError` if its certificate is not trusted.
        """
        return check_response(self._fetched(url, params, {TRIES: (2, 3)} if briefly else {}))

    def ask(
        self,
        url: httpx.URL | str,
        params: dict[str, Any] | None = None,
        *,
        signed_in: bool = True,
    ) -> httpx.Response:
        """Return the response to one GET, whatever its status, for a probe of the service: tried twice at most, and not again after a 429.

        Raises the errors of `get`, except for a status that waiting would not change: that response is returned. Without a sign-in there is
        nothing to protect (I2), so any page of the library, such as `{base_url}/api`, may be requested; it need not be JSON, and a body
        that is larger than a description may be is a `ProtocolError`.
        """
        limits = {TRIES: (2, 1), **({} if signed_in else {MOST_BYTES: MAX_BYTES})}
        return self._fetched(url, params, limits, accept="*/*", signed_in=signed_in)

    def get_record(self, path: str) -> dict[str, Any]:
        """Return the record at a path below `api_url`, such as `publications/17`. Raises the errors of `get`."""
        return record_with_id(as_object(self.get(f"{self.api_url}/{path}")), _id_in(path))

    def find_record(self, path: str) -> dict[str, Any] | None:
        """Return the JSON object at a path, or `None` if there is no such record."""
        try:
            return self.get_record(path)
        except RefusedError as refusal:
            if refusal.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def list_ends(
        self, resource: str, reaches_back: Callable[[list[dict[str, Any]]], bool] = lambda _: True
    ) -> ListEnds:
        """Return the records at both ends of a list, where new ones appear. Raises the errors of `get`.

        They are those of the first page and of the last two. `reaches_back`: gets a page's records; while it is false at an end, the page
        before it is read, too.
        """
        return ends_of_list(self.get, f"{self.api_url}/{resource}", reaches_back)

    def write(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        on_leave: Callable[[], None] = lambda: None,
    ) -> Any:
        """Send a POST, PATCH, PUT or DELETE to a path below `api_url`; return the JSON of the response, `None` if it is empty.

        Of a response about the record at that path, the record.

        A POST is repeated only if it certainly had no effect: after a 429, after a 401 and a new token, and if no connection was opened. If
        it ended unclearly, this raises `UnclearError` (I8). PATCH and DELETE are repeated like a GET; a DELETE whose repetition gets a 404
        has succeeded. Otherwise this raises the errors of `get`; for a POST, `TemporaryError` says that it had no effect. No message shows
        the body. `on_leave` is called just before each try leaves.
        """
        answer = write_result(self._written(method, path, body, on_leave))
        return record_with_id(answer, _id_in(path)) if isinstance(answer, dict) else answer

    def create(
        self,
        path: str,
        body: Mapping[str, Any],
        answer: CreationAnswer,
        *,
        on_leave: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:
        """Send a POST that creates a record; return the record of the response, with its id.

        Raises the errors of `write`; `UnnamedRecordError` after a success that does not name the record: it must not be sent again.
        """
        return created(self._written("POST", path, body, on_leave), answer)

    def _written(
        self, method: str, path: str, body: Mapping[str, Any] | None, on_leave: Callable[[], None]
    ) -> httpx.Response:
        """Send a write; return its response, whatever its status."""
        content = (
            b""
            if body is None and method != "POST"
            else json.dumps(body or {}, ensure_ascii=False, allow_nan=False).encode()
        )
        headers = {**_HEADERS, "content-type": "application/json"} if content else _HEADERS
        try:
            request = httpx.Request(
                method, f"{self.api_url}/{path}", content=content, headers=headers, extensions={ON_LEAVE: on_leave}
            )
            response = self._send(request, self._auth, self._transport)
        except httpx.InvalidURL as error:
            raise unsent_error(method, path, error) from None
        except httpx.HTTPError as error:
            raise failed_write_error(request, error) from None
        except ForeignOriginError:
            raise
        except ProtocolError as error:  # the body of the response was not read to its end
            raise unclear_error(request, str(error)) if method == "POST" else error from None
        return response

    def stream(self, request: httpx.Request, *, signed_in: bool) -> httpx.Response:
        """Return the response to a request to the library's host, tried once; its body is not read yet: close it.

        Without a sign-in it may go to any address there; it is charged to the budget all the same. Raises the errors of httpx.
        """
        if signed_in:
            return self._send(request, self._auth, self._origin_transport)
        return self._send(request, httpx.Auth(), self._budget_transport)

    def _fetched(
        self,
        url: httpx.URL | str,
        params: dict[str, Any] | None,
        limits: Mapping[str, Any],
        *,
        accept: str = "application/json",
        signed_in: bool = True,
    ) -> httpx.Response:
        """Send a GET; follow one redirect that only adds or drops the slash at the end of its path. No other is followed (I2).

        The next page has the address of this response, with that slash.
        """
        ways = (self._auth, self._transport) if signed_in else (httpx.Auth(), self._unsigned_transport)
        headers, extensions = {**_HEADERS, "accept": accept}, {**limits}
        try:
            request = httpx.Request("GET", url, params=params, headers=headers, extensions=extensions)
            response = self._send(request, *ways)
            target = at_other_slash(response)
            if target is None:
                return response
            return self._send(httpx.Request("GET", target, headers=headers, extensions=extensions), *ways)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise unsent_error("GET", url, error) from None

    def _send(self, request: httpx.Request, auth: httpx.Auth, transport: httpx.BaseTransport) -> httpx.Response:
        """Send a request through a transport, signed in by `auth`.

        httpx's own client would add redirects and cookies, which are unwanted here. It would also leave each response in a reference cycle
        until the garbage collector runs: with pages of 100 kB, that is hundreds of megabytes.
        """
        flow = auth.sync_auth_flow(request)
        try:
            request = next(flow)
            while True:
                request.extensions = {**request.extensions, "timeout": self._timeout}
                response = transport.handle_request(request)
                response.request = request
                self._announcements.note(response)
                request = flow.send(response)
                response.close()
        except StopIteration:
            return response
        finally:
            flow.close()

    def close(self) -> None:
        """Close the connections of the client and of the budget; requests that other threads wait for end at once."""
        self._transport.close()
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
    state: State,
    on_wait: Callable[[Waiting], None] = lambda _: None,
    clock: Clock | None = None,
    read_seconds: float = READ_SECONDS,
) -> Iterator[LibraryClient]:
    """Opens a client for `tenant`, signed in as the settings say, on the budget in `state`. Sends nothing yet.

    At the end, every wait of its threads ends too: for the budget, for a retry, for a response. All of them call `on_wait`.
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
        network = NetworkTransport(chosen.base_url)
        if chosen.api == "v2":
            auth: httpx.Auth = _sign_in(settings.credentials(tenant))
            transport: httpx.BaseTransport = network
        else:
            refresher = stack.enter_context(open_refresher(settings, tenant, budget=budget, clock=clock))
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
            read_seconds=read_seconds,
        )
        stack.callback(client.close)
        stack.callback(interrupted.set)
        yield client


def _id_in(path: str) -> RecordId | None:
    """The id at the end of the path of one record."""
    return record_id(unquote(path.rpartition("/")[2]))


def _sign_in(credentials: BasicCredentials | SessionCookie) -> httpx.Auth:
    if isinstance(credentials, SessionCookie):
        keep_secret(credentials.value)
        return SessionCookieAuth(credentials)
    keep_secret(credentials.password, f"{credentials.username}:{credentials.password}")
    return httpx.BasicAuth(credentials.username, credentials.password)


def _asked_for(now: datetime, seconds: float) -> str:
    """Returns the text of a 429's pause, with its end in local time: the pause may have begun in another run."""
    return f"the service asked to wait (429), until {(now + timedelta(seconds=seconds)).astimezone():%H:%M:%S}"

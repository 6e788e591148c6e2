"""The layers around httpx's transport; every request to a library passes all of them.

 RetryTransport( OriginTransport( BudgetTransport( NetworkTransport() ) ) )

The budget is inside the retries, so that every try pays for itself. The check of the origin is inside them too, so that no layer can send a
request that it did not check. `RetryTransport` is in retries.py, `NetworkTransport` in network.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import httpx

from pipelines.errors import ForeignOriginError
from pipelines.service.clock import Clock
from pipelines.service.http.budget import Budget, Permit
from pipelines.service.http.retries import LEFT_AT
from pipelines.service.http.retry_after import pause_for_all
from pipelines.service.redaction import outside_text

ON_LEAVE = "on_leave"
"""Request extension: a function that is called just before the headers of the request leave, at each try."""


class BudgetTransport(httpx.BaseTransport):
    """Sends a request when the library's budget has a free slot, and charges it at the moment its headers leave (I1).

    A 429 pauses the budget, so that every thread, process and run waits the full Retry-After.
    """

    def __init__(self, inner: httpx.BaseTransport, *, budget: Budget, clock: Clock) -> None:
        self._inner = inner
        self._budget = budget
        self._clock = clock

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send it when a slot is free. A request that did not leave costs nothing, whatever went wrong."""
        on_leave = request.extensions.get(ON_LEAVE, lambda: None)
        departure = _OutgoingRequest(self._budget.acquire(), self._clock, on_leave)
        request.extensions = {**request.extensions, "trace": departure.trace}
        granted = self._clock.monotonic()
        try:
            response = self._inner.handle_request(request)
        except BaseException:
            departure.give_up()
            raise
        response.extensions[LEFT_AT] = granted if departure.at is None else departure.at
        if departure.at is None:  # a transport that reports no progress
            departure.leave()
        departure.answered()
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            self._budget.pause(pause_for_all(response, self._clock.now()))
        return response

    def close(self) -> None:
        """Close the inner transport."""
        self._inner.close()


class _OutgoingRequest:
    """One request on its way out; it is charged when its headers begin to leave and again when they have left.

    Connecting takes time, and so does writing to a slow line, but the service counts a request when it arrives. httpcore reports the
    progress.
    """

    def __init__(self, permit: Permit, clock: Clock, on_leave: Callable[[], None]) -> None:
        self.at: float | None = None
        self._on_leave = on_leave
        self._permit = permit
        self._clock = clock
        self._to_proxy = False

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Note that headers leave, unless they are those of a CONNECT, which only the proxy sees."""
        if event.endswith("send_request_headers.started"):
            self._to_proxy = getattr(info.get("request"), "method", b"") == b"CONNECT"
        elif not event.endswith("send_request_headers.complete"):
            return
        if not self._to_proxy:
            self.leave()

    def leave(self) -> None:
        """Charge the request as leaving now. May wait: see `Permit.sent`."""
        self._permit.sent()
        if self.at is None:
            self._on_leave()
        self.at = self._clock.monotonic()

    def answered(self) -> None:
        """Note how long the response took to begin, which bounds when the request arrived."""
        if self.at is not None:
            self._permit.answered(self._clock.monotonic() - self.at)

    def give_up(self) -> None:
        """Give the slot back if the request never left. If it did, it may arrive until now."""
        if self.at is None:
            self._permit.release()
        else:
            self.answered()


class OriginTransport(httpx.BaseTransport):
    """Refuses any request that would carry credentials away from the tenant's own scheme, host, port and paths (I2)."""

    def __init__(self, inner: httpx.BaseTransport, *, base_url: str) -> None:
        self._inner = inner
        base = httpx.URL(base_url)
        self._origin = origin_of(base)
        path = path_of(base).rstrip("/")
        self._prefixes = (f"{path}/api/", f"{path}/oauth/")
        self._allowed = " or ".join(f"{base.copy_with(raw_path=prefix.encode())}" for prefix in self._prefixes)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request on if it goes to the library; else raise `ForeignOriginError` and send nothing."""
        url, path = request.url, path_of(request.url)
        inside = origin_of(url) == self._origin and path.startswith(self._prefixes) and not climbs(path)
        if not inside or url.userinfo:
            raise ForeignOriginError(
                f"The service named {outside_text(url)}, which is not below its own {self._allowed}. Nothing was sent there: it "
                "would have received your sign-in. If the service moved, correct base_url; if not, write to its operators."
            )
        return self._inner.handle_request(request)

    def close(self) -> None:
        """Close the inner transport."""
        self._inner.close()


def origin_of(url: httpx.URL) -> tuple[str, bytes, int]:
    """Returns scheme, host and port, the default port filled in."""
    return url.scheme, url.raw_host, url.port or {"https": 443, "http": 80}.get(url.scheme, 0)


def path_of(url: httpx.URL) -> str:
    """Returns the path as it is sent. `url.path` has %2F decoded, which a server does not treat as a separator."""
    return url.raw_path.partition(b"?")[0].decode("ascii")


def climbs(path: str) -> bool:
    """Whether some server on the way might leave the folder, however the dots are encoded."""
    if "." not in path and "%" not in path:
        return False
    plain = unquote(unquote(path))
    return any(segment.partition(";")[0] in (".", "..") for segment in re.split(r"[/\\]", plain))

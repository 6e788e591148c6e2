"""Tells the end of version 2 (service.md#shutdown) from a wrong base_url, from a sign-in that is refused, and from an outage.

The document does not say what version 2 answers after its end. Version 2 counts as ended if it says 410; or if it
answers 404 for its list of publications, for other lists and for its description, while its last day is past or version 3 answers at the
same base_url.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from http import HTTPStatus

import httpx

from pipelines.errors import (
    AccessDeniedError,
    BookferryError,
    ProtocolError,
    RefusedError,
    SignInError,
    SignInPageError,
    VersionEndedError,
)
from pipelines.inventory import LAST_DAY_OF_V2
from pipelines.service.client import LibraryClient
from pipelines.service.http.failures import status_line

_EXPLAINED = (RefusedError, ProtocolError, SignInError, AccessDeniedError, SignInPageError)
"""What a request to an ended version may raise. Their subclasses have a cause of their own."""


@contextmanager
def end_of_v2_explained(client: LibraryClient, tenant: str) -> Iterator[None]:
    """Explains an error of requests to version 2 by its end, if that is the cause: raises `VersionEndedError` instead.

    Where the end is only possible, the error mentions it. Costs five requests at most, and none for version 3.
    """
    try:
        yield
    except _EXPLAINED as error:
        if type(error) not in _EXPLAINED or not client.api_url.endswith("/v2"):
            raise
        if hint := _hint(client, error, tenant):
            error.args = (f"{error} {hint}",)
        raise


def _hint(client: LibraryClient, error: BookferryError, tenant: str) -> str:
    """Returns what to add to an error, empty if it says enough. Raises `VersionEndedError` if version 2 has certainly ended."""
    today = client.clock.now().date()
    if not isinstance(error, RefusedError | ProtocolError):
        late = f"Version 2 was due to be shut down on {_LAST_DAY}. {_remedy(tenant)}"
        return late if today > LAST_DAY_OF_V2 else ""
    v2 = _ask(client, "v2/publications", signed_in=True)
    if v2 is None or v2.status_code not in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
        return ""
    v3 = _ask(client, "v3/publications")
    base_url = f"Is base_url ({_base_url(client)}) the library's address, without /api?"
    neither = "" if v3 is None or is_served(v3) else f"Version 3 is not there either ({status_line(v3)}). {base_url}"
    if v2_has_ended(v2, (_ask(client, f"v2/{path}", signed_in=True) for path in OTHER_PATHS), v3, today):
        asked = f"{v2.request.method} {v2.request.url.copy_with(query=None, userinfo=b'')}"
        ended = f"Version 2 of the API of '{tenant}' has ended: {asked} answered {status_line(v2)}. {_remedy(tenant)}"
        raise VersionEndedError(f"{ended} {neither}".rstrip()) from None
    return neither


def _base_url(client: LibraryClient) -> str:
    return client.api_url.removesuffix("/api/v2")


def _ask(client: LibraryClient, path: str, *, signed_in: bool = False) -> httpx.Response | None:
    try:
        return client.ask(f"{_base_url(client)}/api/{path}", {"per_page": 1}, signed_in=signed_in)
    except BookferryError:
        return None


OTHER_PATHS = ("swagger.yaml", "tasks", "collections")
"""What version 2 serves besides its list of publications: its description, and lists that it has with the same paths as version 3."""


def v2_has_ended(
    v2: httpx.Response, others: Iterable[httpx.Response | None], v3: httpx.Response | None, today: date
) -> bool:
    """Whether these responses mean that version 2 has ended: to its list of publications, to `OTHER_PATHS`, and to a list of version 3."""
    if v2.status_code == HTTPStatus.GONE:
        return True
    if not (today > LAST_DAY_OF_V2 or (v3 is not None and is_served(v3))):
        return False
    return all(each is not None and each.status_code == HTTPStatus.NOT_FOUND for each in (v2, *others))


def is_served(response: httpx.Response) -> bool:
    """Whether something at this address is the API: it answers, asks for a sign-in, or asks to wait."""
    return response.status_code in _SERVED and "html" not in response.headers.get("content-type", "").lower()


_SERVED = frozenset({HTTPStatus.OK, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS})


def _remedy(tenant: str) -> str:
    return (
        f'Sign in with version 3: in bookferry.toml, replace api = "v2" and the user name and password of \'{tenant}\' by api = "v3", then '
        f"run `bookferry login {tenant}`. The snapshots of version 2 stay, and `bookferry migrate plan SNAPSHOT TARGET` still moves them."
    )


_LAST_DAY = f"{LAST_DAY_OF_V2.day} {LAST_DAY_OF_V2:%B %Y}"

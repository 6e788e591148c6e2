"""Tells the end of version 2 (service.md#shutdown) from a wrong base_url, from a sign-in that is refused, and from an outage.

The document does not say what version 2 answers after its end. It counts as ended if it says 410; or if it answers 404 for its list of
publications and for its description, while its last day is past or version 3 answers at the same base_url.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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

    Where the end is only possible, the error mentions it. Costs three requests at most, and none for version 3.
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
    v3, description = _ask(client, "v3/publications"), _ask(client, "v2/swagger.yaml", signed_in=True)
    answers_v3 = (
        v3 is not None and v3.status_code in _SERVED and "html" not in v3.headers.get("content-type", "").lower()
    )
    neither = ""
    if v3 is not None and not answers_v3:
        base_url = f"Is base_url ({_base_url(client)}) the library's address, without /api?"
        neither = f"Version 3 is not there either ({status_line(v3)}). {base_url}"
    is_gone = description is not None and description.status_code == HTTPStatus.NOT_FOUND
    if v2.status_code == HTTPStatus.GONE or (is_gone and (answers_v3 or today > LAST_DAY_OF_V2)):
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


_SERVED = frozenset({HTTPStatus.OK, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS})
"""Version 3 is there: it answers, asks for a sign-in, or asks to wait."""


def _remedy(tenant: str) -> str:
    return (
        f'Sign in with version 3: in bookferry.toml, replace api = "v2" and the user name and password of \'{tenant}\' by api = "v3", then '
        f"run `bookferry login {tenant}`. The snapshots of version 2 stay, and `bookferry migrate plan SNAPSHOT TARGET` still moves them."
    )


_LAST_DAY = f"{LAST_DAY_OF_V2.day} {LAST_DAY_OF_V2:%B %Y}"

"""Asks the library again where a file is to be had: for an address that has expired, or that a page did not bring (trap A11)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus

from pipelines.errors import AccessDeniedError, ProtocolError, RefusedError, TemporaryError
from pipelines.records.files import ASSET, FileReference, asset_reference, file_references
from pipelines.service.client import LibraryClient
from pipelines.service.files.download import Failed

MAX_USELESS = 50
"""Answers in a row that did not help, until nobody is asked any more: each costs a request of the budget."""


class SignedUrls:
    """One request for one address. Safe to use from several threads.

    `client` opens the library's client when it is first needed. Who is told that this sign-in may not ask does not ask again.
    """

    def __init__(self, client: Callable[[], LibraryClient]) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._first = threading.Lock()
        self._in_vain = 0
        self._refusal = ""

    def ask(self, wanted: FileReference) -> str | Failed:
        """The address of a file as the library names it now. Raises `SignInError` where a person must sign in."""
        if wanted.address is not None:
            return self._ask(wanted)
        with self._first:  # one at a time: a sign-in that may not read files is told so by one request
            return self._ask(wanted)

    def mark_useful(self) -> None:
        """What came of asking was good."""
        with self._lock:
            self._in_vain = 0

    def _ask(self, wanted: FileReference) -> str | Failed:
        if self._refusal:
            return Failed(self._refusal)
        with self._lock:
            self._in_vain += 1
            if self._in_vain > MAX_USELESS:
                self._refusal = f"no fresh address was asked for, after {MAX_USELESS} in a row that did not help"
                return Failed(self._refusal)
        try:
            return self._answer(wanted)
        except AccessDeniedError as error:
            self._refusal = str(error)
            return Failed(self._refusal)
        except (RefusedError, ProtocolError, TemporaryError) as error:
            gone = isinstance(error, RefusedError) and error.status == HTTPStatus.NOT_FOUND
            why = "gone from the library since it was listed: " if gone else ""
            return Failed(f"{why}{error}", temporary=isinstance(error, TemporaryError))

    def _answer(self, wanted: FileReference) -> str | Failed:
        """service-api.md: `GET /assets/:id`; a cover is a part of its publication."""
        client = self._client()
        if wanted.kind == ASSET and wanted.asset_id is not None:
            path = f"/assets/{wanted.asset_id}"
            found = [asset_reference(client.get(f"{client.api_url}{path}").content, wanted.publication_id)]
        elif wanted.publication_id is not None:
            path = f"/publications/{wanted.publication_id}"
            found = [*file_references(client.get(f"{client.api_url}{path}").content)]
        else:
            return Failed("the record has no id, by which a fresh address could be asked for")
        same = [one for one in found if one is not None and _is_same(one, wanted)]
        if not same:
            return Failed(
                f"replaced or removed since it was listed, says GET {path}; the next backup has what is there now"
            )
        address = next((one.address for one in same if one.address is not None), None)
        return address or Failed(
            f"GET {path} gives no address (url) for it either: the sign-in may lack the right to read files (v3: the scope assets:read), "
            "or the library has lost the file"
        )


def _is_same(found: FileReference, wanted: FileReference) -> bool:
    """Whether it is the same content; where its address is a part of its key, one that came without is known by all the rest."""
    if wanted.address is not None:
        return found.content_key == wanted.content_key
    return (found.kind, found.asset_id, found.size) == (wanted.kind, wanted.asset_id, wanted.size)

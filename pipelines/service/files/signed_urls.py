"""Asks the library for a new signed address of a file, if the address has expired or the page had none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from http import HTTPStatus
from typing import TypeVar

from pipelines.errors import AccessDeniedError, ProtocolError, RefusedError, TemporaryError
from pipelines.records.files import ASSET, FileReference, asset_reference, file_references, resolved
from pipelines.service.client import LibraryClient
from pipelines.service.files.download import DownloadError

MAX_USELESS = 50
"""New addresses in a row that did not help, until no more are requested: each costs a request of the budget."""


MOST_ADDRESSES = 2
"""Fresh addresses per file at most."""

Content = TypeVar("Content")


class SignedUrls:
    """Requests new addresses, one request for each. Safe to use from several threads.

    After a refusal for lack of rights, nothing more is requested.
    """

    def __init__(self, client: LibraryClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._first = threading.Lock()
        self._in_vain = 0
        self._refusal = ""

    def fetch(self, reference: FileReference, address: str | None, download: Callable[[str], Content]) -> Content:
        """Download a file from an address; a fresh one replaces a missing or expired one. Raises `DownloadError`."""
        asked, before = 0, ""
        while True:
            if address is not None:
                try:
                    content = download(address)
                except DownloadError as error:
                    if not error.expired or asked == MOST_ADDRESSES:
                        raise
                    before = f"{error}; "
                else:
                    self._in_vain = 0 if asked else self._in_vain
                    return content
            try:
                address, asked = self._ask(reference), asked + 1
            except DownloadError as error:
                raise DownloadError(f"{before}{error}", may_pass=error.may_pass) from None

    def _ask(self, reference: FileReference) -> str:
        """Return the address of a file as the library names it now. Raises `SignInError` if a person must sign in."""
        # one at a time where a page has no addresses: one request shows that a sign-in may not read files
        with self._first if reference.address is None else nullcontext():
            if self._refusal:
                raise DownloadError(self._refusal)
            with self._lock:
                self._in_vain += 1
                if self._in_vain > MAX_USELESS:
                    self._refusal = f"no new address was requested, after {MAX_USELESS} in a row that did not help"
                    raise DownloadError(self._refusal)
            try:
                return self._answer(reference)
            except AccessDeniedError as error:
                self._refusal = f"no address was requested for it, because that of another file was refused: {error}"
                raise DownloadError(str(error)) from None
            except (RefusedError, ProtocolError, TemporaryError) as error:
                gone = isinstance(error, RefusedError) and error.status == HTTPStatus.NOT_FOUND
                why = "gone from the library since it was listed: " if gone else ""
                raise DownloadError(f"{why}{error}", may_pass=isinstance(error, TemporaryError)) from None

    def _answer(self, reference: FileReference) -> str:
        """Return the address in the asset's record; a cover is a part of its publication (service.md#assets, service.md#covers)."""
        client, is_asset = self._client, reference.kind == ASSET and reference.asset_id is not None
        if not is_asset and reference.publication_id is None:
            raise DownloadError("the record has no id, so no new address can be requested")
        path = f"/assets/{reference.asset_id}" if is_asset else f"/publications/{reference.publication_id}"
        answer = client.get(f"{client.api_url}{path}")
        references = (
            [asset_reference(answer.content, reference.publication_id)] if is_asset else file_references(answer.content)
        )
        files = (resolved(file, str(answer.request.url)) for file in references if file is not None)
        same = [file for file in files if _is_same(file, reference)]
        if not same:
            raise DownloadError(
                f"replaced or removed since it was listed, says GET {path}; the next backup has what is there now"
            )
        address = next((file.address for file in same if file.address is not None), None)
        if address is None:
            raise DownloadError(
                f"GET {path} gives no address (url) for it either: the sign-in may lack the right to read files (v3: the scope "
                "assets:read), or the library has lost the file"
            )
        return address


def _is_same(shown: FileReference, reference: FileReference) -> bool:
    """Whether both references name the same content.

    A key that was made without the address is compared without it. One made from a relative address differs between two answers.
    """
    if reference.address is not None:
        return shown.content_key == reference.content_key or (
            (shown.kind, shown.asset_id, shown.size) == (reference.kind, reference.asset_id, reference.size)
            and shown.address is not None
            and shown.address.partition("?")[0] == reference.address.partition("?")[0]
        )
    return (shown.kind, shown.asset_id, shown.size) == (reference.kind, reference.asset_id, reference.size)

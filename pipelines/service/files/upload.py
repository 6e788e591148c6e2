"""Uploads one file: a signed form from the API, then the bytes to the storage service (service.md#upload).

A storage service never gets a sign-in (I2). No message shows a field of a form, because it gives the right to write (I10). An upload that
ended unclearly is repeated under another key: a file in the cache belongs to no record yet.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from http import HTTPStatus
from typing import Any, BinaryIO, Self

import httpx

from pipelines.errors import BookferryError, ProtocolError, RefusedError, TemporaryError
from pipelines.service.client import LibraryClient
from pipelines.service.files.presigned_form import STORED, PresignedForm, PresignResponse
from pipelines.service.files.storage_client import (
    HEADERS,
    StorageClient,
    UnsafeAddressError,
    file_retries,
    origin_text,
    s3_error,
)
from pipelines.service.http.failures import is_permanent, is_temporary, status_line, transport_error_text
from pipelines.service.http.responses import as_object
from pipelines.service.http.retries import FailedTryError
from pipelines.service.http.retry_after import retry_after
from pipelines.service.http.urls import url_of

STALL_SECONDS = 120.0
"""Seconds without a single byte in either direction; a storage service may need some time for a large file before it answers."""


_TEMPORARY = frozenset({"RequestTimeout"})
_EXPIRED = frozenset({"ExpiredToken"})
"""S3's error codes of a 400 that say more than the status."""


_SAME_AGAIN = frozenset({HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT})
"""Redirects that ask for the same request with the same body (RFC 9110, 15.4.8 and 15.4.9)."""


class UnavailableStorageError(TemporaryError):
    """A storage service did not take a file in several tries. The library itself may well be there."""


class StorageRefusalError(RefusedError):
    """A storage service does not take a file. The library issued a form for it, so this is no word on how it takes files."""


class _RetryError(FailedTryError):
    """A try failed, and another form may succeed. `final` is the error if there is no other try."""

    def __init__(self, final: BookferryError, *, pause: float | None = None) -> None:
        super().__init__(str(final), may_pass=True, pause=pause)
        self.final = final


class Uploads:
    """Sends files to the storage service that the library names. Safe to use from several threads; `close` ends running uploads."""

    def __init__(self, client: LibraryClient) -> None:
        self._client = client
        self._clock = client.clock
        self._storages = StorageClient(client.api_url, client)

    def upload(
        self,
        open_file: Callable[[], AbstractContextManager[BinaryIO]],
        *,
        presign: str,
        filename: str,
        content_type: str,
        size: int,
        sha256: str | None = None,
    ) -> dict[str, Any]:
        """Upload a file; return the library's reference to it: `{id, storage: "cache", metadata}`.

        `presign`: the address that signs the form, below the API's. `open_file` opens the file anew for each try.

        Raises `StorageRefusalError` if the storage service refuses this file, `UnavailableStorageError` if it did not recover in time,
        `StorageError` if the file does not have this size or the given SHA-256, `ProtocolError` for an unusable form, and the errors of
        `client.get`. After any error, no record of the library has the file.
        """
        filename = filename.encode(errors="replace").decode()
        content: dict[str, Any] = {"size": size, "sha256": sha256, "filename": filename, "content_type": content_type}

        def try_once() -> str:
            form = self._presigned(presign, filename, content_type)
            url = form.url
            for _ in range(2):  # the storage may want the same form elsewhere
                with open_file() as file:
                    elsewhere = self._send(form, url, PresignedForm(form.fields, file, **content))
                if elsewhere is None:
                    return form.file_id
                url = elsewhere
            raise _not_taken(f"POST {origin_text(form.url)} was redirected twice")

        try:
            file_id = file_retries(self._clock)(try_once)
        except _RetryError as error:
            raise error.final from None
        metadata = {"size": size, "filename": filename, "mime_type": content_type}
        return {"id": file_id, "storage": "cache", "metadata": metadata}

    def close(self) -> None:
        """Close all connections to storage services, and wake every thread that waits for one of them. The client stays open."""
        self._storages.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _presigned(self, presign: str, filename: str, content_type: str) -> PresignResponse:
        params = {"filename": filename, "type": content_type}
        answer = self._client.get(f"{self._client.api_url}/{presign}", params)
        return PresignResponse.read(as_object(answer), presign)

    def _send(self, form: PresignResponse, url: httpx.URL, body: PresignedForm) -> httpx.URL | None:
        """Try once. Returns where the storage wants the same form instead (307, 308).

        A request to the library's own host is charged to its budget (I1) and has no sign-in either.
        """
        asked = f"POST {origin_text(url)}"
        try:
            request = httpx.Request("POST", url, headers={**HEADERS, **body.headers}, content=body)
            with closing(self._storages.send(request, seconds=STALL_SECONDS)) as response:
                if response.status_code in _SAME_AGAIN and response.has_redirect_location:
                    return url_of(url.join(response.headers["location"]))
                self._check(asked, form, response)
                return None
        except UnsafeAddressError as error:
            problem = f"The file was not sent: {error}"
            raise (ProtocolError(f"{problem}.") if url == form.url else _not_taken(problem)) from None
        except (httpx.InvalidURL, ValueError):
            raise _not_taken(f"{asked} was redirected to an address that cannot be understood") from None
        except httpx.TransportError as error:
            problem = f"{asked}: {transport_error_text(error)}"
            if is_permanent(error):
                raise _not_taken(
                    f"{problem}; the file was not sent. Does this machine trust the storage's certificate?"
                ) from None
            raise _RetryError(_gave_up(problem)) from None

    def _check(self, asked: str, form: PresignResponse, response: httpx.Response) -> None:
        status, (code, message) = response.status_code, s3_error(response)
        if status in STORED and not response.headers.get("content-type", "").startswith("text/html"):
            return  # a page would be that of a proxy, or of somebody's sign-in
        code, message = form.redacted(code), form.redacted(message)
        words = ": ".join(filter(None, (code, message)))
        problem = f"{asked} answered {form.redacted(status_line(response))}" + (f" ({words})" if words else "")
        if is_temporary(status) or code in _TEMPORARY:
            raise _RetryError(_gave_up(problem), pause=retry_after(response, self._clock.now()))
        if not response.is_client_error:
            raise _not_taken(f"{problem}, where 204 was expected: the file counts as not uploaded", status)
        final = StorageRefusalError(
            f"{problem}: the storage service does not take this file.", status=status, code=code, detail=message
        )
        if status == HTTPStatus.FORBIDDEN or code in _EXPIRED:
            raise _RetryError(final, pause=0.0)
        raise final


def _not_taken(problem: str, status: int = 0) -> StorageRefusalError:
    """What a storage answers to one file is about that file: the others may go elsewhere."""
    return StorageRefusalError(f"{problem.rstrip('.?')}.", status=status)


def _gave_up(problem: str) -> UnavailableStorageError:
    return UnavailableStorageError(
        f"{problem.rstrip('.?')}. The file was not uploaded, although it was tried again. Run the same command again later."
    )

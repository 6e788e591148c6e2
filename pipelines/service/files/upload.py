"""One file into the library: a signed form from the API, then the bytes to the storage service (service-api.md, Upload sequence 2 to 4).

Storage never sees a sign-in (I2, trap A1). No field of a form is ever told: whoever has them may write (I10). An upload that ended
unclearly is simply done again under another key: what lies in the cache belongs to no record yet.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from http import HTTPStatus
from typing import Any, BinaryIO, Literal, Self

import httpx

from pipelines.errors import BookferryError, ProtocolError, RefusedError, TemporaryError
from pipelines.service.client import LibraryClient
from pipelines.service.files.presigned_form import STORED, PresignedForm, PresignResponse
from pipelines.service.files.storage_client import (
    HEADERS,
    MAX_PAUSE,
    TRIES,
    StorageClient,
    UnsafeAddressError,
    origin_text,
    s3_error,
)
from pipelines.service.http.failures import is_permanent, is_temporary, status_line, transport_error_text
from pipelines.service.http.responses import as_object
from pipelines.service.http.retries import backoff
from pipelines.service.http.retry_after import retry_after

Presign = Literal["assets/presign", "publications/cover/presign"]

MAX_EXPIRED = 2
"""Forms that may turn out to have expired: the file may wait for the budget, or take its time, but hardly thrice."""

STALL_SECONDS = 120.0
"""Without a single byte going or coming; a storage may take some time over a large file before it answers."""


_PASSING = frozenset({"RequestTimeout"})
_EXPIRED = frozenset({"ExpiredToken"})
"""S3's codes of a 400 that say what their status does not."""


class _RetryError(Exception):
    """A try that failed where another form may do. `expired`: because of the form. `final` is the error if there is no other try."""

    def __init__(self, final: BookferryError, *, expired: bool = False, pause: float | None = None) -> None:
        super().__init__(str(final))
        self.final = final
        self.expired = expired
        self.pause = pause


class Uploads:
    """Sends files to the storage that the library names. Safe to use from several threads; `close` ends what is under way."""

    def __init__(self, client: LibraryClient) -> None:
        self._client = client
        self._clock = client.clock
        self._storages = StorageClient(client.api_url)

    def upload(
        self,
        stored: Callable[[], AbstractContextManager[BinaryIO]],
        *,
        presign: Presign,
        filename: str,
        content_type: str,
        size: int,
        sha256: str | None = None,
    ) -> dict[str, Any]:
        """Upload what `stored` opens anew for each try; what names it to the library: `{id, storage: "cache", metadata}`.

        Raises `RefusedError` where the library or the storage refuses this file, `TemporaryError` when the storage did not recover in
        time, `StorageError` where the kept file has not this size or, if it is given, not this SHA-256, `ProtocolError` on a form that
        cannot be used, and what `client.get` raises. Whatever it raises, no record of the library has the file.
        """
        filename = filename.encode(errors="replace").decode()
        tried = expired = 0
        while True:
            try:
                with stored() as file:
                    form = self._presigned(presign, filename, content_type)
                    form.check_size(size)
                    described = {"filename": filename, "content_type": content_type}
                    self._send(form, PresignedForm(form.fields, file, size=size, sha256=sha256, **described))
            except _RetryError as error:
                tried, expired = tried + (not error.expired), expired + error.expired
                if tried == TRIES or expired > MAX_EXPIRED or (error.pause or 0.0) > MAX_PAUSE:
                    raise error.final from None
                if not error.expired:
                    self._clock.sleep(error.pause or backoff(tried))
            else:
                metadata = {"size": size, "filename": filename, "mime_type": content_type}
                return {"id": form.file_id, "storage": "cache", "metadata": metadata}

    def close(self) -> None:
        """Close all connections to storages, and wake whoever waits for one of them. The client stays open."""
        self._storages.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _presigned(self, presign: Presign, filename: str, content_type: str) -> PresignResponse:
        params = {"filename": filename, "type": content_type}
        answer = self._client.get(f"{self._client.api_url}/{presign}", params)
        return PresignResponse.read(as_object(answer), presign)

    def _send(self, form: PresignResponse, body: PresignedForm) -> None:
        """One try. What is on the library's own host is charged to its budget (I1), and goes without a sign-in, too."""
        asked = f"POST {origin_text(form.url)}"
        try:
            self._storages.check(form.url)
            request = httpx.Request("POST", form.url, headers={**HEADERS, **body.headers}, content=body)
            with closing(self._answer(request)) as response:
                self._check(asked, form, response)
        except UnsafeAddressError as error:
            raise ProtocolError(f"The file was not sent: {error}.") from None
        except httpx.TransportError as error:
            problem = f"{asked}: {transport_error_text(error)}"
            if is_permanent(error):
                raise ProtocolError(
                    f"{problem}; the file was not sent. Does this machine trust the storage's certificate?"
                ) from None
            raise _RetryError(_gave_up(problem)) from None

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if self._storages.is_own_host(request.url):
            return self._client.send_unsigned(request)
        return self._storages.send(request, seconds=STALL_SECONDS)

    def _check(self, asked: str, form: PresignResponse, response: httpx.Response) -> None:
        status, (code, message) = response.status_code, s3_error(response)
        if status in STORED:
            return
        code, message = form.told(code), form.told(message)
        words = ": ".join(filter(None, (code, message)))
        problem = f"{asked} answered {form.told(status_line(response))}" + (f" ({words})" if words else "")
        if is_temporary(status) or code in _PASSING:
            raise _RetryError(_gave_up(problem), pause=retry_after(response, self._clock.now()))
        if not response.is_client_error:
            raise ProtocolError(
                f"{problem}, where 204 was expected: the file counts as not uploaded. Redirects are not followed."
            )
        final = RefusedError(
            f"{problem}: the storage does not take this file.", status=status, code=code, detail=message
        )
        if status == HTTPStatus.FORBIDDEN or code in _EXPIRED:
            raise _RetryError(final, expired=True)
        raise final


def _gave_up(problem: str) -> TemporaryError:
    return TemporaryError(
        f"{problem}. The file was not uploaded, although it was tried again. Run the same command again later."
    )

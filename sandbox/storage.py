"""The files of a tenant: upload forms, the step from an upload to a file, and download addresses.

The storage service has the bytes, on another origin: a port of its own.

To attach a file to a record (asset, cover, avatar), call ``promote`` outside of a transaction.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from werkzeug.wrappers import Request, Response

from sandbox.clock import Clock
from sandbox.errors import storage_not_found
from sandbox.objects.disposition import inline
from sandbox.objects.object_store import respond
from sandbox.objects.signatures import sign_address, sign_form
from sandbox.state.blobs import STORE, Blobs, StoredFile, new_file_id, suffix

# The path of a request to the storage service in the log and for the pattern of a fault
STORAGE = "/storage/"
CACHE = "cache/"

# Assumption: how long an upload form and a download address are valid
_FORM_SECONDS = 3600
_FORM_BYTES = 5 * 1024**3  # the most that S3 takes at once
_ADDRESS_SECONDS = 900


class Storage:
    """One tenant's files."""

    def __init__(self, blobs: Blobs, signing_key: bytes, clock: Clock, *, port: int) -> None:
        self._blobs = blobs
        self._clock = clock
        self._port = port
        self._signing_key = signing_key

    def url(self, base_url: str, file_id: str) -> str:
        """Returns an address that downloads a file without sign-in."""
        path, expires_at = f"{STORE}{file_id}", int(self._clock.now()) + _ADDRESS_SECONDS
        address = f"{self.address(base_url)}/{quote(path)}"
        return sign_address(self._signing_key, address, f"/{self._blobs.name}/{path}", expires_at=expires_at)

    def presign(self, base_url: str, place: str, *, filename: str | None, mime_type: str | None) -> dict[str, Any]:
        """Returns ``{url, fields}`` of a form that uploads one file; ``place`` is the first folder of its id.

        The id contains another ``cache/``: a client must remove only the leading one.
        """
        key = f"{CACHE}{place}/{CACHE}{secrets.token_hex(16)}{suffix(filename or '')}"
        fields = {
            "key": key,
            **({"Content-Disposition": inline(filename)} if filename is not None else {}),
            **({"Content-Type": mime_type} if mime_type is not None else {}),
        }
        expires_at = self._clock.now() + _FORM_SECONDS
        signed = sign_form(self._signing_key, fields, expires_at=expires_at, most=_FORM_BYTES)
        return {"url": self.address(base_url), "fields": signed}

    def promote(self, file_id: str, metadata: Mapping[str, Any]) -> StoredFile:
        """Makes a file of the upload ``cache/<file_id>``, or raises the storage not-found error.

        Size is that of the upload; file name and type are those of ``metadata``, else of the upload. The upload stays, so that a client
        can send the same id again after a lost response.
        """
        uploaded = self._blobs.find(f"{CACHE}{file_id}")
        if uploaded is None:
            raise storage_not_found(file_id)
        name = metadata.get("filename", uploaded.filename)
        mime_type = metadata.get("mime_type") or uploaded.mime_type
        file = {"id": new_file_id(name), "filename": name, "mime_type": mime_type, "size": uploaded.size}
        self._blobs.add(uploaded.content, file)
        return file

    def address(self, base_url: str) -> str:
        """Returns the address of the tenant's bucket for this address of the library."""
        parts = urlsplit(base_url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{parts.scheme}://{host}:{self._port}/{quote(self._blobs.name)}"

    def respond(self, request: Request, path: str) -> Response:
        """Answers a request to the bucket; ``path`` is ``/storage/`` and the key."""
        return respond(request, path.removeprefix(STORAGE), self._blobs, self._signing_key, self._clock.now())

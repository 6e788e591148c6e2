"""The files of a tenant: upload forms, the step from an upload to a file, and download addresses.

The storage service has the bytes, on another origin: a port of its own or, in process, the host ``storage.`` before the
library's own. A setting sends uploads to an external store instead, where they stay.

To attach a file to a record (asset, cover, avatar), call ``promote`` outside of a transaction. Inside the transaction,
``sandbox.state.blobs.file_key`` returns the value of the record's column.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from werkzeug.wrappers import Request, Response

from sandbox.clock import Clock
from sandbox.errors import storage_not_found, unprocessable
from sandbox.objects.disposition import inline
from sandbox.objects.external_store import ExternalStore
from sandbox.objects.object_store import respond
from sandbox.objects.policy import sign_form
from sandbox.objects.sigv4 import Keys, presigned_url
from sandbox.settings import Settings
from sandbox.state.blobs import STORE, Blobs, StoredFile, new_file_id, suffix

# The path of a request to the storage service in the log and for the pattern of a fault
STORAGE = "/storage/"
HOST = "storage."
CACHE = "cache/"

# The id of a file in an external store begins like this
_EXTERNAL = "elsewhere/"


class Storage:
    """One tenant's files."""

    def __init__(
        self, blobs: Blobs, signing_key: bytes, clock: Clock, *, port: int | None, external_store: ExternalStore | None
    ) -> None:
        self._blobs = blobs
        self._clock = clock
        self._port = port
        self._external_store = external_store
        self.keys = derive_keys(signing_key)

    def url(self, base_url: str, file_id: str, seconds: int) -> str:
        """Returns an address that downloads a file for `seconds` without sign-in."""
        if self._external_store and file_id.startswith(_EXTERNAL):
            _, _, key = file_id.removeprefix(_EXTERNAL).partition("/")
            address = self._external_store.object_address(key)
            return presigned_url(self._external_store.keys, address, self._clock.now(), seconds)
        address = f"{self.address(base_url)}/{STORE}{quote(file_id)}"
        return presigned_url(self.keys, address, self._clock.now(), seconds)

    def presign(
        self, base_url: str, place: str, *, filename: str | None, mime_type: str | None, settings: Settings
    ) -> dict[str, Any]:
        """Returns ``{url, fields}`` of a form that uploads one file; ``place`` is the first folder of its id.

        The id contains another ``cache/``: a client must remove only the leading one.
        """
        key = f"{CACHE}{place}/{CACHE}{secrets.token_hex(16)}{suffix(filename or '')}"
        fields = {
            "key": key,
            **({"Content-Disposition": inline(filename)} if filename is not None else {}),
            **({"Content-Type": mime_type} if mime_type is not None else {}),
        }
        if store := self._external_store:
            keys, bucket, address = store.keys, store.bucket, store.address
        else:
            keys, bucket, address = self.keys, self._blobs.name, self.address(base_url)
        sizes = (0, settings.upload_bytes)
        signed = sign_form(keys, bucket, fields, now=self._clock.now(), seconds=settings.upload_seconds, sizes=sizes)
        return {"url": address, "fields": signed}

    def promote(
        self, file_id: str, metadata: Mapping[str, Any] | None = None, *, empty_names: str = "kept"
    ) -> StoredFile:
        """Makes a file of the upload ``cache/<file_id>``, or raises the storage not-found error.

        Size is that of the upload; file name and type are those of ``metadata``, else of the upload. The upload stays, so that a client
        can send the same id again after a lost response. ``empty_names``: whether an empty file name is kept, replaced or refused.
        """
        key = f"{CACHE}{file_id}"
        if empty_names == "refused" and metadata is not None and metadata.get("filename") == "":
            raise unprocessable("file.metadata.filename: must not be empty")
        if empty_names == "replaced" and metadata is not None and not metadata.get("filename"):
            metadata = {name: value for name, value in metadata.items() if name != "filename"}
        if self._external_store:
            return self._promote_external(self._external_store, key, metadata or {})
        found = self._blobs.find(key)
        if found is None:
            raise storage_not_found(file_id)
        file = _stored_file(metadata or {}, found.filename, found.content_type, found.size)
        if not self._blobs.add_file(key, file):
            raise storage_not_found(file_id)
        return file

    def _promote_external(self, external_store: ExternalStore, key: str, metadata: Mapping[str, Any]) -> StoredFile:
        """Makes a file of an upload in the external store, where it stays."""
        found = external_store.head(key, self._clock.now())
        if found is None:
            raise storage_not_found(key.removeprefix(CACHE))
        name = found.filename or key.rpartition("/")[2]
        seen = _stored_file(metadata, name, found.content_type, found.size)
        # An upload may be used twice; the random part keeps the ids of its files different
        file = StoredFile(f"{_EXTERNAL}{secrets.token_hex(8)}/{key}", seen.filename, seen.mime_type, seen.size)
        self._blobs.add_external_file(file)
        return file

    def address(self, base_url: str) -> str:
        """Returns the address of the tenant's bucket for this address of the library."""
        parts = urlsplit(base_url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        netloc = f"{HOST}{parts.netloc}" if self._port is None else f"{host}:{self._port}"
        return f"{parts.scheme}://{netloc}/{quote(self._blobs.name)}"

    def respond(self, request: Request, path: str, settings: Settings) -> Response:
        """Answers a request to the bucket; ``path`` is ``/storage/`` and the key."""
        head_with_get = settings.variations.storage_head == "answered"
        key = path.removeprefix(STORAGE)
        return respond(request, key, self._blobs, self.keys, self._clock.now(), head_with_get=head_with_get)


def derive_keys(signing_key: bytes) -> Keys:
    """Returns the keys of a tenant's bucket, which never change."""
    name = base64.b32encode(hashlib.sha256(signing_key).digest()).decode()[:16]
    secret = base64.b64encode(hmac.new(signing_key, b"storage", hashlib.sha256).digest()).decode()[:40]
    return Keys(f"SBOX{name}", secret)


def _stored_file(metadata: Mapping[str, Any], filename: str, mime_type: str | None, size: int) -> StoredFile:
    name = metadata.get("filename", filename)
    return StoredFile(new_file_id(name), name, metadata.get("mime_type") or mime_type, size)

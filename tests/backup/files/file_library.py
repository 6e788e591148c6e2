"""A library with files and the storage of their content, each on a real socket, both controlled by the test."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Self

import pyarrow.parquet as pq

from pipelines.store.snapshots.snapshots import Snapshot
from tests.service.scripted import Answer, Received, ScriptedServer

PER_PAGE = 50

SIGNATURE = "X-Amz-Signature"

RELATIVE = ("/", ".", "?", "relative/")
"""Beginnings of addresses that are sent as they are."""


class FileLibrary:
    """Publications by id, and the storage's responses by path. `issue` is the number in the current signatures."""

    def __init__(self) -> None:
        self.publications: dict[int, dict[str, Any]] = {}
        self.stored: dict[str, bytes | Callable[[Received], Answer]] = {}
        self.issue = 1
        self.expired = 0
        """Signatures up to this number have expired."""
        self.refusals: dict[str, Answer] = {}
        """Path of the API → the response that replaces the normal one."""

    def __enter__(self) -> Self:
        self._servers = ExitStack()
        self.library = self._servers.enter_context(ScriptedServer(self._answer))
        self.storage = self._servers.enter_context(ScriptedServer(self._serve_file))
        return self

    def __exit__(self, *_: object) -> None:
        self._servers.close()

    def add(self, content: bytes, *, name: str | None = None, **changes: Any) -> int:
        """Add a publication with one stored asset. Returns its id. `changes`: fields of the asset."""
        number = len(self.publications) + 1
        file_id = name or f"file-{number}"
        self.stored[f"/{file_id}"] = content
        asset = {
            "id": 1000 + number,
            "publication_id": number,
            "name": f"File {number}",
            "content_type": "text/plain",
            "file": stored_file(file_id, len(content)),
            "url": file_id,
            **changes,
        }
        self.publications[number] = {"id": number, "title": f"Title {number}", "cover": None, "assets": [asset]}
        return number

    def fetched(self) -> list[str]:
        """Requested paths of the storage, in order."""
        return [request.path for request in self.storage.received]

    def asked(self) -> list[str]:
        """Requested paths of the API, without the pages of the listing."""
        paths = [request.path.removeprefix("/api/v2") for request in self.library.received]
        return [path for path in paths if path != "/publications/all"]

    def start_over(self) -> None:
        """Clear the requests and renew the signatures, for another backup."""
        self.library.received.clear()
        self.storage.received.clear()
        self.issue += 1

    def listed(self) -> list[dict[str, Any]]:
        """All publications, in the order of the list."""
        return list(self.publications.values())

    def _answer(self, request: Received) -> Answer:
        path = request.path.removeprefix("/api/v2")
        if path in self.refusals:
            return self.refusals[path]
        if path.removesuffix("/") == "/publications/all" and "page" in request.query:
            page = int(request.query["page"])
            records = self.listed()[(page - 1) * PER_PAGE : page * PER_PAGE]
            total = {"x-total": str(len(self.publications))}
            return Answer({"records": [self._signed(record) for record in records]}, headers=total)
        if (stored := self.stored.get(request.path)) is not None:
            return Answer(stored) if isinstance(stored, bytes) else stored(request)
        if (
            path.startswith("/publications/")
            and path[14:].isdigit()
            and (record := self.publications.get(int(path.rpartition("/")[2])))
        ):
            return Answer(self._signed(record))
        for publication in self.publications.values():
            for asset in publication["assets"]:
                if path == f"/assets/{asset['id']}":
                    return Answer(self._signed(asset))
        return Answer({"error": {"code": "RecordNotFound"}}, status=404)

    def _signed(self, value: Any) -> Any:
        """Returns the value with signed addresses in place of the paths of files."""
        if isinstance(value, list):
            return [self._signed(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        signed = {key: self._signed(member) for key, member in value.items()}
        if isinstance(path := signed.get("url"), str) and "://" not in path:
            signed["url"] = (
                f"{self.storage.url}/{path}?{SIGNATURE}={self.issue}" if not path.startswith(RELATIVE) else path
            )
        return signed

    def _serve_file(self, request: Received) -> Answer:
        if int(request.query.get(SIGNATURE, "0")) <= self.expired:
            return Answer(b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>", status=403)
        stored = self.stored.get(request.path)
        if stored is None:
            return Answer(b"<Error><Code>NoSuchKey</Code></Error>", status=404)
        return Answer(stored, headers={"etag": '"1"'}) if isinstance(stored, bytes) else stored(request)


def stored_file(file_id: str | None, size: int | None) -> dict[str, Any]:
    """The description of a file in a record."""
    metadata = {"size": size, "filename": "../../../etc/passwd", "mime_type": "text/plain"}
    return {"id": file_id, "storage": "store", "metadata": metadata}


def cut(_request: Received) -> Answer:
    """A response whose body ends too early."""
    return Answer(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nnot a hundred")


def files_of(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Rows of `publication_files`."""
    rows: list[dict[str, Any]] = pq.read_table(snapshot.path / "publication_files.parquet").to_pylist()
    return rows

"""A library of a few publications with files, and the storage of their bytes, each on a real socket, both doing what a test says."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq

from pipelines.backup.flow import Backup
from pipelines.service.clock import Clock
from pipelines.store.snapshots.snapshots import Snapshot
from tests.service.scripted import Answer, Received, ScriptedServer

PER_PAGE = 50

CONFIG = """
data = "library-data"
[tenants.old]
base_url = "{base_url}"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
requests_per_minute = 100000
{more}
"""

SIGNATURE = "X-Amz-Signature"


class Shelf:
    """Publications by their id, and what the storage answers by its path. `issue` is the number in every signature given out."""

    def __init__(self) -> None:
        self.publications: dict[int, dict[str, Any]] = {}
        self.stored: dict[str, bytes | Callable[[Received], Answer]] = {}
        self.issue = 1
        self.expired = 0
        """Signatures up to this number are refused."""
        self.refusals: dict[str, Answer] = {}
        """Path of the API → what it answers instead."""

    def __enter__(self) -> Self:
        self._held = ExitStack()
        self.library = self._held.enter_context(ScriptedServer(self._answer))
        self.storage = self._held.enter_context(ScriptedServer(self._give))
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def add(self, content: bytes, *, name: str | None = None, **changes: Any) -> int:
        """One more publication with one asset, which is stored; its id. `changes` are to the asset."""
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
        """Paths that the storage was asked for, in order."""
        return [one.path for one in self.storage.received]

    def asked(self) -> list[str]:
        """Paths below the API that the library was asked for, without the pages."""
        paths = [one.path.removeprefix("/api/v2") for one in self.library.received]
        return [path for path in paths if path != "/publications/all"]

    def forget(self) -> None:
        """A new night: nobody was asked for anything, and signatures are new."""
        self.library.received.clear()
        self.storage.received.clear()
        self.issue += 1

    def _answer(self, request: Received) -> Answer:
        path = request.path.removeprefix("/api/v2")
        if path in self.refusals:
            return self.refusals[path]
        if path == "/publications/all":
            page = int(request.query["page"])
            records = list(self.publications.values())[(page - 1) * PER_PAGE : page * PER_PAGE]
            total = {"x-total": str(len(self.publications))}
            return Answer({"records": [self._signed(one) for one in records]}, headers=total)
        if path.startswith("/publications/") and (found := self.publications.get(int(path.rpartition("/")[2]))):
            return Answer(self._signed(found))
        for publication in self.publications.values():
            for asset in publication["assets"]:
                if path == f"/assets/{asset['id']}":
                    return Answer(self._signed(asset))
        stored = self.stored.get(request.path)
        return (
            Answer(stored) if isinstance(stored, bytes) else Answer({"error": {"code": "RecordNotFound"}}, status=404)
        )

    def _signed(self, value: Any) -> Any:
        """The same, with a signed address in the place of each file's path."""
        if isinstance(value, list):
            return [self._signed(one) for one in value]
        if not isinstance(value, dict):
            return value
        signed = {key: self._signed(one) for key, one in value.items()}
        if isinstance(path := signed.get("url"), str) and "://" not in path:
            signed["url"] = f"{self.storage.url}/{path}?{SIGNATURE}={self.issue}"
        return signed

    def _give(self, request: Received) -> Answer:
        if int(request.query.get(SIGNATURE, "0")) <= self.expired:
            return Answer(b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>", status=403)
        stored = self.stored.get(request.path)
        if stored is None:
            return Answer(b"<Error><Code>NoSuchKey</Code></Error>", status=404)
        return Answer(stored, headers={"etag": '"1"'}) if isinstance(stored, bytes) else stored(request)


def stored_file(file_id: str | None, size: int | None) -> dict[str, Any]:
    """A file as a record describes it."""
    metadata = {"size": size, "filename": "../../../etc/passwd", "mime_type": "text/plain"}
    return {"id": file_id, "storage": "store", "metadata": metadata}


def cut(_request: Received) -> Answer:
    """A body that ends too early."""
    return Answer(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nnot a hundred")


class Desk:
    """A configuration at a shelf, and backups with it."""

    def __init__(self, folder: Path, base_url: str, more: str = "", clock: Clock | None = None) -> None:
        self.config = folder / "bookferry.toml"
        self.config.write_text(CONFIG.format(base_url=base_url, more=more))
        self._clock = clock

    def library(self, **options: Any) -> Backup:
        """A library of its own, as each run has one."""
        return Backup(Backup.open(self.config).settings, **{"clock": self._clock, **options})

    def back_up(self, run: str = "run", **options: Any) -> Snapshot:
        """All steps of a backup."""
        with self.library(**options) as library:
            library.read_raw("old", run, "publications")
            library.stage("old", run, "publications")
            library.fetch_files("old", run)
            return library.publish("old", run)

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.config.parent / "library-data"

    def blobs(self) -> dict[str, bytes]:
        """SHA-256 → content, of everything in the folder of blobs."""
        folder = self.data / "files" / "sha256"
        return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def files_of(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Rows of `publication_files`."""
    rows: list[dict[str, Any]] = pq.read_table(snapshot.path / "publication_files.parquet").to_pylist()
    return rows


def everything_but_payloads(folder: Path) -> str:
    """What is in a data folder, as text; of raw tables all but the payload."""
    texts = []
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            kept = [name for name in table.column_names if name != "payload"]
            texts.append(json.dumps(table.select(kept).to_pylist(), default=str))
        elif path.is_file():
            texts.append(path.read_bytes().decode("utf-8", "replace"))
    return "\n".join(texts)

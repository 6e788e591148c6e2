"""Copies of unfinished captures in the bucket, from which another machine continues a backup whose worker is gone (I9).

There are copies only where several machines share the state, because only there may another machine continue. Each run copies to
`captures/tenant=<tenant>/snapshot=<snapshot>/`, at least once a minute and at its end:

- `<file>/<SHA-256>`: pieces of a file of the capture as it is (about people, it is sealed or encrypted), put if absent. A page log only
  grows, so that each copy adds pieces to it, and whoever reads it cuts off a page whose end is missing.
- `<fence number of its lease>.db`: the list of files to fetch, which changes everywhere.
- `<fence number of its lease>.json`: what each file is made of. It is written last, so that a copy is there as a whole or not at all.

The list of the highest fence number counts. A run that loses its lease between the check and the upload therefore changes nothing of its
successor, which uploads no table again. capture.json has the number under which it was copied last, so that a machine knows whether another
one has gone on since. All functions need the tenant's lease.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from pipelines.errors import BookferryError
from pipelines.store.durable import storage_errors, temporary_folder
from pipelines.store.objects.objects import Objects, checked_key, is_published
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.facts import CaptureFacts
from pipelines.store.snapshots.file_list import FILE_LIST
from pipelines.store.snapshots.snapshots import DataFolder, snapshot_key

CAPTURES = "captures"

COPY_SECONDS = 45.0
"""Seconds between the end of a copy and the next one: with the time that a copy takes, it is no older than a minute."""

PIECE_BYTES = 8 * 1024 * 1024
"""Bytes of a piece, so that each is one put."""

MOST_FILE_LIST_BYTES = 64 * 1024 * 1024
"""A larger list of files is not copied: another machine fetches again what the list says is there."""


class _Copied(NamedTuple):
    """What the copies have of a file: its size, its time of change, and its pieces."""

    size: int = 0
    changed: int = 0
    pieces: tuple[str, ...] = ()


class CaptureCopy:
    """Keeps the copy of one capture up to date in a thread of its own until `close`.

    `key`: the folder of all copies of the capture. `fence` returns the number of the lease, and raises where the lease was lost.
    """

    def __init__(
        self, objects: Objects, path: Path, key: str, *, fence: Callable[[], int], seconds: float = COPY_SECONDS
    ) -> None:
        self._objects = objects
        self._path = path
        self._captures = key
        self._fence = fence
        self._seconds = seconds
        self._copied: dict[str, _Copied] = {}
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="copy of the capture", daemon=True)
        self._thread.start()

    def copy(self) -> None:
        """Copy what is new. Raises the errors of the store, and those of a lost lease."""
        with self._lock, suppress(FileNotFoundError):  # a step has just ended; the next copy has all of it
            run = f"{self._fence():015}"
            logs = [
                f"pages/{path.name}" for path in sorted(self._path.glob("pages/*"))
            ]  # before the facts, which name the table in the place of a log
            facts = (self._path / Capture.FACTS).read_bytes()
            tables = _CAPTURE_FACTS_DECODER.decode(facts).tables.values()
            files = {name: self._pieces_of(name, grows=True) for name in logs}
            files |= {table.path: self._pieces_of(table.path) for table in tables}
            files[Capture.FACTS] = (self._put(Capture.FACTS, facts),)
            listed = self._path / FILE_LIST
            if listed.exists() and listed.stat().st_size <= MOST_FILE_LIST_BYTES:
                with suppress(sqlite3.Error), closing(sqlite3.connect(listed)) as database:
                    self._objects.replace(f"{self._captures}/{run}.db", database.serialize())
                    files[FILE_LIST] = (f"{run}.db",)
            self._fence()
            self._objects.replace(f"{self._captures}/{run}.json", msgspec.json.encode(files))

    def stop(self) -> None:
        """End the thread: whoever publishes the capture removes its folder."""
        self._ended.set()
        self._thread.join()

    def close(self) -> None:
        """End the thread, and copy once more, as far as that is possible."""
        self.stop()
        with suppress(BookferryError, OSError):
            self.copy()

    def remove(self) -> None:
        """End the thread, and remove the copies: the capture was published."""
        self.stop()
        remove_copies(self._objects, self._captures)

    def _run(self) -> None:
        while True:
            with suppress(BookferryError, OSError):  # the next copy has it all; a lost lease ends the run itself
                self.copy()
            if self._ended.wait(self._seconds):
                return

    def _pieces_of(self, name: str, *, grows: bool = False) -> tuple[str, ...]:
        """The pieces of a file, after those that lack were put there. `grows`: bytes that were copied do not change."""
        path, copied = self._path / name, self._copied.get(name, _Copied())
        status = path.stat()
        if copied[:2] != (status.st_size, status.st_mtime_ns):
            if not grows or status.st_size < copied.size:  # the log began anew
                copied = _Copied()
            pieces, end = [*copied.pieces], copied.size
            with path.open("rb") as file:
                file.seek(end)
                while content := file.read(min(PIECE_BYTES, status.st_size - end)):
                    pieces.append(self._put(name, content))
                    end += len(content)
            self._copied[name] = copied = _Copied(end, status.st_mtime_ns, tuple(pieces))
        return copied.pieces

    def _put(self, name: str, content: bytes) -> str:
        """Put a piece of a file, unless it is there. Returns its name."""
        piece = f"{name}/{hashlib.sha256(content).hexdigest()}"
        if self._objects.size(f"{self._captures}/{piece}") is None:  # a put would send it before it is refused
            self._objects.put(f"{self._captures}/{piece}", content)
        return piece


def copies_key(tenant: str, snapshot: str) -> str:
    """The folder of the copies of a capture."""
    return snapshot_key(tenant, snapshot).replace("snapshots/", f"{CAPTURES}/", 1)


def fence_of(copy: str) -> int:
    """The number of the lease under which a list was made, by its key."""
    return int(copy.rpartition("/")[2].removesuffix(".json"))


def newest_copies(data: DataFolder, folder: str = CAPTURES) -> dict[str, str]:
    """The folder of each capture's copies → the newest list. Published captures are left out."""
    lists = (entry.key for entry in data.objects.below(folder) if entry.key.endswith(".json"))
    newest = {key.rpartition("/")[0]: key for key in lists}
    return {
        capture: copy
        for capture, copy in newest.items()
        if not is_published(data.objects, capture.replace(f"{CAPTURES}/", "snapshots/", 1))
    }


def fetch_copy(objects: Objects, key: str, folder: Path) -> None:
    """Make the folder of a capture from a list of its pieces, whole or not at all."""
    with storage_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(folder.with_name(f".{folder.name}")) as partly:
        captures = key.rpartition("/")[0]
        for name, pieces in _LIST_DECODER.decode(objects.read(key)).items():
            target = partly / checked_key(name)
            with storage_errors(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    for piece in pieces:
                        file.write(objects.read(f"{captures}/{piece}"))
        with storage_errors(folder):
            (partly / "raw").mkdir(exist_ok=True)
            partly.rename(folder)


def remove_copies(objects: Objects, key: str) -> None:
    """Remove the copies below the folder of a capture. First the lists, the newest last: none that is out of date becomes the newest."""
    for entry in sorted(objects.below(key), key=lambda entry: not entry.key.endswith(".json")):
        objects.delete(entry.key)


_CAPTURE_FACTS_DECODER = msgspec.json.Decoder(CaptureFacts)
_LIST_DECODER = msgspec.json.Decoder(dict[str, list[str]])
"""File of the capture → its pieces."""

"""Copies of unfinished captures in the bucket, from which another machine continues a backup whose worker is gone (I9).

There are copies only where several machines share the state, because only there may another machine continue. Each run copies to a folder
of its own, `captures/tenant=<tenant>/snapshot=<snapshot>/<fence number of its lease>/`, at least once a minute and at its end:

- `capture.json` and the finished tables as they are: tables about people are encrypted;
- the page logs in segments, `pages/<resource>/<first byte>`, sealed for people's records. A page log only grows, so that a segment never
  changes, and whoever reads it cuts off a page whose end is missing.

The copy of the highest fence number counts, once it has its facts. A run that loses its lease between the check and the upload therefore
changes nothing of its successor. A local capture names the copy that it was made from, or that was made of it last, so that a machine knows
whether another one has gone on since. All functions need the tenant's lease.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from pipelines.errors import BookferryError
from pipelines.store.durable import storage_errors, temporary_folder
from pipelines.store.objects.objects import Objects
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.facts import CaptureFacts
from pipelines.store.snapshots.file_list import FILE_LIST
from pipelines.store.snapshots.snapshots import DataFolder, snapshot_key

CAPTURES = "captures"

COPY_SECONDS = 45.0
"""Seconds between the end of a copy and the next one: with the time that a copy takes, it is no older than a minute."""

MOST_SEGMENT_BYTES = 8 * 1024 * 1024
"""Bytes of a segment, so that each is one put."""

MOST_FILE_LIST_BYTES = 64 * 1024 * 1024
"""A larger list of files is not copied: another machine fetches again what the list says is there."""


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
        self._copied: dict[str, tuple[int, int]] = {}
        """Key → size and time of change of the file, or size and hash of the content, when it was copied."""
        self._ends: dict[str, int] = {}
        """Folder of the segments of a page log → bytes of the log that the copy has."""
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="copy of the capture", daemon=True)
        self._thread.start()

    def copy(self) -> None:
        """Copy what is new. Raises the errors of the store, and those of a lost lease."""
        with self._lock, suppress(FileNotFoundError):  # a step has just ended; the next copy has all of it
            key = f"{self._captures}/{self._fence():015}"
            content = (self._path / Capture.FACTS).read_bytes()
            facts = _CAPTURE_FACTS_DECODER.decode(content)
            if not self._copied:
                (self._path / Capture.COPY).write_text(key)
            for path in sorted(self._path.glob("pages/*")):
                self._copy_log(f"{key}/pages/{path.name}", path)
            for table in facts.tables.values():
                self._copy(f"{key}/{table.path}", self._path / table.path)
            files = self._path / FILE_LIST
            if files.exists() and files.stat().st_size <= MOST_FILE_LIST_BYTES:
                with suppress(sqlite3.Error), closing(sqlite3.connect(files)) as database:
                    self._copy(f"{key}/{FILE_LIST}", database.serialize())
            self._copy(f"{key}/{Capture.FACTS}", content)  # after the tables that it names
            for name in facts.resources:  # after the table that has its records
                if self._ends.pop(f"{key}/pages/{name}", 0):
                    _delete_below(self._objects, f"{key}/pages/{name}")

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

    def _copy_log(self, key: str, path: Path) -> None:
        begin, size = self._ends.get(key, 0), path.stat().st_size
        if size < begin:  # the log began anew
            _delete_below(self._objects, key)
            begin = 0
        with path.open("rb") as file:
            file.seek(begin)
            while content := file.read(min(MOST_SEGMENT_BYTES, size - begin)):
                self._objects.replace(f"{key}/{begin:015}", content)
                begin += len(content)
                self._ends[key] = begin

    def _copy(self, key: str, content: bytes | Path) -> None:
        """Copy bytes or a file, unless the copy has them."""
        if isinstance(content, Path):
            status = content.stat()
            state = (status.st_size, status.st_mtime_ns)
        else:
            state = (len(content), hash(content))
        if self._copied.get(key) != state:
            self._objects.replace(key, content)
            self._copied[key] = state


def copies_key(tenant: str, snapshot: str) -> str:
    """The folder of the copies of a capture."""
    return snapshot_key(tenant, snapshot).replace("snapshots/", f"{CAPTURES}/", 1)


def newest_copies(data: DataFolder, folder: str = CAPTURES) -> dict[str, str]:
    """The folder of each capture's copies → the folder of the newest one with facts. Published captures are left out."""
    copies = (entry.key.rpartition("/") for entry in data.objects.below(folder))
    newest = {copy.rpartition("/")[0]: copy for copy, _, name in copies if name == Capture.FACTS}
    return {
        capture: copy
        for capture, copy in newest.items()
        if not data.is_published(capture.replace(f"{CAPTURES}/", "snapshots/", 1))
    }


def fetch_copy(objects: Objects, key: str, folder: Path) -> None:
    """Make the folder of a capture from a copy, whole or not at all."""
    with storage_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(folder.with_name(f".{folder.name}")) as partly:
        for entry in objects.below(key):  # segments in the order of their bytes
            target, begin = partly / entry.key.removeprefix(f"{key}/"), 0
            if target.parent.parent == partly / "pages":
                target, begin = target.parent, int(target.name)
            with storage_errors(target), objects.open(entry.key) as content:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("ab") as file:
                    if file.tell() == begin:  # else the segments before this one are being removed, or were
                        shutil.copyfileobj(content, file)
        with storage_errors(folder):
            (partly / "raw").mkdir(exist_ok=True)
            (partly / Capture.COPY).write_text(key)
            partly.rename(folder)


def remove_copies(objects: Objects, key: str) -> None:
    """Remove the copies below the folder of a capture. First their facts, the newest last: none that is out of date becomes the newest."""
    entries = sorted(objects.below(key), key=lambda entry: not entry.key.endswith(f"/{Capture.FACTS}"))
    for entry in entries:
        objects.delete(entry.key)


def _delete_below(objects: Objects, key: str) -> None:
    for entry in list(objects.below(key)):
        objects.delete(entry.key)


_CAPTURE_FACTS_DECODER = msgspec.json.Decoder(CaptureFacts)

"""Copies of unfinished captures in the bucket, from which another machine continues a backup whose worker is gone (I9).

There are copies only where several machines share the state, because only there may another machine continue. Each run copies to a folder
of its own, `captures/tenant=<tenant>/<snapshot>/<fence number of its lease>/`, at least once a minute and at its end:

- `capture.json` and the finished tables as they are: tables about people are encrypted;
- `writer` names the machine of the run. Its own capture is not older than the copy; that of any other machine is;
- the page logs in segments of whole frames, `pages/<resource>/<first byte>-<first byte after it>`, sealed for people's records. A page
  log only grows, so that a segment never changes.

The copy of the highest fence number counts, once it has its facts. A run that loses its lease between the check and the upload therefore
changes nothing of its successor. All functions need the tenant's lease.
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
from pipelines.store.snapshots.page_log import end_of_frames

CAPTURES = "captures"

COPY_SECONDS = 45.0
"""Seconds between the end of a copy and the next one: with the time that a copy takes, it is no older than a minute."""

_WRITER = "writer"

_MARK = "copied"
"""An empty file in each local capture that has, or had, a copy."""

MOST_SEGMENT_BYTES = 8 * 1024 * 1024
"""Bytes of a segment, so that each is one put."""

MOST_FILE_LIST_BYTES = 64 * 1024 * 1024
"""A larger list of files is not copied: another machine fetches again what the list says is there."""


class CaptureCopy:
    """Keeps the copy of one capture up to date in a thread of its own until `close`.

    `key`: the folder of all copies of the capture. `fence` returns the number of the lease, and raises where the lease was lost.
    """

    def __init__(
        self,
        objects: Objects,
        path: Path,
        key: str,
        *,
        machine: str,
        fence: Callable[[], int],
        seconds: float = COPY_SECONDS,
    ) -> None:
        self._objects = objects
        self._path = path
        self._captures = key
        self._key = ""
        self._machine = machine
        self._fence = fence
        self._seconds = seconds
        self._copied: dict[str, tuple[int, int]] = {}
        """Name of a file → its size and time of change, or hash, when it was copied."""
        self._ends: dict[str, int] = {}
        """Resource → bytes of its page log that the copy has."""
        self._is_alone = False
        """Whether the copies of earlier runs are removed."""
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="copy of the capture", daemon=True)
        self._thread.start()

    def copy(self) -> None:
        """Copy what is new. Raises the errors of the store, and those of a lost lease."""
        with self._lock:
            self._key = f"{self._captures}/{self._fence():015}"
            try:
                content = (self._path / Capture.FACTS).read_bytes()
            except FileNotFoundError:
                return  # published meanwhile
            facts = _CAPTURE_FACTS_DECODER.decode(content)
            if not self._copied:
                (self._path / _MARK).touch()
            self._copy_content(_WRITER, self._machine.encode())
            for path in sorted(self._path.glob("pages/*")):
                self._copy_log(path)
            for table in facts.tables.values():
                self._copy_file(table.path)
            self._copy_list_of_files()
            self._copy_content(Capture.FACTS, content)  # after the tables that it names
            for name in self._ends.keys() & facts.resources.keys():  # after the table that has its records
                _delete_below(self._objects, f"{self._key}/pages/{name}")
                del self._ends[name]
            self._remove_earlier()

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
        """End the thread, and remove the copy: the capture was published."""
        self.stop()
        remove_copies(self._objects, self._captures)

    def _run(self) -> None:
        while True:
            with suppress(BookferryError, OSError):  # the next copy has it all; a lost lease ends the run itself
                self.copy()
            if self._ended.wait(self._seconds):
                return

    def _remove_earlier(self) -> None:
        """Remove the copies of earlier runs, which this one has replaced."""
        if not self._is_alone:
            for key in _copies_of(self._objects, self._captures):
                if key < self._key:
                    _remove_copy(self._objects, key)
            self._is_alone = True

    def _copy_log(self, path: Path) -> None:
        """Copy the whole frames of a page log that the copy lacks."""
        name, begin = path.name, self._ends.get(path.name, 0)
        with suppress(FileNotFoundError), path.open("rb") as file:
            end = end_of_frames(file, begin)
            if end < begin:  # the log began anew
                _delete_below(self._objects, f"{self._key}/pages/{name}")
                begin, end = 0, end_of_frames(file, 0)
            while begin < end:
                file.seek(begin)
                content = file.read(min(MOST_SEGMENT_BYTES, end - begin))
                self._objects.replace(f"{self._key}/pages/{name}/{begin:015}-{begin + len(content):015}", content)
                begin += len(content)
                self._ends[name] = begin

    def _copy_file(self, name: str) -> None:
        path = self._path / name
        with suppress(FileNotFoundError):
            status = path.stat()
            seen = (status.st_size, status.st_mtime_ns)
            if self._copied.get(name) != seen:
                self._objects.replace_file(f"{self._key}/{name}", path)
                self._copied[name] = seen

    def _copy_list_of_files(self) -> None:
        path = self._path / FILE_LIST
        if not path.exists() or path.stat().st_size > MOST_FILE_LIST_BYTES:
            return
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as database:
            self._copy_content(FILE_LIST, database.serialize())

    def _copy_content(self, name: str, content: bytes) -> None:
        seen = (len(content), hash(content))
        if self._copied.get(name) != seen:
            self._objects.replace(f"{self._key}/{name}", content)
            self._copied[name] = seen


def is_marked(capture: Path) -> bool:
    """Whether a local capture has, or had, a copy. One without was begun before several machines shared the state."""
    return (capture / _MARK).exists()


class CopiedCapture(msgspec.Struct):
    """The newest copy of an unfinished capture: the key of its folder, the facts in it, and the machine that wrote it."""

    key: str
    facts: CaptureFacts
    writer: str


def copy_key(facts: CaptureFacts) -> str:
    """The folder of the copies of a capture."""
    return f"{CAPTURES}/tenant={facts.tenant}/{facts.snapshot}"


def copied_captures(objects: Objects, tenant: str | None = None) -> list[CopiedCapture]:
    """The newest copy of each capture of one tenant, or of all, oldest capture first. What cannot be read is left out."""
    tenants = objects.folders(CAPTURES) if tenant is None else [f"tenant={tenant}"]
    captures = [f"{CAPTURES}/{name}/{folder}" for name in tenants for folder in objects.folders(f"{CAPTURES}/{name}")]
    keys = [key for capture in captures for key in _copies_of(objects, capture)]
    contents = [*objects.read_all(f"{key}/{name}" for key in keys for name in (Capture.FACTS, _WRITER))]
    newest = dict[str, CopiedCapture]()
    for key, facts, writer in zip(keys, contents[::2], contents[1::2], strict=True):
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            if facts is not None:
                decoded = _CAPTURE_FACTS_DECODER.decode(facts)
                newest[key.rpartition("/")[0]] = CopiedCapture(key, decoded, (writer or b"").decode())
    return sorted(newest.values(), key=lambda copied: copied.facts.snapshot)


def remove_leftovers(objects: Objects, tenant: str, is_published: Callable[[str], bool]) -> None:
    """Remove what killed processes left of copies: those of snapshots that were published, and those without facts."""
    for snapshot in objects.folders(f"{CAPTURES}/tenant={tenant}"):
        capture = f"{CAPTURES}/tenant={tenant}/{snapshot}"
        if is_published(snapshot):
            remove_copies(objects, capture)
        for key in _copies_of(objects, capture):
            if objects.size(f"{key}/{Capture.FACTS}") is None:
                _remove_copy(objects, key)


def fetch_copy(objects: Objects, copied: CopiedCapture, folder: Path) -> None:
    """Make the folder of a capture from its copy, whole or not at all."""
    prefix = f"{copied.key}/"
    with storage_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(folder.with_name(f".{folder.name}")) as partly:
        for entry in objects.below(copied.key):  # segments in the order of their bytes
            parts = entry.key.removeprefix(prefix).split("/")
            is_segment = parts[0] == "pages"
            target = partly.joinpath(*(parts[:-1] if is_segment else parts))
            if parts == [_WRITER] or (is_segment and int(parts[-1].partition("-")[0]) != _size(target)):
                continue  # the segments before this one are being removed, or were
            with storage_errors(target), objects.open(entry.key) as content:
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("ab") as file:
                    shutil.copyfileobj(content, file)
        with storage_errors(folder):
            (partly / "raw").mkdir(exist_ok=True)
            (partly / _MARK).touch()
            partly.rename(folder)


def remove_copies(objects: Objects, capture: str) -> None:
    """Remove the copies below the folder of a capture, the newest last: none that is out of date becomes the newest."""
    for key in _copies_of(objects, capture):
        _remove_copy(objects, key)


def _copies_of(objects: Objects, capture: str) -> list[str]:
    """The folders of the copies of a capture, oldest first."""
    return [f"{capture}/{fence}" for fence in objects.folders(capture)]


def _remove_copy(objects: Objects, key: str) -> None:
    """Remove a copy, its facts first: without them it is none."""
    objects.delete(f"{key}/{Capture.FACTS}")
    _delete_below(objects, key)


def _delete_below(objects: Objects, key: str) -> None:
    for entry in list(objects.below(key)):
        objects.delete(entry.key)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


_CAPTURE_FACTS_DECODER = msgspec.json.Decoder(CaptureFacts)

"""Fetching the contents on a work list: a few at a time, beside the listing that fills it or after it (I12).

A signed address lasts some minutes, so files are fetched soon after their page was read, and the reading waits where they cannot keep up.
An address that is refused is asked for again; what cannot be had is noted with the reason, and never ends the run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from itertools import count
from typing import Self

import msgspec

from pipelines.records.files import UNSURE, addressed_files
from pipelines.service.client import LibraryClient
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.files.download import Downloads, Failed, Received
from pipelines.service.files.signed_urls import SignedUrls
from pipelines.store.snapshots.blobs import Blobs
from pipelines.store.snapshots.file_list import FileList, Known, Wanted

AT_A_TIME = 8

PATIENCE = 120.0
"""Seconds that a file may wait for its turn before the listing waits for it: addresses that expire cost a request each."""

MOST_ADDRESSES = 2
"""Times that a fresh address is asked for one file."""

MOST_IN_A_ROW = 50
"""Failures that may pass, one after the other, until the rest is not tried: the storage is down."""

END_SECONDS = 5.0
"""Until threads that hear nothing, such as one that looks up a name, are left behind."""


class Fetching:
    """Threads that work on a `FileList` for the length of a `with` block.

    At its end what is under way is finished, or left for the next run where an error ends the block. `open_list` makes the list when it is
    first needed, so that a library without files costs nothing; `open_client` a client of the library, for addresses on its host and
    fresh ones.
    """

    def __init__(
        self,
        open_list: Callable[[], FileList],
        blobs: Blobs,
        *,
        base_url: str,
        open_client: Callable[[], AbstractContextManager[LibraryClient]],
        clock: Clock | None = None,
    ) -> None:
        self._open_list = open_list
        self._list: FileList | None = None
        self.blobs = blobs
        self._stopped = threading.Event()
        self._clock = clock or SystemClock(self._stopped)
        self._client = _Lazily(open_client)
        self._transfers = Downloads(base_url, client=self._client.get, clock=self._clock)
        self._addresses = SignedUrls(self._client.get)
        self._changed = threading.Condition()
        self._names = count(1)
        self._threads: list[threading.Thread] = []
        self._more_may_come = True
        self._failure: BaseException | None = None
        self._failed_in_a_row = 0
        self.done = 0
        """Contents that were tried."""
        self.given_up = ""
        """Why nothing more is tried, if it is not."""

    @property
    def requests(self) -> int:
        """Requests to the library so far."""
        return self._client.requests

    @property
    def files(self) -> FileList:
        """The list."""
        if self._list is None:
            self._list = self._open_list()
        return self._list

    def on_page(self, records: Sequence[msgspec.Raw]) -> None:
        """Take in the files of a page that was just read. Returns when none has waited too long."""
        if found := addressed_files(map(bytes, records)):
            self.files.add(found, self._clock.monotonic())
            self._begin()
        with self._changed:
            while self._is_late() and self._goes_on():
                self._changed.wait(1.0)
        self._raise_failure()

    def finish(self, on_done: Callable[[int], None]) -> None:
        """Work until nothing waits any more. `on_done` hears now and then how many were tried. More than one round may be needed."""
        self._more_may_come = False
        self._begin()
        while any(one.is_alive() for one in self._threads):
            with self._changed:
                self._changed.wait(0.5)
            on_done(self.done)
        self._threads.clear()
        self._raise_failure()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._give_up("the listing is over")
        try:
            if kind is None:
                for one in self._threads:
                    one.join()
                self._raise_failure()
        finally:
            self._stopped.set()
            self._transfers.close()
            self._client.close()
            for one in self._threads:
                one.join(END_SECONDS)
            self.blobs.close()
            if self._list is not None:
                self._list.close()

    def _is_late(self) -> bool:
        since = self._list.waiting_since() if self._list is not None else None
        return since is not None and self._clock.monotonic() - since > PATIENCE

    def _goes_on(self) -> bool:
        return not (self.given_up or self._failure or self._stopped.is_set())

    def _give_up(self, why: str) -> None:
        with self._changed:
            self.given_up = self.given_up or why
            self._changed.notify_all()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _begin(self) -> None:
        while len(self._threads) < AT_A_TIME:
            thread = threading.Thread(target=self._work, name="files", daemon=True)
            self._threads.append(thread)
            thread.start()
        with self._changed:
            self._changed.notify_all()

    def _work(self) -> None:
        try:
            while (wanted := self._next()) is not None:
                self._fetch(wanted)
                with self._changed:
                    self.done += 1
                    self._changed.notify_all()
        except BaseException as error:  # noqa: BLE001  whatever it is, whoever waits for the files must hear it
            with self._changed:
                if not self._stopped.is_set():  # else it is what the stop did to a request
                    self._failure = self._failure or error
                self._changed.notify_all()

    def _next(self) -> Wanted | None:
        with self._changed:
            while self._goes_on():
                if (wanted := self.files.take()) is not None:
                    return wanted
                if not self._more_may_come:
                    break
                self._changed.wait()
            return None

    def _fetch(self, wanted: Wanted) -> None:
        found = self._found(wanted)
        if self._stopped.is_set():
            return  # the list knows that it was under way
        if not isinstance(found, Failed):
            self._failed_in_a_row = 0
            self.files.kept(found.content, new=found.is_new)
            return
        self.files.failed(wanted.reference.content_key, found.problem, passing=found.temporary)
        self._failed_in_a_row = self._failed_in_a_row + 1 if found.temporary else 0
        if self._failed_in_a_row >= MOST_IN_A_ROW:
            self._give_up(f"not tried, after {MOST_IN_A_ROW} in a row that failed; the last: {found.problem}")

    def _found(self, wanted: Wanted) -> _Had | Failed:
        """One content, by a fresh address where that of the listing is missing or no good any more."""
        address, failed = wanted.reference.address, Failed("")
        for asked in range(MOST_ADDRESSES + 1):
            if address is not None:
                found = self._transferred(wanted, address)
                if not isinstance(found, Failed):
                    if asked:
                        self._addresses.mark_useful()
                    return found
                failed = found
                if not found.expired or asked == MOST_ADDRESSES:
                    return found
            fresh = self._addresses.ask(wanted.reference)
            if isinstance(fresh, Failed):
                why = f"{failed.problem}; {fresh.problem}" if failed.problem else fresh.problem
                return Failed(why, temporary=fresh.temporary)
            address = fresh
        return failed

    def _transferred(self, wanted: Wanted, address: str) -> _Had | Failed:
        key = wanted.reference.content_key
        held = wanted.sha256 is not None and self.blobs.size(wanted.sha256) == wanted.bytes
        etag = wanted.etag if held else None
        with self.blobs.arriving(str(next(self._names))) as (path, file):
            outcome = self._transfers.fetch(address, file, size=wanted.reference.size, etag=etag)
            if isinstance(outcome, Failed):
                return outcome
            if not isinstance(outcome, Received):
                return _Had(Known(key, wanted.sha256, wanted.bytes, wanted.etag), is_new=False)
            file.flush()
            self.blobs.keep(path, outcome.sha256)
        version = outcome.etag if key.startswith(UNSURE) else None
        return _Had(Known(key, outcome.sha256, outcome.size, version), is_new=True)


@dataclass(frozen=True)
class _Had:
    """A content that is a blob, and whether it was fetched now."""

    content: Known
    is_new: bool


class _Lazily:
    """A client of the library that is opened when somebody needs it: its requests are not the listing's."""

    def __init__(self, open_client: Callable[[], AbstractContextManager[LibraryClient]]) -> None:
        self._open = open_client
        self._lock = threading.Lock()
        self._held = ExitStack()
        self._client: LibraryClient | None = None

    @property
    def requests(self) -> int:
        return 0 if self._client is None else self._client.requests

    def get(self) -> LibraryClient:
        with self._lock:
            if self._client is None:
                self._client = self._held.enter_context(self._open())
            return self._client

    def close(self) -> None:
        self._held.close()

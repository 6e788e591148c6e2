"""Reads whole records of the target, because a PUT replaces the record: what it does not send would be lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from math import inf
from typing import Any

import msgspec

from pipelines.errors import AccessDeniedError, ProtocolError, RefusedError
from pipelines.migration.model.target_reading import TargetListing, numbered
from pipelines.records.values import whole_number
from pipelines.service.client import LibraryClient
from pipelines.service_limits import PER_PAGE

ReadListing = Callable[[str], AbstractContextManager[TargetListing]]
"""Lists a resource of the target now, proved complete, for the length of the block."""

FRESH_SECONDS = 60.0
"""How old a list may be, beside ten times as long as it takes to read it."""

FEW = 3
"""Records that are read singly before a list is read instead, which serves for many; more where the list has more pages."""


class WholeRecords:
    """Reads a few records at addresses of their own; many, or where there is no such address, in the list, which serves for a while.

    So a change costs one request more where changes are few, and not two requests each where they are many. Not safe for several threads at
    once.
    """

    def __init__(self, client: LibraryClient, read_listing: ReadListing) -> None:
        self._client = client
        self._read_listing = read_listing
        self._left: dict[str, float] = {}
        """Records of a resource that may still be read singly before its list is read."""
        self._listed_until: dict[str, float] = {}
        self._db = sqlite3.connect(
            "", isolation_level=None, check_same_thread=False
        )  # a temporary file of SQLite's own
        self._db.execute("CREATE TABLE records (resource TEXT, id INTEGER, record BLOB, PRIMARY KEY (resource, id))")

    def read(self, resource: str, number: int) -> Mapping[str, Any] | None:
        """The record as it is now; None where the target does not have it."""
        is_fresh = self._client.clock.monotonic() < self._listed_until.get(resource, -inf)
        if is_fresh and (listed := self._listed(resource, number)) is not None:
            return listed
        if (left := self._left.get(resource, FEW)) > 0:
            self._left[resource] = left - 1
            with suppress(RefusedError, ProtocolError, AccessDeniedError):
                record = self._client.get_record(f"{resource}/{number}")
                if whole_number(record.get("id")) == number:
                    return record
            self._left[resource] = -inf  # no such address
        self._list(resource)
        return self._listed(resource, number)

    def _listed(self, resource: str, number: int) -> dict[str, Any] | None:
        query = "SELECT record FROM records WHERE resource = ? AND id = ?"
        row = self._db.execute(query, (resource, number)).fetchone()
        return msgspec.json.decode(row[0]) if row else None

    def _list(self, resource: str) -> None:
        begun = self._client.clock.monotonic()
        self._db.execute("DELETE FROM records WHERE resource = ?", (resource,))
        with self._read_listing(resource) as listing:
            for number, record in numbered(listing.records()):
                self._db.execute(
                    "INSERT INTO records VALUES (?, ?, ?)", (resource, number, msgspec.json.encode(record))
                )
            if self._left.get(resource, FEW) > -inf:
                self._left[resource] = max(FEW, listing.rows // PER_PAGE)
        now = self._client.clock.monotonic()
        self._listed_until[resource] = now + FRESH_SECONDS + 10 * (now - begun)

    def forget(self, resource: str, number: int) -> None:
        """Read a record anew when it is needed next: it was changed."""
        self._db.execute("DELETE FROM records WHERE resource = ? AND id = ?", (resource, number))

    def close(self) -> None:
        """Remove what was read."""
        self._db.close()

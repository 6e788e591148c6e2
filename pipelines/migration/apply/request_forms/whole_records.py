"""Reads whole records of the target, because a PUT replaces the record: what it does not send would be lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from math import inf
from typing import Any

import msgspec

from pipelines.errors import AccessDeniedError, ProtocolError, RefusedError
from pipelines.migration.model.target_reading import TargetListing
from pipelines.migration.plan.match_store import numbered
from pipelines.records.values import whole_number
from pipelines.service.client import LibraryClient

ReadListing = Callable[[str], AbstractContextManager[TargetListing]]
"""Lists a resource of the target now, proved complete, for the length of the block."""

FRESH_SECONDS = 60.0
"""How old a list may be, beside ten times as long as it takes to read it."""


class WholeRecords:
    """Reads records at addresses of their own or, since no such address is documented, in the list, which serves for a while.

    Not safe for several threads at once.
    """

    def __init__(self, client: LibraryClient, read_listing: ReadListing) -> None:
        self._client = client
        self._read_listing = read_listing
        self._without_addresses: set[str] = set()
        self._listed_until: dict[str, float] = {}
        self._db = sqlite3.connect(
            "", isolation_level=None, check_same_thread=False
        )  # a temporary file of SQLite's own
        self._db.execute("CREATE TABLE records (resource TEXT, id INTEGER, record BLOB, PRIMARY KEY (resource, id))")

    def read(self, resource: str, number: int) -> Mapping[str, Any] | None:
        """The record as it is now; None where the target does not have it."""
        if resource not in self._without_addresses:
            with suppress(RefusedError, ProtocolError, AccessDeniedError):
                record = self._client.get_record(f"{resource}/{number}")
                if whole_number(record.get("id")) == number:
                    return record
            self._without_addresses.add(resource)
        if self._client.clock.monotonic() >= self._listed_until.get(resource, -inf):
            self._list(resource)
        row = self._db.execute(
            "SELECT record FROM records WHERE resource = ? AND id = ?", (resource, number)
        ).fetchone()
        return msgspec.json.decode(row[0]) if row else None

    def _list(self, resource: str) -> None:
        begun = self._client.clock.monotonic()
        self._db.execute("DELETE FROM records WHERE resource = ?", (resource,))
        with self._read_listing(resource) as listing:
            for number, record in numbered(listing.records()):
                self._db.execute(
                    "INSERT INTO records VALUES (?, ?, ?)", (resource, number, msgspec.json.encode(record))
                )
        now = self._client.clock.monotonic()
        self._listed_until[resource] = now + FRESH_SECONDS + 10 * (now - begun)

    def forget(self, resource: str) -> None:
        """Read the records of a resource anew when they are needed next."""
        self._listed_until.pop(resource, None)

    def close(self) -> None:
        """Remove what was read."""
        self._db.close()

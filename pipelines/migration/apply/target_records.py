"""Reads single records of the target: what it made of a write, and what a PUT, which replaces a record, has to send again."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Mapping
from http import HTTPStatus
from math import inf
from typing import Any

import msgspec

from pipelines.errors import AccessDeniedError, ProtocolError, RefusedError
from pipelines.inventory import LIST_PATHS, nested_resource, record_path
from pipelines.migration.model.step import ReadListing
from pipelines.migration.model.target_reading import numbered
from pipelines.records.tables.registry import id_at, leading_key
from pipelines.records.values import RecordId, decode_record, record_id
from pipelines.service.client import LibraryClient
from pipelines.service.listing.listing import Listing
from pipelines.store.encryption import PersonalKey

FRESH_SECONDS = 60.0
"""How old a list may be, beside ten times as long as it takes to read it."""


class TargetRecords:
    """Reads a record at an address of its own; where a resource has no such address (service.md#not-shown), in its list.

    Several threads may use it. Each listing is kept in a temporary file of SQLite's own, records of persons sealed.
    """

    def __init__(self, client: LibraryClient, read_listing: ReadListing) -> None:
        self._client = client
        self._read_listing = read_listing
        self._lock = threading.Lock()
        self._has_addresses: dict[str, bool] = {}
        self._listed_until: dict[str, float] = {}
        self._keys: dict[str, PersonalKey | None] = {}
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.execute("CREATE TABLE records (resource TEXT, id, record BLOB, PRIMARY KEY (resource, id))")

    def current(self, resource: str, number: RecordId) -> Mapping[str, Any] | None:
        """A record as it is now; None where the target does not have it. Without addresses, its list is read, which serves for a while."""
        if (record := self._at_address(resource, number)) is not None or self._has_addresses.get(resource):
            return record
        with self._lock:
            is_fresh = self._client.clock.monotonic() < self._listed_until.get(resource, -inf)
            if not is_fresh or self._is_changed(resource, number):
                self._list(resource)
            record = self._listed(resource, number)
        if record is not None:
            self._has_addresses[resource] = False
        return record

    def written(self, resource: str, number: RecordId) -> Mapping[str, Any]:
        """A record after a write; empty where it is neither at an address of its own nor at an end of its list."""
        if (record := self._at_address(resource, number)) is not None or self._has_addresses.get(resource):
            return record or {}
        ends = self._client.list_ends(LIST_PATHS[resource])
        record = next((record for record in ends.records if record_id(record.get("id")) == number), {})
        if record:
            self._has_addresses[resource] = False
        return record

    def entries(self, resource: str, path: str) -> set[RecordId]:
        """The ids to which the entries of a list below a record of a resource lead now."""
        nested = nested_resource(f"{resource}/{path.rpartition('/')[2]}")
        records = (record for page in Listing(self._client, [path]).pages() for record in page.records)
        decoded = [decode_record(bytes(record)) for record in records]
        key = leading_key(nested, {key for record in decoded for key in record})
        numbers = (record_id(id_at(key, record)) for record in decoded)
        return {number for number in numbers if number is not None}

    def changed(self, resource: str, number: RecordId) -> None:
        """Read a record anew when it is needed next: it was created or changed."""
        with self._lock:
            if resource in self._listed_until:
                self._db.execute("INSERT OR REPLACE INTO records VALUES (?, ?, NULL)", (resource, number))

    def _at_address(self, resource: str, number: RecordId) -> Mapping[str, Any] | None:
        """The record at its address; None where there is none, which says that the record is gone if others have addresses."""
        if self._has_addresses.get(resource, True):
            try:
                record = self._client.get_record(record_path(resource, number))
            except (RefusedError, ProtocolError, AccessDeniedError) as error:
                is_missing = isinstance(error, RefusedError) and error.status == HTTPStatus.NOT_FOUND
                if self._has_addresses.get(resource) and not is_missing:
                    raise
            else:
                if record_id(record.get("id")) == number:
                    self._has_addresses[resource] = True
                    return record
        return None

    def _is_changed(self, resource: str, number: RecordId) -> bool:
        query = "SELECT 1 FROM records WHERE resource = ? AND id = ? AND record IS NULL"
        return self._db.execute(query, (resource, number)).fetchone() is not None

    def _listed(self, resource: str, number: RecordId) -> dict[str, Any] | None:
        query = "SELECT record FROM records WHERE resource = ? AND id = ?"
        row, key = self._db.execute(query, (resource, number)).fetchone(), self._keys[resource]
        return msgspec.json.decode(row[0] if key is None else key.unseal(row[0])) if row else None

    def _list(self, resource: str) -> None:
        begun = self._client.clock.monotonic()
        self._db.execute("DELETE FROM records WHERE resource = ?", (resource,))
        with self._read_listing(resource) as listing:
            self._keys[resource] = listing.key
            seal = bytes if listing.key is None else listing.key.seal
            self._db.executemany(
                "INSERT INTO records VALUES (?, ?, ?)",
                (
                    (resource, number, seal(msgspec.json.encode(record)))
                    for number, record in numbered(listing.records())
                ),
            )
        now = self._client.clock.monotonic()
        self._listed_until[resource] = now + FRESH_SECONDS + 10 * (now - begun)

    def close(self) -> None:
        """Remove what was read."""
        self._db.close()

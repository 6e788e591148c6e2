"""The records of the resources other than publications as the target lists them now, for lookups by id and by key.

The documentation has no request for one such record (service.md#not-shown), so the whole lists are read once, into a temporary file.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec

from pipelines.file_access import make_file
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import Plan, PlanRow
from pipelines.migration.model.resource_types import RESOURCE_TYPES, ResourceType
from pipelines.migration.model.target_reading import TargetListing, numbered
from pipelines.store.durable import storage_errors
from pipelines.store.encryption import PersonalKey

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS records (resource TEXT, id INTEGER, key BLOB, record BLOB,
        PRIMARY KEY (resource, id)) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS by_key ON records (resource, key);
"""


@contextmanager
def read_target_lists(workdir: Path, listed: Mapping[str, TargetListing]) -> Iterator[TargetLists]:
    """The target's lists, in a file of `workdir` for the length of the block. `listed`: resource → its listing."""
    key = next((listing.key for listing in listed.values() if listing.key is not None), None)
    with TargetLists(workdir / "others.sqlite", key) as lists:
        for resource, listing in listed.items():
            lists.add(resource, listing)
        yield lists


class TargetLists:
    """Records of the target in a SQLite file, which is removed at the end of the block. `key` encrypts those of persons.

    Several threads may look records up.
    """

    def __init__(self, path: Path, key: PersonalKey | None = None) -> None:
        self._path = path
        self._key = key
        make_file(path)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA}")

    def add(self, resource: str, listing: TargetListing) -> None:
        """Add the records of a resource."""
        resource_type = listing.type or RESOURCE_TYPES[resource]
        seal = self._seal(resource_type)
        with storage_errors(self._path):
            for number, record in numbered(listing.records()):
                values = resource_type.whole_values(record)
                text = seal(msgspec.json.encode(values))
                self._db.execute(
                    "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?)",
                    (resource, number, _digest(resource_type.key(values)), text),
                )

    def record(self, resource: str, number: int) -> Mapping[str, Any] | None:
        """The values of a record, in the form in which they are sent; None where the target does not list it."""
        with self._lock:
            row = self._db.execute(
                "SELECT record FROM records WHERE resource = ? AND id = ?", (resource, number)
            ).fetchone()
        return self._unsealed(RESOURCE_TYPES[resource], row[0]) if row else None

    def _seal(self, resource_type: ResourceType) -> Callable[[bytes], bytes]:
        return self._key.seal if self._key is not None and resource_type.personal else bytes

    def _unsealed(self, resource_type: ResourceType, text: bytes) -> dict[str, Any]:
        sealed = self._key is not None and resource_type.personal
        return dict(msgspec.json.decode(self._key.unseal(text) if sealed and self._key else text))

    def new_matches(self, plan: Plan, journal: Journal, row: PlanRow) -> list[int]:
        """Ids of records with the key of a row that are new in the target since the plan was made, and that no plan wrote."""
        resource_type = row.type or RESOURCE_TYPES[row.resource]
        values = resource_type.values(row.payload) | {name: {"source": 0} for name in row.references}
        key = resource_type.key(values)
        with self._lock:
            rows = self._db.execute(
                "SELECT id FROM records WHERE resource = ? AND key = ? LIMIT 100", (row.resource, _digest(key))
            ).fetchall()
        ids = {number for (number,) in rows}
        return (
            sorted(ids - plan.ids_when_planned(row.resource, ids) - journal.known_ids(row.resource, ids)) if ids else []
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()
        self._path.unlink(missing_ok=True)


def _digest(key: str | None) -> bytes | None:
    """The stored form of the key of a record."""
    return hashlib.sha256(key.encode()).digest()[:16] if key is not None else None

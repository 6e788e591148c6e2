"""The records of the small resources as the target lists them when a plan is applied: whether the plan still fits them (trap B14).

Publications have staleness.py. What a patch replaces is compared here: the document shows no way to read one such record alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import msgspec

from pipelines.errors import StopError
from pipelines.migration.apply.staleness import EXAMPLES
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import PATCH, WRITTEN_ACTIONS, Plan, PlanRow
from pipelines.migration.model.resource_types import RESOURCE_TYPES
from pipelines.migration.plan.match_store import TargetListing, key_digest, numbered, sealing, unsealing
from pipelines.store.durable import storage_errors
from pipelines.store.encryption import PersonalKey

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS records (resource TEXT, id INTEGER, key BLOB, record BLOB, PRIMARY KEY (resource, id)) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS by_key ON records (resource, key);
"""


def check_others_fresh(
    plan: Plan,
    listed: Mapping[str, TargetListing],
    room: Path,
    *,
    journal: Journal,
    begun: Collection[tuple[str, int]],
) -> None:
    """Raise `StopError` where a record that nobody has `begun` to write is there by now, or is another one.

    `listed`: the resources in which the plan writes, as the target lists them now.
    """
    if not listed:
        return
    with read_target_lists(room, listed) as now:
        now.check(plan, journal, listed, begun)


@contextmanager
def read_target_lists(room: Path, listed: Mapping[str, TargetListing]) -> Iterator[TargetLists]:
    """What the target lists, for the length of the block."""
    key = next((records.key for records in listed.values() if records.key is not None), None)
    with TargetLists(room / "others.sqlite", key) as now:
        for resource, records in listed.items():
            now.take(resource, records)
        yield now


class TargetLists:
    """What the target lists, in a file that goes when it has been compared."""

    def __init__(self, path: Path, key: PersonalKey | None = None) -> None:
        self._path = path
        self._key = key
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA}")

    def take(self, resource: str, listed: TargetListing) -> None:
        """Take the records of a resource."""
        other = RESOURCE_TYPES[resource]
        seal = sealing(other, self._key)
        with storage_errors(self._path):
            for number, record in numbered(listed.records(), [0]):
                values = other.values(record)
                text = seal(msgspec.json.encode(values).decode())
                self._db.execute(
                    "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?)",
                    (resource, number, key_digest(other.key(values)), text),
                )

    def record(self, resource: str, number: int) -> Mapping[str, Any] | None:
        """One of them, as it is sent."""
        row = self._db.execute(
            "SELECT record FROM records WHERE resource = ? AND id = ?", (resource, number)
        ).fetchone()
        return msgspec.json.decode(unsealing(RESOURCE_TYPES[resource], self._key)(row[0])) if row else None

    def check(
        self, plan: Plan, journal: Journal, resources: Collection[str], begun: Collection[tuple[str, int]]
    ) -> None:
        """See `check_others_fresh`."""
        found = self._changed(plan, journal, resources, begun)
        first = [told for told, _number in zip(found, range(EXAMPLES), strict=False)]
        if first:
            source, target = plan.facts.source.tenant, plan.facts.target.tenant
            raise StopError(
                f"Plan {plan.name} is stale: '{target}' changed since it was made: {'; '.join(first)}. Nothing was written. Make a new "
                f"plan: `bookferry migrate plan {source} {target} --resources {','.join(resources)}`."
            )

    def _changed(
        self, plan: Plan, journal: Journal, resources: Collection[str], begun: Collection[tuple[str, int]]
    ) -> Iterator[str]:
        for row in plan.rows(*WRITTEN_ACTIONS, resources=resources):
            if (row.resource, row.source_id) in begun or row.matched_by == "decision":
                continue
            if row.action == PATCH:
                if told := self._edited(row):
                    yield told
            elif there := self.new_alike(plan, journal, row):
                yield f"{row.resource} {row.source_id} was to be created, and seems to be there now ({there[0]})"

    def _edited(self, row: PlanRow) -> str | None:
        other, now = RESOURCE_TYPES[row.resource], self.record(row.resource, row.matched)
        what = f"{row.resource} {row.source_id} was to change {row.matched}"
        if now is None:
            return f"{what}, which is not there any more"
        before, shown = other.compared(row.before), other.compared(now)
        fits = all(
            shown.get(name) == before.get(name) or digest(shown.get(name)) == row.expected.get(name, "")
            for name in [*row.payload, *row.references]
        )
        return None if fits else f"{what}, and people changed that"

    def new_alike(self, plan: Plan, journal: Journal, row: PlanRow) -> list[int]:
        """Records that are new there and have its name."""
        key = RESOURCE_TYPES[row.resource].key({**row.payload, **{name: {"source": 0} for name in row.references}})
        rows = self._db.execute(
            "SELECT id FROM records WHERE resource = ? AND key = ? LIMIT 100", (row.resource, key_digest(key))
        ).fetchall()
        ids = {number for (number,) in rows}
        return sorted(ids - plan.knew(row.resource, ids) - journal.known(row.resource, ids)) if ids else []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()
        self._path.unlink(missing_ok=True)

"""A plan: what a migration would write, decided in full before anything is written. Sealed when it is made, and read from then on.

It is a folder of its own in `<data>/plans`, on this machine also where the snapshots are in a bucket: a person edits a file of it. Beside
the files that design names it keeps both sides as they were compared (`source/`, `target/`), so that a later look at the target can be held
against them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow.parquet as pq

from pipelines.errors import StopError
from pipelines.migration.model.comparable import RECORDS, ComparableLibrary
from pipelines.records.files import COVER
from pipelines.records.tables import PERSONAL
from pipelines.store.durable import sha256_of, storage_errors
from pipelines.store.encryption import PersonalKey, PersonalKeys
from pipelines.store.parquet import exactly, open_table, reading, row_batches, show

if TYPE_CHECKING:
    import duckdb

FACTS = "plan.json"
ROWS = "plan.parquet"
PEOPLE = "people.parquet"
"""The rows of users: personal data, encrypted where `personal_key_env` is set."""
MARKDOWN, HTML, ISSUES, CONFLICTS = "plan.md", "plan.html", "issues.tsv", "conflicts.tsv"

CREATE, PATCH, UNCHANGED, CONFLICT, SKIPPED, QUARANTINED = (
    "create",
    "patch",
    "unchanged",
    "conflict",
    "skipped",
    "quarantined",
)
"""What a plan does with a record of the source. Quarantined: it cannot be sent, and is listed in issues.tsv."""

WRITTEN_ACTIONS = (CREATE, PATCH)
"""Actions that write a record into the target."""

PRESENT_ACTIONS = (*WRITTEN_ACTIONS, UNCHANGED)
"""Actions after which the target has the record."""

APPROVAL_LENGTH = 8
"""Characters of a plan's seal that approve it."""

FORMAT = 2
"""Of plan.json; a later one may be read by a later version only."""


class PlannedFile(msgspec.Struct, omit_defaults=True):
    """A file of a record, and what is done with it."""

    kind: str
    """cover or asset."""
    position: int
    action: str
    """upload, there (the target has it) or missing (the snapshot lacks its content)."""
    asset_id: int | None = None
    """The asset in the source."""
    name: str | None = None
    content_type: str | None = None
    filename: str | None = None
    size: int | None = None
    sha256: str | None = None
    target_asset_id: int | None = None
    """The asset in the target, where it is there."""
    problem: str | None = None
    """Why its content is missing."""

    @property
    def content(self) -> tuple[str, int]:
        """SHA-256 and bytes of what is uploaded."""
        if self.sha256 is None or self.size is None:
            raise ValueError(f"the content of {self.kind} {self.position} is missing")
        return self.sha256, self.size


UPLOAD, THERE, MISSING = "upload", "there", "missing"


class PlannedReference(msgspec.Struct, omit_defaults=True):
    """The records that a field refers to, where at least one of them is still to be created in the target."""

    resource: str
    source_ids: list[int]
    """In the order of the field."""
    target_ids: list[int | None]
    """The same in the target, as far as they are there."""
    many: bool = False
    """Whether the field is a list."""
    as_object: bool = False
    """Whether it is sent as `{"id"}`, as publications refer; one of them goes without it where what it refers to could not be created."""

    def value(self, ids: list[int]) -> Any:
        """What is sent, once they are known."""
        if self.many:
            return ids
        return {"id": ids[0]} if self.as_object else ids[0]


class End(msgspec.Struct, kw_only=True):
    """One side of a plan. `snapshot`: the one that was planned from; of the target, when it was read."""

    tenant: str
    base_url: str
    api: str
    snapshot: str
    records: dict[str, int]
    """Resource → records."""


class FileCounts(msgspec.Struct, kw_only=True):
    """What becomes of files."""

    upload: int = 0
    there: int = 0
    missing: int = 0
    bytes: int = 0
    """Of those that are uploaded."""
    covers: int = 0
    """How many of those that are uploaded are covers."""

    def count(self, file: PlannedFile) -> None:
        """Take one more file into account."""
        if file.action == UPLOAD:
            self.upload += 1
            self.bytes += file.size or 0
            self.covers += file.kind == COVER
        elif file.action == THERE:
            self.there += 1
        else:
            self.missing += 1


class PlanFacts(msgspec.Struct, kw_only=True):
    """plan.json: all of a plan but its rows."""

    format: int = FORMAT
    plan: str
    tool: str
    created_at: str
    source: End
    target: End
    same_library: bool
    overwrite: bool = False
    """Where both sides hold something else, the source's value counts."""
    resources: list[str]
    """What is moved, in the order in which it is written."""
    counts: dict[str, dict[str, int]]
    """Resource → action → records."""
    matched_by: dict[str, int]
    fields: dict[str, int]
    """Field → publications in which it is patched."""
    files: FileCounts
    requests: int
    """That applying it takes: reading the target again included, and waiting for nobody."""
    requests_per_minute: int
    unfit: int = 0
    """Records of the source without an id, which nothing can name: they cannot be moved."""
    unsent: dict[str, int] = {}
    """Path → publications of which version 3 will not hold what is there."""
    invalid_identifiers: int = 0
    """Identifiers that are not sent, because they break the rules of their type."""
    mails: int = 0
    """Persons to whom the service may write, because an account is made for them (trap A16)."""
    notes: list[str] = []
    decisions: int = 0
    """Conflicts that a person had decided."""
    rows_sha256: str
    people_sha256: str = ""
    """Of people.parquet; empty where no users are moved. `people_key`: the name of the key that it is encrypted with, if it is."""
    people_key: str = ""
    seal: str = ""
    """SHA-256 of this document without its seal."""

    @property
    def approval(self) -> str:
        """The first characters of the seal, with which a person approves the plan."""
        return self.seal[:APPROVAL_LENGTH]

    def count(self, action: str) -> int:
        """Over all resources."""
        return sum(one.get(action, 0) for one in self.counts.values())

    @property
    def minutes(self) -> float:
        """How long applying takes at the budget of the target."""
        return self.requests / self.requests_per_minute

    @property
    def writes(self) -> int:
        """Records that are created or changed, and files that are uploaded."""
        return self.count(CREATE) + self.count(PATCH)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return self.writes == 0 and self.files.upload == 0


class PlanRow(msgspec.Struct, kw_only=True):
    """One row of plan.parquet, decoded."""

    resource: str
    source_id: int
    target_id: int | None
    action: str
    matched_by: str | None
    title: str | None
    payload: dict[str, Any]
    before: dict[str, Any]
    expected: dict[str, str | None]
    differing: dict[str, list[str | None]]
    reason: str | None
    candidates: list[int]
    files: list[PlannedFile]
    unsent: dict[str, Any]
    references: dict[str, PlannedReference] = {}

    @property
    def writes(self) -> bool:
        """Whether anything of the record itself is sent, its files apart."""
        return bool(self.payload or self.references)

    @property
    def told(self) -> str:
        """What it is called, for results and messages; of a person nothing."""
        return "" if self.resource in PERSONAL else self.title or ""

    @property
    def attached(self) -> list[PlannedFile]:
        """Its files that are uploaded, but for the cover, which goes with the record itself."""
        return [one for one in self.files if one.kind != COVER and one.action == UPLOAD]

    @property
    def matched(self) -> int:
        """The record in the target that it is."""
        if self.target_id is None:
            raise ValueError(f"{self.resource} {self.source_id} has none")
        return self.target_id


class Plan:
    """A plan on disk."""

    def __init__(self, folder: Path, facts: PlanFacts, keys: PersonalKeys | None = None) -> None:
        self.folder = folder
        self.facts = facts
        self._keys = keys or PersonalKeys()

    @property
    def name(self) -> str:
        """As commands print and take it."""
        return self.facts.plan

    def path(self, name: str) -> Path:
        """One of its files."""
        return self.folder / name

    @property
    def source(self) -> ComparableLibrary:
        """The source's publications as they were compared."""
        return ComparableLibrary(
            self.folder / "source", self.facts.source.records.get("publications", 0), self.facts.unfit
        )

    @property
    def target(self) -> ComparableLibrary:
        """The target's publications as they were when the plan was made."""
        return ComparableLibrary(self.folder / "target", self.facts.target.records.get("publications", 0), 0)

    def rows(self, *actions: str, resources: Collection[str] = ()) -> Iterator[PlanRow]:
        """The rows with these actions, of these resources, or all, people first; one row group in memory."""
        for path, key in self.tables(resources):
            with storage_errors(self.folder), open_table(path, key) as file:
                for batch in row_batches(file):
                    for row in batch.to_pylist():
                        if (not actions or row["action"] in actions) and (
                            not resources or row["resource"] in resources
                        ):
                            yield plan_row(row)

    def tables(self, resources: Collection[str] = ()) -> Iterator[tuple[Path, PersonalKey | None]]:
        """The files with its rows, in the order in which they are written, each with its key; those in which these resources are."""
        if self.facts.people_sha256 and (not resources or not PERSONAL.isdisjoint(resources)):
            yield self.path(PEOPLE), self._keys.to_read(self.facts.people_key, f"What plan {self.name} says of users")
        yield self.path(ROWS), None

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A small DuckDB with all of its rows as the view `file`."""
        *people, (rows, _none) = self.tables()
        with reading(rows) as database:
            for path, key in people:
                show(database, "people", exactly(path), key)
                database.execute(
                    "ALTER VIEW file RENAME TO others; CREATE VIEW file AS FROM people UNION ALL FROM others"
                )
            yield database

    def ids_path(self, resource: str) -> Path:
        """The file with the ids that a resource beside the publications had in the target when the plan was made."""
        return self.folder / "target" / f"{resource}.parquet"

    def knew(self, resource: str, ids: Collection[int]) -> set[int]:
        """Which of these records were in the target when the plan was made."""
        with storage_errors(self.folder):
            path = self.target.path(RECORDS) if resource == "publications" else self.ids_path(resource)
            found = pq.read_table(path, columns=["id"], filters=[("id", "in", list(ids))])
        return {number for number in found.column("id").to_pylist() if number is not None}

    def check_unaltered(self) -> None:
        """Raise `StopError` unless its rows are what was sealed: what was looked at is what is applied (trap B14)."""
        sealed = {ROWS: self.facts.rows_sha256, PEOPLE: self.facts.people_sha256}
        with storage_errors(self.folder):
            altered = next((name for name, told in sealed.items() if told and sha256_of(self.path(name)) != told), None)
        if altered is None:
            return
        raise StopError(
            f"{self.path(altered)} was altered since the plan was made, so it is not what anybody agreed to. Make a new plan: "
            f"`bookferry migrate plan {self.facts.source.tenant} {self.facts.target.tenant}`."
        )


def plan_row(row: dict[str, Any]) -> PlanRow:
    """A row of plan.parquet, its JSON read."""
    empty: dict[str, Any] = {
        "payload": {},
        "before": {},
        "expected": {},
        "differing": {},
        "candidates": [],
        "files": [],
        "unsent": {},
        "references": {},
    }
    decoded = {name: msgspec.json.decode(row[name]) if row[name] else other for name, other in empty.items()}
    return msgspec.convert({**row, **decoded}, PlanRow)

"""A plan: everything that a migration will write, decided before anything is written. It is sealed when it is made.

A plan is a folder in `<data>/plans`. The folder is local even where the snapshots are in a bucket, because a person edits a file of it. It
also has both sides in comparable form (`source/`, `target/`), so that a later reading of the target can be compared with them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pipelines.errors import StopError
from pipelines.migration.model.actions import WRITTEN_ACTIONS, Action, FileAction
from pipelines.migration.model.comparable import Side
from pipelines.migration.model.field_mapping import FieldMapping, several
from pipelines.migration.model.findings import Finding, NotMoved
from pipelines.migration.model.plan_table import PLAN
from pipelines.migration.model.resource_types import (
    LOCATIONS,
    PUBLICATIONS,
    RESOURCE_TYPES,
    ResourceType,
)
from pipelines.records.files import COVER
from pipelines.records.tables.registry import PERSONAL
from pipelines.records.values import RecordId, record_id
from pipelines.report.issues import safe_text
from pipelines.shapes.model import Description
from pipelines.store.durable import sha256_of, storage_errors, write_atomically
from pipelines.store.encryption import PersonalKey, PersonalKeys
from pipelines.store.parquet import create_view, escaped, open_in_duckdb, open_table, row_batches, rows_among

if TYPE_CHECKING:
    import duckdb

FACTS, ROWS = "plan.json", "plan.parquet"
PEOPLE = "people.parquet"
"""The rows of users: personal data, encrypted where bookferry.toml has `personal_key_env`."""
SOURCE, TARGET = "source", "target"
"""The folders of both sides in comparable form."""
HTML, ISSUES, WORKBOOK, CONFLICTS = "plan.html", "issues.tsv", "issues.xlsx", "conflicts.tsv"

APPROVAL_LENGTH = 8
"""Characters of a plan's seal that approve it."""

_IDS = ("source_id", "target_id")
_JSON_COLUMNS = frozenset(column.name for column in PLAN.columns if column.json)

FORMAT = 7
"""The format of plan.json. Only a later version can read a later format."""


class PlannedFile(msgspec.Struct, omit_defaults=True):
    """A file of a record, and what the plan does with it."""

    kind: str
    """cover or asset."""
    position: int
    action: FileAction
    asset_id: int | None = None
    """The asset in the source."""
    name: str | None = None
    content_type: str | None = None
    filename: str | None = None
    size: int | None = None
    sha256: str | None = None
    target_asset_id: int | None = None
    """The asset in the target, if it exists."""
    problem: str | None = None
    """Why its content is missing."""
    kept: str | None = None
    """What of it the service keeps otherwise than an earlier plan sent it, such as `file name and name`."""

    @property
    def content(self) -> tuple[str, int]:
        """SHA-256 and size in bytes of the upload."""
        if self.sha256 is None or self.size is None:
            raise ValueError(f"the content of {self.kind} {self.position} is missing")
        return self.sha256, self.size


class Referred(NamedTuple):
    """A record to which a field refers. `target_id`: its id in the target; `source_id` is only needed where it has none yet."""

    resource: str
    source_id: RecordId
    target_id: RecordId | None


class PlannedReference(msgspec.Struct, omit_defaults=True):
    """The records that a field refers to, if at least one of them is still to be created in the target."""

    records: list[Referred]
    """In the order of the field."""
    planned: Any = None
    """The value of the field, with `{"source": id}` in place of each id that is not known yet."""
    later: bool = False
    """Whether it is set by a second request, because a record to which it refers is created after this one."""

    def value(self, field: FieldMapping, ids: Sequence[RecordId]) -> Any:
        """The value with these ids. Of a list only the first entries, where they are of the first records only."""
        if not self.records:
            return self.planned  # it only waits for another member of its object
        known, values = iter(ids), list[Any]()
        with suppress(StopIteration):
            for entry in several(self.planned):
                values.append(field.with_ids(entry, lambda *_: next(known)))
        return values if isinstance(self.planned, list) else values[0]


class End(msgspec.Struct, kw_only=True):
    """One side of a plan. `snapshot`: the one that is moved; of the target, when it is read. `record_url`: of records' pages."""

    tenant: str
    base_url: str
    api: str
    snapshot: str
    records: dict[str, int]
    """Resource → records."""
    record_url: str = ""


class FileCounts(msgspec.Struct, kw_only=True):
    """Files by what the plan does with them."""

    upload: int = 0
    present: int = 0
    missing: int = 0
    bytes: int = 0
    """Size of all uploads."""
    covers: int = 0
    """Uploads that are covers."""

    def count(self, file: PlannedFile) -> None:
        """Count a file."""
        if file.action == FileAction.UPLOAD:
            self.upload += 1
            self.bytes += file.size or 0
            self.covers += file.kind == COVER
        elif file.action == FileAction.THERE:
            self.present += 1
        else:
            self.missing += 1


class Twin(msgspec.Struct, kw_only=True):
    """A record of the target that may be there more than once."""

    resource: str
    source_id: RecordId
    target_id: RecordId
    twins: list[RecordId]
    """Ids of the other records."""

    def __str__(self) -> str:
        return (
            f"{self.resource} {self.target_id} is there more than once, also as record {', '.join(map(str, self.twins))}: no plan made "
            "that one, and it has the same content. Compare them in the library, and delete what is superfluous there."
        )


class Unanswered(msgspec.Struct):
    """A resource that is not planned, because the mapping file has open questions about it: its records, and where the questions are."""

    records: int
    why: str


class PlanFacts(msgspec.Struct, kw_only=True):
    """plan.json: all of a plan except its rows."""

    format: int = FORMAT
    plan: str
    tool: str
    created_at: str
    source: End
    target: End
    same_library: bool
    overwrite: bool = False
    """Where both sides have different values, the source's value counts."""
    first_days: bool = False
    """A date that is only a year or a month is sent as its first day."""
    sends_invalid: bool = False
    """Identifiers that break the rules of their type are sent, too."""
    resources: list[str]
    """The resources that are moved, in the order in which they are written."""
    counts: dict[str, dict[str, int]]
    """Resource → action → records."""
    matched_by: dict[str, int]
    types: dict[str, ResourceType] = {}
    """Resource → how its records are moved, as learned when the plan was made; of publications, the fields that the service does not
    document, where the source has any."""
    description: Description | None = None
    """The target's own description, where the plan needed it."""
    files: FileCounts
    requests: int
    """Requests of an apply, including those that read the target again."""
    requests_per_minute: int
    unfit: int = 0
    """Records of the source without an id; they cannot be moved."""
    work: dict[str, int] = {}
    """Writes of an apply: `create`, `patch`, `links` (references to records that are created later), `merge`, `files`, `covers`;
    `actions` (fields that a request of their own sets), where there are any."""
    not_moved: NotMoved = msgspec.field(default_factory=NotMoved)
    left_out: dict[str, int] = {}
    """Resource that the snapshot has and the plan does not move → its records."""
    mapping_sha256: str = ""
    """SHA-256 of the mapping file that the plan follows; empty where there is none."""
    unanswered: dict[str, Unanswered] = {}
    """Resource that is asked for and not planned → why not; `publications` where fields of theirs are not."""
    not_read: list[str] = []
    """What the snapshot says was not read of the source, such as `/collections/:id/publications`."""
    mails: int = 0
    """Persons to whom the service may write, because an account is made for them (service.md#users)."""
    merges_proposed: int = 0
    """Rows for which a merge is proposed in conflicts.tsv."""
    first_day_dates: int = 0
    """Records with a date that is sent as the first day of its year or month."""
    notes: list[str] = []
    twins: list[Twin] = []
    """What the target has twice because an earlier apply sent it again."""
    decisions: int = 0
    """Decisions of a person that the plan follows."""
    rows_sha256: str
    people_sha256: str = ""
    """SHA-256 of people.parquet; empty where no users are moved. `people_key`: the name of the key that encrypts it, if one does."""
    people_key: str = ""
    seal: str = ""
    """SHA-256 of this document without the seal."""

    @property
    def approval(self) -> str:
        """The first characters of the seal, with which a person approves the plan."""
        return self.seal[:APPROVAL_LENGTH]

    def count(self, action: Action) -> int:
        """The number of records with an action, over all resources."""
        return sum(actions.get(action, 0) for actions in self.counts.values())

    @property
    def unanswered_records(self) -> int:
        """The records of resources that are not planned, because the mapping file has open questions about them."""
        return sum(unanswered.records for unanswered in self.unanswered.values())

    @property
    def written_other_resources(self) -> list[str]:
        """The other resources of which the plan creates or changes any record."""
        return [
            resource
            for resource in self.resources
            if resource != PUBLICATIONS and any(self.counts[resource].get(action) for action in WRITTEN_ACTIONS)
        ]

    @property
    def read_before_writing(self) -> list[str]:
        """The resources that an apply reads of the target before it writes: those that are written, and locations, to which copies lead."""
        written = [PUBLICATIONS, *self.written_other_resources]
        return [*written, LOCATIONS] if LOCATIONS in self.resources and LOCATIONS not in written else written

    @property
    def minutes(self) -> float:
        """The minutes that an apply takes with the budget of the target."""
        return self.requests / self.requests_per_minute

    @property
    def writes(self) -> int:
        """Records that are created, changed or get others merged into them."""
        return sum(map(self.count, WRITTEN_ACTIONS))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return self.writes == 0 and self.files.upload == 0


class PlanRow(msgspec.Struct, kw_only=True):
    """One row of plan.parquet, decoded."""

    resource: str
    source_id: RecordId
    target_id: RecordId | None
    action: Action
    matched_by: str | None
    title: str | None
    payload: dict[str, Any] = {}
    before: dict[str, Any] = {}
    expected: dict[str, str | None] = {}
    differing: dict[str, list[str | None]] = {}
    reason: str | None
    candidates: list[RecordId] = []
    files: list[PlannedFile] = []
    unsent: dict[str, Any] = {}
    why: dict[str, str] = {}
    references: dict[str, PlannedReference] = {}
    kept: dict[str, list[str | None]] = {}
    after: list[str] = []

    @property
    def writes(self) -> bool:
        """Whether fields of the record are sent with its first request, apart from its files."""
        is_new = self.action == Action.CREATE
        return bool(self.payload) or any(is_new or not reference.later for reference in self.references.values())

    @property
    def display_title(self) -> str:
        """Its title for results and messages; empty for a person."""
        return "" if self.resource in PERSONAL else self.title or ""

    def finding(self, code: str, problem: str, **values: Any) -> Finding:
        """A finding on its record."""
        record = {name: getattr(self, name) for name in ("resource", "source_id", "target_id")}
        return Finding(code=code, problem=problem, title=safe_text(self.display_title), **(record | values))

    @property
    def uploads(self) -> list[PlannedFile]:
        """The files that are uploaded."""
        return [file for file in self.files if file.action == FileAction.UPLOAD]

    def without(self, names: Collection[str]) -> PlanRow:
        """The row without these fields, which are not sent and not expected."""
        payload, expected = (
            {name: fields[name] for name in fields if name not in names} for fields in (self.payload, self.expected)
        )
        return msgspec.structs.replace(self, payload=payload, expected=expected)

    @property
    def existing_target_id(self) -> RecordId:
        """Its record in the target. Raises `ValueError` for a row without one."""
        if self.target_id is None:
            raise ValueError(f"{self.resource} {self.source_id} has no record in the target")
        return self.target_id


class Plan:
    """A plan on disk."""

    def __init__(self, folder: Path, facts: PlanFacts, keys: PersonalKeys | None = None) -> None:
        self.folder = folder
        self.facts = facts
        self._keys = keys or PersonalKeys()

    @property
    def name(self) -> str:
        """The name that commands print and take."""
        return self.facts.plan

    def path(self, name: str) -> Path:
        """The path of one of its files."""
        return self.folder / name

    def free_name(self, step: str, at: datetime) -> str:
        """A name for the documents of a step beside the plan, which none has: its date, or the next free second."""
        moment = at.astimezone(UTC)
        while self.path(f"{step}-{moment:%Y%m%dT%H%M%SZ}.json").exists():
            moment += timedelta(seconds=1)
        return f"{step}-{moment:%Y%m%dT%H%M%SZ}"

    def save(self, name: str, document: msgspec.Struct) -> None:
        """Write a document beside the plan."""
        with storage_errors(self.folder):
            write_atomically(self.path(name), msgspec.json.format(msgspec.json.encode(document)))

    def side(self, name: str, resource: str = PUBLICATIONS) -> Side:
        """The records of a resource that the plan moves, in comparable form: `SOURCE`, or `TARGET` when the plan was made."""
        key = self._people_key() if resource in PERSONAL else None
        return Side(self.folder / name, resource, key)

    def _people_key(self) -> PersonalKey | None:
        return self._keys.to_read(self.facts.people_key, f"The table of users of plan {self.name}")

    def rows(self, *actions: Action, resources: Collection[str] = ()) -> Iterator[PlanRow]:
        """Yield the rows with these actions and of these resources, or all; people come first. One row group is in memory."""
        for path, key in self.tables(resources):
            with storage_errors(self.folder), open_table(path, key) as file:
                for batch in row_batches(file):
                    for row in rows_among(rows_among(batch, "action", actions), "resource", resources).to_pylist():
                        yield plan_row(row)

    @property
    def types(self) -> dict[str, ResourceType]:
        """Resource → how its records are moved."""
        return RESOURCE_TYPES | self.facts.types

    def tables(self, resources: Collection[str] = ()) -> Iterator[tuple[Path, PersonalKey | None]]:
        """Yield the files with rows of these resources, in the order in which they are written, each with its key."""
        if self.facts.people_sha256 and (not resources or not PERSONAL.isdisjoint(resources)):
            yield self.path(PEOPLE), self._people_key()
        yield self.path(ROWS), None

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a small DuckDB with all rows as the view `file`."""
        *people, (rows, _none) = self.tables()
        with open_in_duckdb(rows) as database:
            for path, key in people:
                create_view(database, "people", escaped(path), key)
                database.execute(
                    "ALTER VIEW file RENAME TO others; CREATE VIEW file AS FROM people UNION ALL FROM others"
                )
            yield database

    def ids_when_planned(self, resource: str, ids: Collection[RecordId]) -> set[RecordId]:
        """Returns those ids that were in the target when the plan was made."""
        return self.side(TARGET, resource).ids_among(ids)

    def check_unaltered(self) -> None:
        """Raise `StopError` unless the rows are those that were sealed: a plan is applied as a person approved it (I8)."""
        sealed = {ROWS: self.facts.rows_sha256, PEOPLE: self.facts.people_sha256}
        with storage_errors(self.folder):
            altered = next(
                (name for name, sha256 in sealed.items() if sha256 and sha256_of(self.path(name)) != sha256), None
            )
        if altered is None:
            return
        raise StopError(
            f"{self.path(altered)} was altered since the plan was made, so its approval is not valid. Make a new plan: "
            f"`bookferry migrate plan {self.facts.source.tenant} {self.facts.target.tenant}`."
        )


def stored_row(row: PlanRow) -> tuple[Any, ...]:
    """A row as plan.parquet has it: ids and JSON are text, and nothing where there is nothing."""
    return tuple(
        (msgspec.json.encode(value).decode() if value else None)
        if column.json
        else (None if value is None else str(value))
        for column, value in zip(PLAN.columns, msgspec.structs.astuple(row), strict=True)
    )


def plan_row(row: dict[str, Any]) -> PlanRow:
    """A row of plan.parquet with its JSON decoded; an empty cell of JSON becomes the field's default."""
    values = {name: value for name, value in row.items() if value or name not in _JSON_COLUMNS}
    decoded = {name: record_id(values[name]) for name in _IDS}
    decoded |= {name: msgspec.json.decode(values[name]) for name in _JSON_COLUMNS & values.keys()}
    return msgspec.convert({**values, **decoded}, PlanRow)


_ROW_DECODER = msgspec.json.Decoder(PlanRow)
"""Nothing decodes with it: msgspec learns a type at its first use, `convert` included, and two threads must not be the first together."""

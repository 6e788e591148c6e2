"""One look at the rows of a plan: issues.tsv goes out line by line, and what the page shows of them is remembered.

A pass in DuckDB that decodes only what it needs; what is remembered has its bounds (I11). Every text of a record is fit to be shown (I10).
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import msgspec

from pipelines.inventory import IDENTIFIER_FIELDS
from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.formatting import display_both
from pipelines.migration.model.plan import CONFLICT, CONFLICTS, ISSUES, MISSING, PATCH, QUARANTINED, Plan, PlannedFile
from pipelines.migration.model.wording import NO_PLACE, advice_on, advice_on_unsent, noun
from pipelines.migration.plan.conflicts import differing, numbers
from pipelines.records.advice import advice_on_finding
from pipelines.records.values import compact_json
from pipelines.report.issues import ALIKE, COLUMNS, EXAMPLES, LineWriter, shown
from pipelines.report.rendering import NOT_SHOWN, names_a_person
from pipelines.store.durable import storage_errors

if TYPE_CHECKING:
    import duckdb

PATCHES = 3
"""Records that the page shows of each field that is changed."""

MOST_SORTS = 1000
"""Different reasons and paths of which examples are kept: a hostile record may have fields without end (I13)."""

PUBLICATIONS, PEOPLE = "publications", "users"
"""Most records, and those that are people: none of these is shown."""

_POSITIONS = re.compile(r"\[\d+\]")
_FILES = msgspec.json.Decoder(list[PlannedFile])

_POINTER = "('/' || replace(replace({name}, '~', '~0'), '/', '~1'))"
"""A member by its name, whatever that is: DuckDB takes some names for paths."""

_NOTED = f"""
    SELECT
        resource, source_id, target_id, action, title, reason, candidates, differing, unsent,
        CASE WHEN files LIKE '%"{MISSING}"%' THEN files END AS files
    FROM file
    WHERE action IN ('{CONFLICT}', '{QUARANTINED}') OR unsent IS NOT NULL OR files LIKE '%"{MISSING}"%'
"""  # noqa: S608  words of ours

_CHANGES = f"""(
    SELECT
        resource, source_id, field,
        CASE
            WHEN coalesce(json_type(theirs), 'NULL') = 'NULL' THEN false
            WHEN json_type(ours) = 'ARRAY' AND json_type(theirs) = 'ARRAY'
                THEN NOT list_has_all(json_extract(ours, '$[*]'), json_extract(theirs, '$[*]'))
            ELSE true
        END AS replaces
    FROM (
        SELECT
            resource, source_id, field,
            payload -> {_POINTER.format(name="field")} AS ours, before -> {_POINTER.format(name="field")} AS theirs
        FROM (SELECT *, unnest(json_keys(payload)) AS field FROM file WHERE action = '{PATCH}')
    )
)"""  # noqa: S608  words of ours
"""Each field of a patch. A list that holds all that stands there, and more, replaces nothing."""

_PATCHED = f"""
    SELECT
        resource, field, count(*) AS records, count(*) FILTER (replaces) AS replaced,
        coalesce(min(source_id, {PATCHES}) FILTER (replaces), min(source_id, {PATCHES})) AS examples
    FROM {_CHANGES}
    GROUP BY ALL
    ORDER BY replaced DESC, records DESC, resource, field
    LIMIT {MOST_SORTS}
"""  # noqa: S608  words of ours

_REPLACED = f"SELECT count(*) FROM (SELECT DISTINCT resource, source_id FROM {_CHANGES} WHERE replaces)"  # noqa: S608  words of ours

_EXAMPLES = f"""
    SELECT source_id, title, payload -> {_POINTER.format(name="$2")}, before -> {_POINTER.format(name="$2")}
    FROM file
    WHERE action = '{PATCH}' AND resource = $1 AND source_id IN (SELECT unnest($3))
    ORDER BY source_id
"""  # noqa: S608  words of ours

_Told = tuple[str, str, str, str]
"""Field, value, problem, suggestion."""

Line = tuple[str | int, str, str, str, str]
"""The record, and these."""


class IssueExample(msgspec.Struct):
    """A record that the page shows; of two values, the source's is `value`."""

    record: str
    title: str = ""
    value: str = ""
    before: str = ""


class IssueGroup(msgspec.Struct):
    """Records that are alike: how many, and the first ones."""

    count: int = 0
    examples: list[IssueExample] = []


class PatchedField(msgspec.Struct):
    """A field that is changed: in how many records, in how many of them something is replaced, and examples of before and after."""

    resource: str
    field: str
    records: int
    replaced: int
    examples: list[IssueExample]


@dataclass
class PlanSummary:
    """What was seen. `conflicts` and `unfit` by reason, `unsent` by path without positions."""

    lines: int = 0
    conflicts: dict[str, IssueGroup] = field(default_factory=dict)
    unfit: dict[str, IssueGroup] = field(default_factory=dict)
    unsent: dict[str, IssueGroup] = field(default_factory=dict)
    missing: IssueGroup = field(default_factory=IssueGroup)
    patched: list[PatchedField] = field(default_factory=list)
    replaced: int = 0
    """Records in which something is replaced."""


def summarise(plan: Plan) -> PlanSummary:
    """Look at the rows of a plan, and write its issues.tsv."""
    looked, path = PlanSummary(), plan.path(ISSUES)
    with plan.reading() as database:
        looked.patched = list(_patched(database))
        ((looked.replaced,),) = database.execute(_REPLACED).fetchall()
        with (
            storage_errors(path),
            path.open("w", encoding="utf-8", newline="") as file,
            TemporaryFile("w+", encoding="utf-8", newline="", dir=plan.folder) as later,
        ):
            _write(database, looked, file, later)
    return looked


def sorts(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by path, without positions in lists, the commonest first."""
    added: dict[str, int] = {}
    for path, count in counts.items():
        key = _POSITIONS.sub("[]", path)
        added[key] = added.get(key, 0) + count
    return dict(sorted(added.items(), key=lambda one: (-one[1], one[0])))


def _write(database: duckdb.DuckDBPyConnection, looked: PlanSummary, file: IO[str], later: IO[str]) -> None:
    """The lines of all rows that have any, in the plan's order; those about which nothing can be done are put off to the end."""
    first, last = LineWriter(file, COLUMNS), LineWriter(later)
    noting = _Noting(looked)
    for batch in database.sql(_NOTED).to_arrow_reader(STEP):
        for row in batch.to_pylist():
            for line in noting.lines(row):
                (last if line[-1] == NO_PLACE.suggestion else first).write(line)
    looked.lines = first.lines + last.lines
    later.seek(0)
    shutil.copyfileobj(later, file)


class _Noting:
    """Makes the lines of rows; values and advice that come again are remembered."""

    def __init__(self, looked: PlanSummary) -> None:
        self._looked = looked
        self._show = lru_cache(ALIKE)(shown)
        self._path = lru_cache(ALIKE)(_path)
        self._advice = lru_cache(ALIKE)(advice_on_unsent)

    def lines(self, row: Mapping[str, Any]) -> Iterator[Line]:
        """What there is to tell of one row; a publication is named by its number alone, since most are."""
        resource, number = row["resource"], row["source_id"]
        record = f"{noun(resource)} {number}"
        for line in self._told(record, row):
            yield number if resource == PUBLICATIONS else record, *line

    def _told(self, record: str, row: Mapping[str, Any]) -> Iterator[_Told]:
        if row["action"] in (CONFLICT, QUARANTINED):
            yield self._unwritten(record, row)
        if row["unsent"]:
            for path, value in msgspec.json.decode(row["unsent"]).items():
                yield self._unsent(record, row["resource"], path, value)
        if row["files"]:
            for one in _FILES.decode(row["files"]):
                if one.action == MISSING:
                    yield self._missing(record, one)

    def _unwritten(self, record: str, row: Mapping[str, Any]) -> _Told:
        reason, conflict = row["reason"] or "", row["action"] == CONFLICT
        problem, suggestion = advice_on(reason)
        fields = msgspec.json.decode(row["differing"]) if row["differing"] else {}
        candidates = msgspec.json.decode(row["candidates"]) if row["candidates"] else []
        if row["target_id"] is not None:
            candidates = [row["target_id"]]
        hidden = row["resource"] == PEOPLE
        title = NOT_SHOWN if hidden else self._show(row["title"] or "")
        what = differing(fields) if fields and not hidden else numbers(candidates)
        groups = self._looked.conflicts if conflict else self._looked.unfit
        _add(groups, reason, IssueExample(record, title, what))
        if conflict:
            suggestion = f"{suggestion} The place for it is {CONFLICTS}."
        return ", ".join(self._show(one) for one in fields), what or title, problem, suggestion

    def _unsent(self, record: str, resource: str, path: str, value: Any) -> _Told:
        name, sort, personal = self._path(path)
        text = value if type(value) is str else compact_json(value)
        text = NOT_SHOWN if personal or resource == PEOPLE else self._show(text)
        _add(self._looked.unsent, sort, IssueExample(record, "", text), most=1)
        return name, text, *self._advice(path, text if path in IDENTIFIER_FIELDS else "")

    def _missing(self, record: str, file: PlannedFile) -> _Told:
        name = self._show(file.name or file.filename or "")
        problem, suggestion = advice_on_finding("file")
        self._looked.missing.count += 1
        if len(self._looked.missing.examples) < EXAMPLES:
            self._looked.missing.examples = [*self._looked.missing.examples, IssueExample(record, "", name)]
        return file.kind, name, self._show(file.problem or "") or problem, suggestion


def _path(path: str) -> tuple[str, str, bool]:
    """A path as it is shown, without positions in lists, and whether it may lead to a person."""
    name = shown(path)
    return name, _POSITIONS.sub("[]", name), names_a_person(path)


def _add(groups: dict[str, IssueGroup], key: str, example: IssueExample, most: int = EXAMPLES) -> None:
    group = groups.get(key)
    if group is None:
        if len(groups) >= MOST_SORTS:
            return
        group = groups[key] = IssueGroup(examples=[])
    group.count += 1
    if len(group.examples) < most:
        group.examples.append(example)


def _patched(database: duckdb.DuckDBPyConnection) -> Iterator[PatchedField]:
    """The fields that are changed, those first in which most is replaced."""
    for resource, name, records, replaced, ids in database.execute(_PATCHED).fetchall():
        shows = [] if resource == PEOPLE else _before_and_after(database, resource, name, ids)
        yield PatchedField(resource, name, records, replaced, shows)


def _before_and_after(
    database: duckdb.DuckDBPyConnection, resource: str, name: str, ids: Sequence[int]
) -> list[IssueExample]:
    rows = database.execute(_EXAMPLES, [resource, name, list(ids)]).fetchall()
    found = []
    for number, title, ours, theirs in rows:
        after, before = display_both(name, _value(ours), _value(theirs))
        found.append(IssueExample(f"{noun(resource)} {number}", shown(title or ""), after, before))
    return found


def _value(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)

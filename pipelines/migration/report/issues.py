"""Reads the rows of a plan once: writes issues.tsv and issues.xlsx line by line, and collects the examples for the page.

What holds for every record, or what nobody has to do anything about, is one line with the number of records.

DuckDB selects the rows, and only their needed columns are decoded. The number of examples is bounded (I11). Every text of a record is made
safe to display (I10).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from pipelines.humanize import counted
from pipelines.migration.model.actions import Action, FileAction
from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.formatting import display_both, value_of
from pipelines.migration.model.plan import CONFLICTS, Plan, PlanFacts, PlannedFile
from pipelines.migration.model.resource_types import PUBLICATIONS, USERS, AdditionalFields, ResourceType
from pipelines.migration.model.unsent_values import (
    NOTHING_TO_DO,
    UNSENT_CODES,
    explain_unsent,
    is_about_the_field,
    reason_left_out,
)
from pipelines.migration.model.wording import REASONS, advice_on, noun, plural
from pipelines.migration.plan.conflicts import differences, target_numbers
from pipelines.migration.plan.quarantine import NO_NUMBER
from pipelines.records.advice import CODES as RULE_CODES
from pipelines.records.advice import OTHER, advice_of, field_name
from pipelines.records.values import compact_json
from pipelines.report.issues import safe_text
from pipelines.report.rendering import NOT_SHOWN, link_to, names_a_person
from pipelines.report.tables import CACHED_TEXTS, IssueLine, IssueTables, open_issue_tables
from pipelines.store.maintenance.reports import ISSUE_ROWS

if TYPE_CHECKING:
    import duckdb

EXAMPLES = 5
"""Examples on the page for each reason."""

PATCHES = 3
"""Examples on the page for each changed field."""

MOST_GROUPS = 1000
"""Different reasons and paths with examples at most: a hostile record may have any number of fields (I13)."""

FILE = "file"

CODES = frozenset({*REASONS, *UNSENT_CODES, *RULE_CODES})
"""Every code of a line in the table of issues of a plan, by which people filter: docs/reports.md. None is ever renamed."""

_POSITIONS = re.compile(r"\[\d+\]")
_FILES = msgspec.json.Decoder(list[PlannedFile])

_POINTER = "('/' || replace(replace({name}, '~', '~0'), '/', '~1'))"
"""JSON pointer to a member. DuckDB would take some names for paths."""

_ROWS_WITH_ISSUES = f"""
    SELECT
        resource, source_id, target_id, action, title, reason, candidates, differing, unsent,
        CASE WHEN files LIKE '%"{FileAction.MISSING}"%' THEN files END AS files
    FROM file
    WHERE action IN ('{Action.CONFLICT}', '{Action.QUARANTINED}') OR unsent IS NOT NULL OR files LIKE '%"{FileAction.MISSING}"%'
"""  # noqa: S608  our own words

_CHANGES = f"""(
    SELECT
        resource, source_id, field,
        CASE
            WHEN coalesce(json_type(old), 'NULL') = 'NULL' THEN false
            WHEN json_type(new) = 'ARRAY' AND json_type(old) = 'ARRAY'
                THEN NOT list_has_all(json_extract(new, '$[*]'), json_extract(old, '$[*]'))
            ELSE true
        END AS replaces
    FROM (
        SELECT
            resource, source_id, field,
            payload -> {_POINTER.format(name="field")} AS new, before -> {_POINTER.format(name="field")} AS old
        FROM (SELECT *, unnest(json_keys(payload)) AS field FROM file WHERE action = '{Action.PATCH}')
    )
)"""  # noqa: S608  our own words
"""Each field of a patch. A list with all entries of the old one, and more, replaces nothing."""

_PATCHED = f"""
    SELECT
        resource, field, count(*) AS records, count(*) FILTER (replaces) AS replaced,
        coalesce(min(source_id, {PATCHES}) FILTER (replaces), min(source_id, {PATCHES})) AS examples
    FROM {_CHANGES}
    GROUP BY ALL
    ORDER BY replaced DESC, records DESC, resource, field
    LIMIT {MOST_GROUPS}
"""  # noqa: S608  our own words

_REPLACED = f"SELECT count(*) FROM (SELECT DISTINCT resource, source_id FROM {_CHANGES} WHERE replaces)"  # noqa: S608  our own words

_EXAMPLES = f"""
    SELECT source_id, title, payload -> {_POINTER.format(name="$2")}, before -> {_POINTER.format(name="$2")}
    FROM file
    WHERE action = '{Action.PATCH}' AND resource = $1 AND source_id IN (SELECT unnest($3))
    ORDER BY source_id
"""  # noqa: S608  our own words


class IssueExample(msgspec.Struct):
    """A record on the page. Of two values, `value` is the source's."""

    record: str
    title: str = ""
    value: str = ""
    before: str = ""
    link: str = ""
    """The address of its page in the source."""


class IssueGroup(msgspec.Struct):
    """Records with the same issue: their number, and the first ones."""

    count: int = 0
    examples: list[IssueExample] = []

    def add(self, example: IssueExample, most: int = EXAMPLES) -> None:
        """Count a record; it is an example while there are fewer than `most`."""
        self.count += 1
        if len(self.examples) < most:
            self.examples.append(example)


class PatchedField(msgspec.Struct):
    """A changed field: in how many records it is changed, in how many of them a value is replaced, and examples."""

    resource: str
    field: str
    records: int
    replaced: int
    examples: list[IssueExample]


@dataclass
class PlanSummary:
    """What the page shows of the rows. `conflicts` and `unfit` are by reason, `unsent` by path without positions."""

    sends_invalid: bool = False
    types: Mapping[str, ResourceType] = field(default_factory=dict)
    """Other resource → how its records are moved, as the plan learned it."""
    additional: AdditionalFields = field(default_factory=AdditionalFields)
    """What the plan learned of the additional fields of publications."""
    lines: int = 0
    conflicts: dict[str, IssueGroup] = field(default_factory=dict)
    unfit: dict[str, IssueGroup] = field(default_factory=dict)
    unsent: dict[str, IssueGroup] = field(default_factory=dict)
    missing: IssueGroup = field(default_factory=IssueGroup)
    patched: list[PatchedField] = field(default_factory=list)
    replaced: int = 0
    """Records in which a value is replaced."""


def summarise(plan: Plan) -> PlanSummary:
    """Write the tables of issues of a plan, and return a summary of its rows."""
    additional = plan.facts.additional_fields or AdditionalFields()
    summary = PlanSummary(plan.facts.sends_invalid, types=plan.facts.types or {}, additional=additional)
    with plan.reading() as database:
        summary.patched = list(_patched(database, plan.facts.source.record_url or ""))
        ((summary.replaced,),) = database.execute(_REPLACED).fetchall()
        with open_issue_tables(plan.folder) as tables:
            _write(database, plan.facts, summary, tables)
    plan.path(ISSUE_ROWS).unlink()
    return summary


def _write(database: duckdb.DuckDBPyConnection, facts: PlanFacts, summary: PlanSummary, tables: IssueTables) -> None:
    """Write the lines of all rows in the order of the plan, then those that stand for many records."""
    issues = _IssueLines(facts, summary)
    for batch in database.sql(_ROWS_WITH_ISSUES).to_arrow_reader(STEP):
        for row in batch.to_pylist():
            for line in issues.lines(row):
                tables.write(line)
    for line in issues.common_lines():
        tables.write(line)
    if facts.unfit:
        tables.write(IssueLine(counted(facts.unfit, "record"), "", "id", "", *REASONS[NO_NUMBER], NO_NUMBER, ""))
    summary.lines = tables.lines


@dataclass
class _CommonIssue:
    """An issue of many records: their number, its first line, and whether all of them have the same value."""

    resource: str
    field: str
    first: IssueLine
    records: int = 0
    same_value: bool = True


class _IssueLines:
    """Makes the lines of rows, and collects examples. Repeated values and texts are cached."""

    def __init__(self, facts: PlanFacts, summary: PlanSummary) -> None:
        self._summary = summary
        self._records = facts.source.records
        self._unsent_paths = facts.unsent
        self._record_url = facts.source.record_url or ""
        self._common: dict[tuple[str, str, str], _CommonIssue] = {}
        self._show = lru_cache(CACHED_TEXTS)(safe_text)
        self._path = lru_cache(CACHED_TEXTS)(_path)
        self._explain = lru_cache(CACHED_TEXTS)(explain_unsent)

    def lines(self, row: Mapping[str, Any]) -> Iterator[IssueLine]:
        """Yield the lines of one row. A publication is named by its number alone, because most records are publications."""
        if row["action"] in (Action.CONFLICT, Action.QUARANTINED):
            yield self._unwritten(row)
        if row["unsent"]:
            for path, value in msgspec.json.decode(row["unsent"]).items():
                if line := self._unsent(row, path, value):
                    yield line
        if row["files"]:
            for file in _FILES.decode(row["files"]):
                if file.action == FileAction.MISSING:
                    yield self._missing(row, file)

    def common_lines(self) -> Iterator[IssueLine]:
        """Yield a line for each issue of many records, the most frequent first. Those that ask for work come before the others."""
        for issue in sorted(
            self._common.values(), key=lambda issue: (issue.first.suggestion in NOTHING_TO_DO, -issue.records)
        ):
            if issue.records == 1:
                yield issue.first
                continue
            all_of_them = "all " if issue.records == self._records.get(issue.resource) else ""
            value = issue.first.value if issue.same_value else f"for example {issue.first.value}"
            record = f"{all_of_them}{issue.records:,} {plural(issue.resource)}"
            yield issue.first._replace(record=record, title="", field=issue.field, value=value, link="")

    def _line(self, row: Mapping[str, Any], field: str, value: str, advice: tuple[str, str], code: str) -> IssueLine:
        resource, number = row["resource"], row["source_id"]
        title = "" if resource == USERS else self._show(row["title"] or "")
        is_publication = resource == PUBLICATIONS
        record = number if is_publication else _name(row)
        return IssueLine(record, title, field, value, *advice, code, self._link(row))

    def _example(self, row: Mapping[str, Any], title: str, value: str) -> IssueExample:
        return IssueExample(_name(row), title, value, link=self._link(row))

    def _link(self, row: Mapping[str, Any]) -> str:
        return _link_to(self._record_url, row["resource"], row["source_id"])

    def _unwritten(self, row: Mapping[str, Any]) -> IssueLine:
        reason, conflict = row["reason"] or "", row["action"] == Action.CONFLICT
        problem, suggestion = advice_on(reason, row["resource"])
        fields = msgspec.json.decode(row["differing"]) if row["differing"] else {}
        candidates = msgspec.json.decode(row["candidates"]) if row["candidates"] else []
        if row["target_id"] is not None:
            candidates = [row["target_id"]]
        hidden = row["resource"] == USERS
        details = differences(fields) if fields and not hidden else target_numbers(candidates)
        groups = self._summary.conflicts if conflict else self._summary.unfit
        title = NOT_SHOWN if hidden else self._show(row["title"] or "")
        _add(groups, reason, self._example(row, title, details))
        if conflict:
            suggestion = f"{suggestion} Write the decision into {CONFLICTS}."
        names = ", ".join(field_name(self._show(name)) for name in fields)
        return self._line(row, names, details, (problem, suggestion), reason if reason in REASONS else OTHER)

    def _unsent(self, row: Mapping[str, Any], path: str, value: Any) -> IssueLine | None:
        """The line of a value that is not moved; None where one line will stand for many records."""
        resource = row["resource"]
        name, group, personal = self._path(path)
        text = value if type(value) is str else compact_json(value)
        text = NOT_SHOWN if personal or resource == USERS else self._show(text)
        _add(self._summary.unsent, group, self._example(row, "", text), most=1)
        known = resource == PUBLICATIONS and type(value) is str
        example = text if known else ""
        left_out = reason_left_out(self._summary.types, resource, path, example, self._summary.additional)
        code, advice = self._explain(path, example, left_out=left_out)
        key = resource, group, code
        is_common = advice.suggestion in NOTHING_TO_DO or self._holds_for_all(resource, path)
        if is_common and (common := self._common.get(key)):
            common.records += 1
            common.same_value &= common.first.value == text
            return None
        line = self._line(row, field_name(name), text, advice, code)
        if not is_common or len(self._common) >= MOST_GROUPS:
            return line
        self._common[key] = _CommonIssue(resource, field_name(group), line, records=1)
        return None

    def _holds_for_all(self, resource: str, path: str) -> bool:
        """Whether every record of the source has a value there that is not moved, for a reason that is about the field."""
        counted = self._unsent_paths.get(path if resource == PUBLICATIONS else f"{resource}.{path}")
        return counted == self._records.get(resource) and is_about_the_field(path)

    def _missing(self, row: Mapping[str, Any], file: PlannedFile) -> IssueLine:
        name = self._show(file.name or file.filename or "")
        problem, suggestion = advice_of(FILE)
        self._summary.missing.add(self._example(row, "", name))
        advice = self._show(file.problem or "") or problem, suggestion
        return self._line(row, field_name(file.kind), name, advice, FILE)


def _name(row: Mapping[str, Any]) -> str:
    """A record on the page, such as `publication 12`."""
    return f"{noun(row['resource'])} {row['source_id']}"


def _link_to(record_url: str, resource: str, number: int) -> str:
    """The address of a record's page: only publications have one."""
    return link_to(record_url, number) if resource == PUBLICATIONS else ""


def _path(path: str) -> tuple[str, str, bool]:
    """The displayed path, the path without positions in lists, and whether the value may identify a person."""
    name = safe_text(path)
    return name, _POSITIONS.sub("[]", name), names_a_person(path)


def _add(groups: dict[str, IssueGroup], key: str, example: IssueExample, most: int = EXAMPLES) -> None:
    if key in groups or len(groups) < MOST_GROUPS:
        groups.setdefault(key, IssueGroup()).add(example, most)


def _patched(database: duckdb.DuckDBPyConnection, record_url: str) -> Iterator[PatchedField]:
    """Yield the changed fields; those in which most values are replaced come first."""
    for resource, name, records, replaced, ids in database.execute(_PATCHED).fetchall():
        examples = [] if resource == USERS else _before_and_after(database, record_url, resource, name, ids)
        yield PatchedField(resource, name, records, replaced, examples)


def _before_and_after(
    database: duckdb.DuckDBPyConnection, record_url: str, resource: str, name: str, ids: Sequence[int]
) -> list[IssueExample]:
    rows = database.execute(_EXAMPLES, [resource, name, list(ids)]).fetchall()
    return [
        IssueExample(
            f"{noun(resource)} {number}",
            safe_text(title or ""),
            *display_both(name, value_of(new), value_of(old)),
            _link_to(record_url, resource, number),
        )
        for number, title, new, old in rows
    ]

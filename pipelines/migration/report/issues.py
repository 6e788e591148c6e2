"""Writes the tables of issues of a plan, issues.tsv and issues.xlsx, line by line, and groups the findings for the page.

What one change settles for every record, or what nobody has to do anything about, is one line with the number of records. The number of
groups and of examples is bounded (I11, I13).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from pipelines.humanize import counted
from pipelines.inventory import noun, plural
from pipelines.migration.model.actions import Action
from pipelines.migration.model.findings import Finding, NotMoved
from pipelines.migration.model.formatting import display_both, value_of
from pipelines.migration.model.plan import CONFLICTS, Plan, PlanFacts
from pipelines.migration.model.plan_findings import findings_of
from pipelines.migration.model.reasons import NO_ID, REASONS, ReasonKind, Work, work_of
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.records.advice import field_name
from pipelines.records.tables.registry import PERSONAL
from pipelines.records.values import record_id
from pipelines.report.rendering import link_to
from pipelines.report.tables import CACHED_TEXTS, IssueLine, IssueTables, open_issue_tables

if TYPE_CHECKING:
    import duckdb

EXAMPLES = 5
"""Examples on the page for each reason."""

PATCHES = 3
"""Examples on the page for each changed field."""

MOST_GROUPS = 1000
"""Different reasons and fields with examples at most: a hostile record may have any number of fields (I13)."""

MOST_STORED = 100
"""Findings in plan.json at most, of what is lacking."""

_POSITIONS = re.compile(r"\[\d+\]")

_POINTER = "('/' || replace(replace(field, '~', '~0'), '/', '~1'))"
"""JSON pointer to the member of this name. DuckDB would take some names for paths."""

_CHANGES = f"""(
    SELECT
        resource, source_id, field, new, old,
        CASE
            WHEN coalesce(json_type(old), 'NULL') = 'NULL' THEN false
            WHEN json_type(new) = 'ARRAY' AND json_type(old) = 'ARRAY'
                THEN NOT list_has_all(json_extract(new, '$[*]'), json_extract(old, '$[*]'))
            ELSE true
        END AS replaces
    FROM (
        SELECT
            resource, source_id, field,
            payload -> {_POINTER} AS new, before -> {_POINTER} AS old
        FROM (SELECT *, unnest(json_keys(payload)) AS field FROM file WHERE action = '{Action.PATCH}')
    )
)"""  # noqa: S608  our own words
"""Each field of a patch. A list with all entries of the old one, and more, replaces nothing."""

_PATCHED = f"""
    SELECT
        resource, field, count(*) AS records, count(*) FILTER (replaces) AS replaced,
        coalesce(
            arg_min([source_id, new::VARCHAR, old::VARCHAR], (length(source_id), source_id), {PATCHES}) FILTER (replaces),
            arg_min([source_id, new::VARCHAR, old::VARCHAR], (length(source_id), source_id), {PATCHES})
        ) AS examples
    FROM {_CHANGES}
    GROUP BY ALL
    ORDER BY replaced DESC, records DESC, resource, field
    LIMIT {MOST_GROUPS}
"""  # noqa: S608  our own words

_REPLACED = f"SELECT count(*) FROM (SELECT DISTINCT resource, source_id FROM {_CHANGES} WHERE replaces)"  # noqa: S608  our own words


class IssueGroup(msgspec.Struct):
    """Findings with one reason and, if it is about values, one field: their number, and the first ones."""

    resource: str
    field: str = ""
    """Without positions in lists."""
    count: int = 0
    examples: list[Finding] = []
    same_value: bool = True

    def add(self, finding: Finding) -> None:
        """Count a finding."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(finding)
        self.same_value &= finding.wanted == self.examples[0].wanted


class PatchedField(msgspec.Struct):
    """A changed field: in how many records it is changed, in how many of them a value is replaced, and examples."""

    resource: str
    field: str
    records: int
    replaced: int
    examples: list[Finding]


class PlanSummary(msgspec.Struct):
    """What the page shows of the rows."""

    lines: int = 0
    groups: dict[tuple[str, str, str], IssueGroup] = {}
    """Code, resource and field → findings. Conflicts, and records that cannot be sent, are grouped by their code alone."""
    not_moved: NotMoved = msgspec.field(default_factory=NotMoved)
    patched: list[PatchedField] = []
    replaced: int = 0
    """Records in which a value is replaced."""

    def add(self, finding: Finding) -> IssueGroup | None:
        """Count a finding. Returns its group; None for one of too many."""
        self.not_moved.lacking.add(finding)
        if finding.lacking and len(self.not_moved.first) < MOST_STORED:
            self.not_moved.first.append(finding)
        is_value = finding.kind not in (ReasonKind.UNDECIDED, ReasonKind.RECORDS, ReasonKind.FILES)
        resource, field = (finding.resource, _POSITIONS.sub("[]", finding.field)) if is_value else ("", "")
        key = finding.code, resource, field
        if key not in self.groups and len(self.groups) >= MOST_GROUPS:
            return None
        group = self.groups.setdefault(key, IssueGroup(finding.resource, field))
        group.add(finding)
        return group

    def of_kind(self, *kinds: ReasonKind) -> list[IssueGroup]:
        """The groups of some kinds, the largest first."""
        groups = [group for group in self.groups.values() if group.examples[0].kind in kinds]
        return sorted(groups, key=lambda group: -group.count)


def summarise(plan: Plan) -> PlanSummary:
    """Write the tables of issues of a plan and count what it does not move in its facts; returns a summary of its rows."""
    summary = PlanSummary()
    with plan.reading() as database:
        summary.patched = list(_patched(database))
        ((summary.replaced,),) = database.execute(_REPLACED).fetchall()
    plan.facts.not_moved = summary.not_moved
    summary.not_moved.lacking.records = plan.facts.unfit
    summary.not_moved.lacking.unanswered = plan.facts.unanswered_records
    with open_issue_tables(plan.folder) as tables:
        _write(plan, summary, tables)
    counts = summary.not_moved.counts
    for (code, _resource, _field), group in summary.groups.items():
        prefix = "" if group.resource == PUBLICATIONS or not group.field else f"{group.resource}."
        counts.setdefault(code, {})[prefix + group.field] = group.count
    return summary


def _write(plan: Plan, summary: PlanSummary, tables: IssueTables) -> None:
    """Write the lines of all rows in the order of the plan, then those that stand for many records, first what asks for work."""
    facts = plan.facts
    shown = lru_cache(CACHED_TEXTS)(field_name)
    for finding in findings_of(plan):
        group = summary.add(finding)
        if group is None or work_of(finding.code) == Work.EACH:
            tables.write(_line(facts, finding, shown(finding.field)))
    common = [group for group in summary.groups.values() if work_of(group.examples[0].code) != Work.EACH]
    for group in sorted(common, key=lambda group: (work_of(group.examples[0].code), -group.count)):
        tables.write(_common_line(facts, group))
    if facts.unfit:
        reason = REASONS[NO_ID]
        record = counted(facts.unfit, "record")
        tables.write(IssueLine(record, "", "id", "", reason.problem, reason.suggestion, NO_ID, ""))
    summary.lines = tables.lines


def _line(facts: PlanFacts, finding: Finding, field: str) -> IssueLine:
    """The line of one finding. A publication is named by its number alone, because most records are publications."""
    number = finding.source_id or 0
    record = number if finding.resource == PUBLICATIONS else name_of(finding)
    suggestion = finding.suggestion
    if finding.kind == ReasonKind.UNDECIDED:
        suggestion = f"{suggestion} Write the decision into {CONFLICTS}."
    link = record_link(facts, finding)
    return IssueLine(record, finding.title, field, finding.wanted, finding.problem, suggestion, finding.code, link)


def _common_line(facts: PlanFacts, group: IssueGroup) -> IssueLine:
    """The line of many records."""
    first = group.examples[0]
    if group.count == 1:
        return _line(facts, first, field_name(first.field))
    all_of_them = "all " if group.count == facts.source.records.get(group.resource) else ""
    value = first.wanted if group.same_value else f"for example {first.wanted}"
    record = f"{all_of_them}{group.count:,} {plural(group.resource)}"
    line = _line(facts, first, field_name(group.field))
    return line._replace(record=record, title="", value=value, link="")


def name_of(finding: Finding) -> str:
    """A record on the page, such as `publication 12`."""
    return f"{noun(finding.resource)} {finding.source_id}"


def record_link(facts: PlanFacts, finding: Finding) -> str:
    """The address of a record's page in the source: only publications have one."""
    return link_to(facts.source.record_url, finding.source_id) if finding.resource == PUBLICATIONS else ""


def _patched(database: duckdb.DuckDBPyConnection) -> Iterator[PatchedField]:
    """Yield the changed fields; those in which most values are replaced come first."""
    for resource, name, records, replaced, rows in database.execute(_PATCHED).fetchall():
        texts = (
            (number, display_both(name, value_of(new), value_of(old)))
            for number, new, old in (rows if resource not in PERSONAL else ())
        )
        examples = [
            Finding(code="", resource=resource, source_id=record_id(number), wanted=after, found=before, problem="")
            for number, (after, before) in texts
        ]
        yield PatchedField(resource, name, records, replaced, examples)

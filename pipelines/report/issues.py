"""A work list for librarians, one line for each finding: record, title, field, value, problem, suggestion, code, link.

Every text from a record is one short line without secrets (I10, I13). `tables` writes the lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import msgspec

from pipelines.records.advice import (
    Advice,
    advice_of,
    advice_on_repair,
    code_of,
    field_name,
    list_identifiers,
    words_and,
)
from pipelines.records.identifiers.rules import SPELLING
from pipelines.records.identifiers.verdicts import INVALID, REPAIRED, UNRECOGNISED, rule_names
from pipelines.report.rendering import link_to
from pipelines.report.tables import CACHED_TEXTS, IssueLine
from pipelines.service.redaction import MASK, outside_text
from pipelines.store.findings import IdentifierFinding

LONGEST = 300
"""Most characters of a value from a record: enough to find it in the record."""

EXAMPLES = 5
"""Examples of each kind of issue on the page."""

MAX_KINDS = 300
"""Kinds of issues that are counted separately; a library may have any number of identifier types."""

_E_MAIL = re.compile(r"[^\s@/<>()\[\]\"',;:]{1,64}@[^\s@<>()\[\]\"',;:]{1,255}")


class Issue(NamedTuple):
    """One line, and the kind of issue under which it counts."""

    record: int | None
    title: str
    field: str
    value: str
    problem: str
    suggestion: str
    issue_kind: tuple[str, str]
    """A rule or a finding, and the type of the identifier."""
    part: str = ""
    """The part of the value with the problem; empty if the problem concerns all of it."""

    @property
    def code(self) -> str:
        """The code of the problem, by which people filter."""
        return code_of(self.issue_kind[0])

    def line(self, record_url: str | None) -> IssueLine:
        """The line of the table."""
        problem = f"“{self.part}”: {self.problem}" if self.part else self.problem
        number = "" if self.record is None else self.record
        field, link = field_name(self.field), link_to(record_url, self.record)
        return IssueLine(number, self.title, field, self.value, problem, self.suggestion, self.code, link)


class IssueKind(msgspec.Struct):
    """Issues of one kind: their number, and the first ones."""

    rule: str
    type: str
    issues: int = 0
    examples: list[tuple[int | None, str]] = []


def count_issues(issues: Iterable[Issue], kinds: dict[tuple[str, str], IssueKind]) -> Iterator[Issue]:
    """Yields the same issues, of which `kinds` then has the numbers and the first ones."""
    for issue in issues:
        rule, of_type = issue.issue_kind
        if issue.issue_kind not in kinds and len(kinds) >= MAX_KINDS:
            of_type = ""
        kind = kinds.setdefault((rule, of_type), IssueKind(rule, of_type))
        kind.issues += 1
        if len(kind.examples) < EXAMPLES:
            kind.examples.append((issue.record, issue.part or issue.value))
        yield issue


def issues_of(findings: Iterable[IdentifierFinding]) -> Iterator[Issue]:
    """The lines of some findings. The values that one field was repaired to are one line; what was only spelt otherwise is none."""
    for kind, group in groupby(findings, key=itemgetter(0)):
        if kind == REPAIRED:
            yield from _repaired_issues(group)
        elif kind in (INVALID, UNRECOGNISED):
            yield from map(_wrong_value, group)
        else:
            for _kind, record, field, of_type, value, _becomes, detail, records, many, title in group:
                shown_type = _safe(of_type)
                problem, suggestion = _advice_on_likeness(kind, shown_type, records, many)
                if kind == "file":
                    problem = _safe(detail) or problem
                issue_kind = (kind, shown_type)
                yield Issue(record, _safe(title or ""), _safe(field), _safe(value), problem, suggestion, issue_kind)


def _repaired_issues(findings: Iterable[IdentifierFinding]) -> Iterator[Issue]:
    """One line for each field with repaired values."""
    for (record, field, value), same in groupby(
        findings, key=lambda finding: (finding.record, _safe(finding.field), _safe(finding.value))
    ):
        values = list(same)
        rules = list(dict.fromkeys(rule for finding in values for rule in rule_names(finding.detail)))
        if telling := [rule for rule in rules if rule not in SPELLING]:
            becomes = list_identifiers([(_safe(finding.type), _safe(finding.becomes)) for finding in values])
            title = _safe(values[0].title or "")
            yield Issue(record, title, field, value, *advice_on_repair(telling, becomes), (REPAIRED, ""))


def _wrong_value(finding: IdentifierFinding) -> Issue:
    """The line of a value that is not an identifier."""
    of_type = "" if finding.detail in ("unknown_type", "type_missing") else _safe(finding.type)
    value, part = _safe(finding.value), _safe(finding.becomes)
    return Issue(
        finding.record,
        _safe(finding.title or ""),
        _safe(finding.field),
        value,
        *advice_of(finding.detail, of_type),
        issue_kind=(finding.detail, of_type),
        part="" if part == value else part,
    )


@lru_cache(CACHED_TEXTS)
def _advice_on_likeness(kind: str, of_type: str, records: str, many: int) -> Advice:
    """The advice on records that look alike. `records`: the first of them."""
    ids = "the records " + words_and(records.split(), many)
    return advice_of(kind, of_type, many=f"{many:,}", ids=ids)


def safe_text(text: object, most: int = LONGEST) -> str:
    """Text from a record, safe for display: one short line, no secret (I10), no e-mail address."""
    line = outside_text(text, most)
    return _E_MAIL.sub(MASK, line) if "@" in line else line


_safe = lru_cache(CACHED_TEXTS)(safe_text)
"""The same, cached: like records follow each other, and fields, types and rules are few."""

"""The page of a report, made of a context in which every text from a record is safe for display (I10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from pipelines.humanize import counted
from pipelines.inventory import plural
from pipelines.records.advice import (
    advice_of,
    field_name,
    incomplete_dates,
    label_of,
    name_of,
    words_and,
)
from pipelines.records.identifiers.rules import RULES, Sort
from pipelines.records.tables.publications import PUBLICATIONS
from pipelines.report.history import Night
from pipelines.report.issues import IssueKind, safe_text
from pipelines.report.rendering import NOT_SHOWN, day, html, link_to, longest_bar, names_a_person
from pipelines.report.timeline import changes_context
from pipelines.store.findings import DuplicateGroup, Figures, Verdicts
from pipelines.store.snapshots.facts import FileTotals
from pipelines.store.snapshots.manifest import Manifest
from pipelines.version import VERSION

BARS = 10
"""Kinds of issues in the chart at most."""

EXAMPLE = 120
"""Most characters of an example of residue."""


class Paths(msgspec.Struct):
    """Where the files of a report are."""

    html: str
    issues: str
    workbook: str


class Report(msgspec.Struct, kw_only=True):
    """The content of a report, and its files."""

    paths: Paths
    manifest: Manifest
    record_url: str | None
    """The address of a record's page, with `{id}`, as configured."""
    figures: Figures
    issue_kinds: list[IssueKind]
    """The sorts of open issues, the commonest first."""
    repaired: int
    """Lines about repairs that Bookferry made itself."""
    shared: list[DuplicateGroup]
    same_titles: list[DuplicateGroup]
    residue_examples: dict[tuple[str, str], list[tuple[int, str]]]
    made_at: datetime
    nights: list[Night] = []
    """The nights of the last months, this one last; none for a partial snapshot."""

    @property
    def snapshot(self) -> str:
        """`tenant/snapshot`."""
        return f"{self.manifest.tenant}/{self.manifest.snapshot}"

    @property
    def complete(self) -> bool:
        """Whether the snapshot is."""
        return self.manifest.complete

    @property
    def to_do(self) -> int:
        """Issues that a person has to work off."""
        return sum(kind.issues for kind in self.issue_kinds)

    @property
    def counts(self) -> dict[str, int]:
        """Rule or kind of finding → open issues."""
        counts = Counter[str]()
        for kind in self.issue_kinds:
            counts[kind.rule] += kind.issues
        return dict(counts.most_common())


def html_of(report: Report) -> str:
    """The page."""
    return html("pipelines.report", "report.html", _context(report))


def _context(report: Report) -> dict[str, Any]:
    """The values that the template puts into their places."""
    figures, manifest = report.figures, report.manifest
    started = datetime.fromisoformat(manifest.started_at)
    problems = [safe_text(problem, 1000) for problem in manifest.problems] or ["Nothing proves that it is complete."]
    holdings = [
        {
            "kind": safe_text(kind, 40),
            "publications": counts.publications,
            "without": counts.without_identifier,
            "parts": [
                ("valid", counts.publications - counts.without_identifier),
                ("unrecognised", counts.without_identifier),
            ],
        }
        for kind, counts in figures.holdings.items()
    ]
    verdicts = [_verdict_row(field, counts) for field, counts in figures.verdicts.items()]
    issue_kinds = [_issue_kind(kind, report.record_url) for kind in report.issue_kinds]
    same_identifier, same_title = figures.same_identifier.groups, figures.same_title_and_year.groups
    return {
        "tenant": manifest.tenant,
        "name": report.snapshot,
        "day": day(started),
        "moment": f"{day(started)}, {started:%H:%M} UTC",
        "made": f"{day(report.made_at)}, {report.made_at:%H:%M} UTC",
        "tool": f"Bookferry {VERSION}",
        "problems": [] if manifest.complete else problems,
        "notes": [safe_text(note, 1000) for note in manifest.notes],
        "tiles": _tiles(report),
        "changes": changes_context(report.nights),
        "to_do": counted(report.to_do, "issue"),
        "repaired_lines": _repaired_lines(report.repaired),
        "issue_kinds": issue_kinds,
        "bars": issue_kinds[:BARS],
        "most_issues": longest_bar(issue_kinds),
        "verdicts": verdicts,
        "most_values": longest_bar(verdicts),
        "repaired": _repaired(figures),
        "without": _without(figures),
        "holdings": holdings,
        "most_publications": longest_bar(holdings),
        "duplicates": _duplicates(figures, report.counts.get("shared", 0)),
        "groups": [
            _table("The same identifier", ("type", "identifier"), report.shared, same_identifier, report.record_url),
            _table("The same title and year", ("year", "title"), report.same_titles, same_title, report.record_url),
        ],
        "files": _files(manifest.files),
        "residue": [
            _residue(resource, key, count, report.residue_examples.get((resource, key), []), report.record_url)
            for resource, keys in figures.residue.items()
            for key, count in keys.items()
        ],
    }


def _share(part: int, whole: int) -> str:
    """A share in percent, rounded down, so that all but one is less than 100 %."""
    return f"{1000 * part // whole / 10:.1f} %" if whole else ""


def _tiles(report: Report) -> list[tuple[str, str]]:
    """Numbers of the library, and what they are."""
    figures = report.figures
    good = sum(counts.valid + counts.repaired for counts in figures.verdicts.values())
    tiles = [
        (f"{figures.publications:,}", "publications"),
        (f"{report.to_do:,}", "issues to look at"),
        (f"{figures.same_identifier.groups + figures.same_title_and_year.groups:,}", "groups of similar records"),
    ]
    if figures.files.failed or figures.files.kept:
        tiles.append((f"{figures.files.failed:,}", "files missing"))
    if figures.identifiers:
        tiles.insert(1, (_share(good, figures.identifiers), f"of {figures.identifiers:,} identifiers in order"))
    return tiles


def _issue_kind(kind: IssueKind, record_url: str | None) -> dict[str, Any]:
    """The variables of one kind of issue. Duplicates have no examples here, because they have a table of their own."""
    problem, suggestion = advice_of(kind.rule, kind.type)
    examples = [] if kind.rule in ("shared", "same_title") else kind.examples
    return {
        "label": label_of(kind.rule, kind.type),
        "count": kind.issues,
        "parts": [("plain", kind.issues)],
        "problem": problem,
        "suggestion": suggestion,
        "examples": [
            {"record": record, "link": link_to(record_url, record), "value": safe_text(value, EXAMPLE)}
            for record, value in examples
        ],
        "more": kind.issues - len(examples) if examples else 0,
    }


def _repaired_lines(lines: int) -> str:
    """What the tables of issues have besides those to look at, so that their lines can be counted."""
    return (
        f"The last {counted(lines, 'line')} there {'is' if lines == 1 else 'are'} about what Bookferry repaired itself. "
        if lines
        else ""
    )


def _verdict_row(field: str, counts: Verdicts) -> dict[str, Any]:
    parts = msgspec.structs.asdict(counts)
    share = _share(counts.valid + counts.repaired, counts.total)
    name = safe_text(field_name(field), 40)
    return {"field": name, "total": counts.total, "share": share, "parts": parts.items()}


def _repaired(figures: Figures) -> list[dict[str, Any]]:
    repairs = (Sort.SPELLING, Sort.REPAIR, Sort.DATE)
    rows = sorted(
        (
            (sum(fields.values()), RULES[rule], fields)
            for rule, fields in figures.rules.items()
            if rule in RULES and RULES[rule].sort in repairs
        ),
        key=lambda row: (row[1].sort is Sort.SPELLING, -row[0]),
    )
    return [
        {
            "problem": rule.sentence,
            "count": count,
            "fields": words_and([safe_text(field_name(field), 40) for field in fields], 0),
        }
        for count, rule, fields in rows
    ]


def _without(figures: Figures) -> str:
    text = (
        f"{figures.without_identifier:,} of {counted(figures.publications, 'publication')} have no valid or repaired "
        f"identifier. Only title, year and authors can identify them. {figures.without_date:,} have no date."
    )
    incomplete = incomplete_dates(figures.year_or_month, figures.unreadable_date)
    if not incomplete:
        return text
    return (
        f"{text} Of the dates, {incomplete}. A migration leaves these out; its plan asks whether the "
        "first day of a year or a month shall be sent."
    )


def _duplicates(figures: Figures, lines: int) -> str:
    """The groups in words. `lines`: of issues.xlsx about identifiers; a record may share more than one."""
    same, title = figures.same_identifier, figures.same_title_and_year
    if not same.groups + title.groups:
        return "No two records have the same identifier, or the same title and year."
    more = f" in {lines:,} lines of issues.xlsx, as some share several" if lines > same.records else ""
    return (
        f"{counted(same.groups, 'identifier')} on more than one record ({same.records:,} records{more}), and {title.groups:,} titles with "
        f"their year on more than one ({title.records:,} records). Not all are mistakes: parts, volumes and reprints also look alike."
    )


def _table(
    title: str, columns: tuple[str, str], groups: Sequence[DuplicateGroup], count: int, record_url: str | None
) -> dict[str, Any]:
    rows = [
        {
            "key": name_of(group.type) if columns[0] == "type" else group.type,
            "value": safe_text(group.value, EXAMPLE),
            "title": safe_text(group.title or "", EXAMPLE),
            "records": group.records,
            "which": [(record, link_to(record_url, record)) for record in group.first_records],
        }
        for group in groups
    ]
    return {"title": title, "key": columns[0], "value": columns[1], "rows": rows, "of": count}


def _files(files: FileTotals) -> str:
    if not files.count:
        return "The records name no files."
    if files.not_fetched == files.count:
        return f"The records name {counted(files.count, 'file')}; no backup asked for their content."
    text = f"The records name {counted(files.count, 'file')}; the content of {files.kept:,} is stored."
    if files.failed:
        text += f" {files.failed:,} could not be fetched; each is a line in issues.xlsx."
    return f"{text} {files.not_fetched:,} were not fetched." if files.not_fetched else text


def _residue(
    resource: str, key: str, count: int, examples: Sequence[tuple[int, str]], record_url: str | None
) -> dict[str, Any]:
    record, value = examples[0] if examples else (None, "")
    if value and names_a_person(key):
        record, value = None, NOT_SHOWN
    return {
        "resource": plural(resource),
        "key": safe_text(key, EXAMPLE),
        "count": count,
        "record": record,
        "link": link_to(record_url, record) if resource == PUBLICATIONS.name else "",
        "example": safe_text(value, EXAMPLE),
    }

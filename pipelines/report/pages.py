"""The page and the Markdown of a report. Both are made of one context, in which every text from a record is safe for display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from pipelines.humanize import counted
from pipelines.records.advice import (
    advice_of,
    field_name,
    incomplete_dates,
    label_of,
    name_of,
    words_and,
)
from pipelines.records.identifiers.rules import RULES, Sort
from pipelines.records.identifiers.verdicts import VERDICTS
from pipelines.records.tables.publications import PUBLICATIONS
from pipelines.report.history import Night
from pipelines.report.issues import IssueKind, safe_text
from pipelines.report.plots import Bar, Plot
from pipelines.report.record_links import RecordLinks
from pipelines.report.rendering import NOT_SHOWN, day, html, names_a_person
from pipelines.report.timeline import changes_context, timeline_for_page
from pipelines.store.findings import DuplicateGroup, Figures, Verdicts
from pipelines.store.snapshots.captures import FileTotals
from pipelines.store.snapshots.manifest import Manifest
from pipelines.version import VERSION

BARS = 10
"""Most bars of a plot."""

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
    links: RecordLinks
    figures: Figures
    issue_kinds: list[IssueKind]
    """The sorts of open issues, the commonest first."""
    to_do: int
    """Issues that a person has to work off."""
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
    def counts(self) -> dict[str, int]:
        """Rule or kind of finding → open issues."""
        found = Counter[str]()
        for one in self.issue_kinds:
            found[one.rule] += one.issues
        return dict(found.most_common())


def html_of(report: Report) -> str:
    """The page."""
    pictures: dict[str, Plot | str] = {**plots_of(report), "timeline": timeline_for_page(report.nights)}
    return html("pipelines.report", "report.html", _context(report), pictures)


def plots_of(report: Report) -> dict[str, Plot]:
    """The plots: verdicts by field, open issues by sort, publications by kind."""
    figures = report.figures
    verdicts = [
        Bar(safe_text(field_name(field), 24), [getattr(one, verdict) for verdict in VERDICTS], f"{one.total:,}")
        for field, one in list(figures.verdicts.items())[:BARS]
    ]
    issue_kinds = [
        Bar(label_of(one.rule, one.type), [one.issues], f"{one.issues:,}") for one in report.issue_kinds[:BARS]
    ]
    holdings = [
        Bar(
            safe_text(kind, 24),
            [one.publications - one.without_identifier, one.without_identifier],
            f"{one.publications:,}",
        )
        for kind, one in list(figures.holdings.items())[:BARS]
    ]
    return {
        "verdicts": Plot(
            "Values of identifiers by field", VERDICTS, verdicts, ("valid", "repaired", "invalid", "unrecognised")
        ),
        "issue_kinds": Plot("What to look at", ("plain",), issue_kinds),
        "holdings": Plot(
            "Publications by kind", ("valid", "unrecognised"), holdings, ("with an identifier", "without an identifier")
        ),
    }


def _context(report: Report) -> dict[str, Any]:
    """The values that the templates put into their places."""
    figures, manifest = report.figures, report.manifest
    started = datetime.fromisoformat(manifest.started_at)
    return {
        "tenant": manifest.tenant,
        "name": report.snapshot,
        "day": day(started),
        "moment": f"{day(started)}, {started:%H:%M} UTC",
        "made": f"{day(report.made_at)}, {report.made_at:%H:%M} UTC",
        "tool": f"Bookferry {VERSION}",
        "problems": []
        if manifest.complete
        else [safe_text(one, 1000) for one in manifest.problems] or ["Nothing proves that it is complete."],
        "notes": [safe_text(one, 1000) for one in manifest.notes],
        "tiles": _tiles(report),
        "changes": changes_context(report.nights, complete=manifest.complete),
        "to_do": counted(report.to_do, "issue"),
        "repaired_lines": _repaired_lines(report.repaired),
        "guessed": report.links.learned_from,
        "issue_kinds": [_issue_kind(one, report.links) for one in report.issue_kinds],
        "judged": figures.judged,
        "verdicts": [_verdict_row(field, one) for field, one in figures.verdicts.items()],
        "repaired": _repaired(figures),
        "without": _without(figures),
        "holdings": [
            {
                "kind": safe_text(kind, 40),
                "publications": f"{one.publications:,}",
                "without": f"{one.without_identifier:,}",
            }
            for kind, one in figures.holdings.items()
        ],
        "duplicates": _duplicates(figures, report.counts.get("shared", 0)),
        "groups": [
            table
            for table in (
                _table(
                    "The same identifier",
                    ("type", "identifier"),
                    report.shared,
                    figures.same_identifier.groups,
                    report.links,
                ),
                _table(
                    "The same title and year",
                    ("year", "title"),
                    report.same_titles,
                    figures.same_title_and_year.groups,
                    report.links,
                ),
            )
            if table["rows"]
        ],
        "files": _files(manifest.files),
        "residue": [
            _residue(resource, key, count, report.residue_examples.get((resource, key), []), report.links)
            for resource, keys in figures.residue.items()
            for key, count in keys.items()
        ],
    }


def _share(part: int, whole: int) -> str:
    """A share in percent, rounded down, so that all but one is less than 100 %."""
    return f"{1000 * part // whole / 10:.1f} %" if whole else ""


def _tiles(report: Report) -> list[dict[str, str]]:
    figures = report.figures
    good = sum(one.valid + one.repaired for one in figures.verdicts.values())
    tiles = [
        (f"{figures.publications:,}", "publications"),
        (f"{report.to_do:,}", "issues to look at"),
        (
            f"{figures.same_identifier.groups + figures.same_title_and_year.groups:,}",
            "groups of similar records",
        ),
    ]
    if figures.files.failed or figures.files.kept:
        tiles.append((f"{figures.files.failed:,}", "files missing"))
    if figures.judged and figures.identifiers:
        tiles.insert(1, (_share(good, figures.identifiers), f"of {figures.identifiers:,} identifiers in order"))
    return [{"number": number, "what": what} for number, what in tiles]


def _issue_kind(one: IssueKind, links: RecordLinks) -> dict[str, Any]:
    """The variables of one kind of issue. Duplicates have no examples here, because they have a table of their own."""
    problem, suggestion = advice_of(one.rule, one.type)
    examples = [] if one.rule in ("shared", "same_title") else one.examples
    left = one.issues - len(examples) if examples else 0
    return {
        "label": label_of(one.rule, one.type),
        "count": f"{one.issues:,}",
        "problem": problem,
        "suggestion": suggestion,
        "examples": [
            {"record": record, "link": links.to(record), "value": safe_text(value, EXAMPLE)}
            for record, value in examples
        ],
        "more": f"{left:,}" if left else "",
    }


def _repaired_lines(lines: int) -> str:
    """What the tables of issues have besides those to look at, so that their lines can be counted."""
    return (
        f"The last {counted(lines, 'line')} there {'is' if lines == 1 else 'are'} about what Bookferry repaired itself. "
        if lines
        else ""
    )


def _verdict_row(field: str, one: Verdicts) -> dict[str, str]:
    counts = {name: f"{count:,}" for name, count in msgspec.structs.asdict(one).items()}
    share = _share(one.valid + one.repaired, one.total)
    return {"field": safe_text(field_name(field), 40), "total": f"{one.total:,}", "share": share, **counts}


def _repaired(figures: Figures) -> list[dict[str, str]]:
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
            "count": f"{count:,}",
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


def _linked(records: Sequence[int], of: int, links: RecordLinks) -> list[dict[str, str]]:
    """The first `of` some records, each with its link and the text after it: `1, 2 and 7 more`."""
    more = f" and {of - len(records):,} more" if of > len(records) else ""
    last = len(records) - 1
    after = [
        more if place == last else " and " if place == last - 1 and not more else ", " for place in range(last + 1)
    ]
    return [
        {"number": str(record), "link": links.to(record), "after": text}
        for record, text in zip(records, after, strict=True)
    ]


def _table(
    title: str, columns: tuple[str, str], groups: Sequence[DuplicateGroup], count: int, links: RecordLinks
) -> dict[str, Any]:
    rows = [
        {
            "key": name_of(one.type) if columns[0] == "type" else one.type,
            "value": safe_text(one.value, EXAMPLE),
            "title": safe_text(one.title or "", EXAMPLE),
            "records": f"{one.records:,}",
            "which": _linked(one.first_records, one.records, links),
        }
        for one in groups
    ]
    more = f"{count:,}" if count > len(rows) else ""
    return {"title": title, "key": columns[0], "value": columns[1], "rows": rows, "more": more}


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
    resource: str, key: str, count: int, examples: Sequence[tuple[int, str]], links: RecordLinks
) -> dict[str, Any]:
    record, value = examples[0] if examples else (None, "")
    if value and names_a_person(key):
        record, value = None, NOT_SHOWN
    return {
        "resource": resource.replace("_", " "),
        "key": safe_text(key, EXAMPLE),
        "count": f"{count:,}",
        "record": record,
        "link": links.to(record) if resource == PUBLICATIONS.name else "",
        "example": safe_text(value, EXAMPLE),
    }

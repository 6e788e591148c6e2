"""The page and the Markdown of a report. Both are made of one context, in which every text from a record is already fit to be shown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from pipelines.humanize import counted
from pipelines.records.advice import MENDED, general_advice, label_of, name_of
from pipelines.records.identifiers.rules import SPELLING
from pipelines.records.identifiers.verdicts import VERDICTS
from pipelines.report.issues import Sort, shown, words_and
from pipelines.report.plots import Bar, Plot
from pipelines.report.rendering import NOT_SHOWN, day, html, markdown, names_a_person
from pipelines.store.findings import DuplicateGroup, Figures, Verdicts
from pipelines.store.snapshots.captures import FileTotals
from pipelines.store.snapshots.manifest import Manifest
from pipelines.version import VERSION

BARS = 10
"""Bars of a plot at most."""

EXAMPLE = 120
"""Characters of an example of residue."""


class ReportContext(msgspec.Struct, kw_only=True):
    """All that a report tells."""

    manifest: Manifest
    figures: Figures
    sorts: list[Sort]
    to_do: int
    mended: int
    shared: list[DuplicateGroup]
    same_titles: list[DuplicateGroup]
    residue_examples: dict[tuple[str, str], list[tuple[int, str]]]
    made_at: datetime


def html_of(told: ReportContext) -> str:
    """The page."""
    return html("pipelines.report", "report.html", _context(told), plots_of(told))


def markdown_of(told: ReportContext) -> str:
    """The same as Markdown, without plots."""
    return markdown("pipelines.report", "report.md", _context(told))


def plots_of(told: ReportContext) -> dict[str, Plot]:
    """What is drawn: verdicts by field, what to look at by sort, publications by kind."""
    figures = told.figures
    verdicts = [
        Bar(shown(field, 24), [getattr(one, verdict) for verdict in VERDICTS], f"{one.total:,}")
        for field, one in list(figures.verdicts.items())[:BARS]
    ]
    sorts = [Bar(label_of(one.rule, one.type), [one.issues], f"{one.issues:,}") for one in told.sorts[:BARS]]
    holdings = [
        Bar(
            shown(kind, 24),
            [one.publications - one.without_identifier, one.without_identifier],
            f"{one.publications:,}",
        )
        for kind, one in list(figures.holdings.items())[:BARS]
    ]
    return {
        "verdicts": Plot(
            "Values of identifiers by field", VERDICTS, verdicts, ("valid", "mended", "invalid", "not recognised")
        ),
        "sorts": Plot("What to look at", ("plain",), sorts),
        "holdings": Plot(
            "Publications by kind", ("valid", "unrecognised"), holdings, ("with an identifier", "without an identifier")
        ),
    }


def _context(told: ReportContext) -> dict[str, Any]:
    """What the templates put into their places."""
    figures, manifest = told.figures, told.manifest
    started = datetime.fromisoformat(manifest.started_at)
    return {
        "tenant": manifest.tenant,
        "name": f"{manifest.tenant}/{manifest.snapshot}",
        "day": day(started),
        "moment": f"{day(started)}, {started:%H:%M} UTC",
        "made": f"{day(told.made_at)}, {told.made_at:%H:%M} UTC",
        "tool": f"Bookferry {VERSION}",
        "problems": []
        if manifest.complete
        else [shown(one, 1000) for one in manifest.problems] or ["It is not proved complete."],
        "notes": [shown(one, 1000) for one in manifest.notes],
        "tiles": _tiles(told),
        "to_do": counted(told.to_do, "issue"),
        "sorts": [_sort(one) for one in told.sorts],
        "judged": figures.judged,
        "verdicts": [_verdicts(field, one) for field, one in figures.verdicts.items()],
        "mended": _mended(figures),
        "without": _without(figures),
        "holdings": [
            {"kind": shown(kind, 40), "publications": f"{one.publications:,}", "without": f"{one.without_identifier:,}"}
            for kind, one in figures.holdings.items()
        ],
        "duplicates": _duplicates(figures),
        "groups": [
            table
            for table in (
                _table("The same identifier", ("type", "identifier"), told.shared, figures.same_identifier.groups),
                _table(
                    "The same title and year", ("year", "title"), told.same_titles, figures.same_title_and_year.groups
                ),
            )
            if table["rows"]
        ],
        "files": _files(manifest.files),
        "residue": [
            _residue(resource, key, count, told.residue_examples.get((resource, key), []))
            for resource, keys in figures.residue.items()
            for key, count in keys.items()
        ],
    }


def _share(part: int, whole: int) -> str:
    """Cut, not rounded: all but one is not 100 %."""
    return f"{1000 * part // whole / 10:.1f} %" if whole else ""


def _tiles(told: ReportContext) -> list[dict[str, str]]:
    figures = told.figures
    good = sum(one.valid + one.repaired for one in figures.verdicts.values())
    tiles = [
        (f"{figures.publications:,}", "publications"),
        (f"{told.to_do:,}", "issues to look at"),
        (
            f"{figures.same_identifier.groups + figures.same_title_and_year.groups:,}",
            "groups of records that look alike",
        ),
    ]
    if figures.files.failed or figures.files.kept:
        tiles.append((f"{figures.files.failed:,}", "files missing"))
    if figures.judged and figures.identifiers:
        tiles.insert(1, (_share(good, figures.identifiers), f"of {figures.identifiers:,} identifiers in order"))
    return [{"number": number, "what": what} for number, what in tiles]


def _sort(one: Sort) -> dict[str, Any]:
    """Issues that are alike. Records that look alike have a table of their own."""
    problem, suggestion = general_advice(one.rule, one.type)
    examples = [] if one.rule in ("shared", "same_title") else one.examples
    left = one.issues - len(examples) if examples else 0
    return {
        "label": label_of(one.rule, one.type),
        "count": f"{one.issues:,}",
        "problem": problem,
        "suggestion": suggestion,
        "examples": [{"record": record, "value": shown(value, EXAMPLE)} for record, value in examples],
        "more": f"{left:,}" if left else "",
    }


def _verdicts(field: str, one: Verdicts) -> dict[str, str]:
    counts = {name: f"{count:,}" for name, count in msgspec.structs.asdict(one).items()}
    share = _share(one.valid + one.repaired, one.total)
    return {"field": shown(field, 40), "total": f"{one.total:,}", "share": share, **counts}


def _mended(figures: Figures) -> list[dict[str, str]]:
    rows = sorted(
        ((sum(fields.values()), rule, fields) for rule, fields in figures.rules.items() if rule in MENDED),
        key=lambda row: (row[1] in SPELLING, -row[0]),
    )
    return [
        {"problem": MENDED[rule], "count": f"{count:,}", "fields": words_and([shown(field, 40) for field in fields], 0)}
        for count, rule, fields in rows
    ]


def _without(figures: Figures) -> str:
    told = (
        f"{figures.without_identifier:,} of {counted(figures.publications, 'publication')} have no identifier that is valid or could be "
        f"mended. They can only be found again by title, year and authors. {figures.without_date:,} have no date"
    )
    return (
        f"{told}; of {figures.year_or_month:,} only the year or the month is known."
        if figures.year_or_month
        else f"{told}."
    )


def _duplicates(figures: Figures) -> str:
    same, title = figures.same_identifier, figures.same_title_and_year
    if not same.groups + title.groups:
        return "No two records have the same identifier, or the same title and year."
    return (
        f"{counted(same.groups, 'identifier')} on more than one record ({same.records:,} records), and {title.groups:,} titles with their "
        f"year on more than one ({title.records:,} records). Not all of them are mistakes: parts, volumes and reprints look alike, too."
    )


def _table(title: str, columns: tuple[str, str], groups: Sequence[DuplicateGroup], count: int) -> dict[str, Any]:
    rows = [
        {
            "key": name_of(one.type) if columns[0] == "type" else one.type,
            "value": shown(one.value, EXAMPLE),
            "title": shown(one.title or "", EXAMPLE),
            "records": f"{one.records:,}",
            "which": words_and([str(number) for number in one.first_records], one.records),
        }
        for one in groups
    ]
    more = f"{count:,}" if count > len(rows) else ""
    return {"title": title, "key": columns[0], "value": columns[1], "rows": rows, "more": more}


def _files(files: FileTotals) -> str:
    if not files.count:
        return "The records name no files."
    if files.not_fetched == files.count:
        return f"The records name {counted(files.count, 'file')}; nobody asked for their content."
    told = f"The records name {counted(files.count, 'file')}; the content of {files.kept:,} is kept."
    if files.failed:
        told += f" {files.failed:,} could not be had; each is a line in issues.tsv."
    return f"{told} {files.not_fetched:,} were not asked for." if files.not_fetched else told


def _residue(resource: str, key: str, count: int, examples: Sequence[tuple[int, str]]) -> dict[str, Any]:
    record, value = examples[0] if examples else (None, "")
    if value and names_a_person(key):
        record, value = None, NOT_SHOWN
    return {
        "resource": resource,
        "key": shown(key, EXAMPLE),
        "count": f"{count:,}",
        "record": record,
        "example": shown(value, EXAMPLE),
    }

"""The page of a plan, for the people who decide whether it is applied."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from itertools import chain
from typing import Any

import msgspec

from pipelines.humanize import counted, size
from pipelines.inventory import plural, records_in_words
from pipelines.migration.decide.page import PageRows, policy, script, style
from pipelines.migration.model.actions import Action
from pipelines.migration.model.findings import Finding
from pipelines.migration.model.losses import losses_of
from pipelines.migration.model.plan import HTML, End, FileCounts, Plan, PlanFacts
from pipelines.migration.model.reasons import FILE, REASONS, ReasonKind
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.model.wording import (
    ACTIONS,
    EVIDENCE,
    days_left,
    finishes_at,
    headline,
    margin,
)
from pipelines.migration.report.issues import (
    IssueGroup,
    PatchedField,
    PlanSummary,
    name_of,
    record_link,
    summarise,
)
from pipelines.records.advice import field_name
from pipelines.report.issues import safe_text
from pipelines.report.rendering import day, html, longest_bar
from pipelines.store.durable import replacing, storage_errors

PACKAGE = "pipelines.migration.report"

MOST_PATHS = 100
"""Rows of values that are not moved on the page at most; issues.tsv has all."""

_ROWS_HERE, _ABOUT_HERE = "<conflicts>", "<about>"
"""Where the conflicts and the facts about them go into the page."""

NARROW = 7
"""The page warns if fewer days than this remain before the end of version 2, because problems may take that long."""

COLOURS = ("plain", "unrecognised", "valid", "repaired", "invalid", "slate", "violet")
"""One for each action; dark and light by turns, so that neighbours in a bar differ in brightness whichever actions a plan has."""


def write_pages(plan: Plan, *, now: datetime) -> PlanSummary:
    """Write plan.html and issues.tsv of a plan whose conflicts.tsv is written. `now`: when an apply would begin."""
    summary = summarise(plan)
    losses = losses_of(plan)
    context = {
        **_context(plan.facts, summary, now),
        "losses": [{**msgspec.to_builtins(loss), "why": safe_text(loss.why, 1000)} for loss in losses],
    }
    with storage_errors(plan.folder):
        _write_html(plan, context)
    return summary


def _write_html(plan: Plan, context: Mapping[str, Any]) -> None:
    """Write plan.html: the template, and in it the conflicts, one after the other, with the script in which people decide them."""
    from markupsafe import Markup  # noqa: PLC0415  with Jinja

    rows = PageRows(plan)
    pieces = rows.json()
    first, code = next(pieces, b""), script()
    # the files of the project, and a place that no text of a record can name, because Jinja escapes it
    decide = {"script": code, "style": style(), "policy": policy(code), "rows": _ROWS_HERE, "about": _ABOUT_HERE}
    marked = {name: Markup(text) for name, text in decide.items()} if first else None  # noqa: S704
    page = html(PACKAGE, "plan.html", {**context, "decide": marked})
    before, _, rest = page.partition(_ROWS_HERE)
    between, _, after = rest.partition(_ABOUT_HERE)
    with replacing(plan.path(HTML)) as file:
        file.write(before.encode())
        file.writelines(chain([first], pieces))
        file.write(between.encode() + (rows.about() if first else b"") + after.encode())


def _colours(facts: PlanFacts) -> dict[Action, str]:
    """The actions of a plan, each with its colour."""
    return dict(zip((action for action in ACTIONS if facts.count(action)), COLOURS, strict=False))


def _context(facts: PlanFacts, summary: PlanSummary, now: datetime) -> dict[str, Any]:
    """The values for the templates."""
    unsent = summary.of_kind(ReasonKind.DATES, ReasonKind.IDENTIFIERS, ReasonKind.REFERENCES, ReasonKind.FIELDS)
    colours = _colours(facts)
    resources = [
        {"name": plural(name), "parts": [(colour, counts.get(action, 0)) for action, colour in colours.items()]}
        for name, counts in facts.counts.items()
    ]
    patched = [_patched(facts, field) for field in summary.patched]
    matches = [
        {"evidence": EVIDENCE[matched_by], "count": count, "parts": [("valid", count)]}
        for matched_by, count in sorted(facts.matched_by.items(), key=lambda entry: (-entry[1], entry[0]))
    ]
    return {
        "plan": facts.plan,
        "source": _end(facts.source),
        "target": _end(facts.target),
        "made": _moment(datetime.fromisoformat(facts.created_at)),
        "tool": facts.tool,
        "rows_sha256": facts.rows_sha256,
        "empty": facts.empty,
        "lines": headline(facts, now),
        "alarm": _alarm(facts, now),
        "notes": [safe_text(note, 1000) for note in facts.notes],
        "actions": [(colour, ACTIONS[action]) for action, colour in colours.items()],
        "resources": resources,
        "most_records": longest_bar(resources),
        "mails": _some(facts.mails, "person"),
        "partial_dates": _some(facts.not_moved.count("part_of_date"), "date"),
        "merges": _some(facts.count(Action.MERGE), "record"),
        "replaced": _some(summary.replaced, "record"),
        "overwrite": facts.overwrite,
        "patched": patched,
        "most_patched": longest_bar(patched),
        "conflicts": [_group(facts, group) for group in summary.of_kind(ReasonKind.UNDECIDED)],
        "waiting": _who("wait", facts.count(Action.CONFLICT), "record"),
        "decisions": _some(facts.decisions, "decision"),
        "unfit": [_group(facts, group) for group in summary.of_kind(ReasonKind.RECORDS)],
        "nameless": _some(facts.unfit, "record"),
        "unsent": [_group(facts, group) for group in unsent[:MOST_PATHS]],
        "more_unsent": f"{len(unsent) - MOST_PATHS:,}" if len(unsent) > MOST_PATHS else "",
        "matches": matches,
        "most_matches": longest_bar(matches),
        "files": _files(facts.files),
        "missing": [_group(facts, group) for group in summary.of_kind(ReasonKind.FILES)],
        "issues": _some(summary.lines, "line"),
    }


def _some(number: int, noun: str) -> str:
    """`3 records`, or nothing."""
    return counted(number, noun) if number else ""


def _who(does: str, number: int, noun: str) -> str:
    """`1 record waits`, `3 records wait`, or nothing."""
    return f"{counted(number, noun)} {does}{'s' if number == 1 else ''}" if number else ""


def _end(end: End) -> dict[str, str]:
    """One of the two libraries, for the table of what was compared."""
    records = ", ".join(records_in_words(name, count) for name, count in end.records.items()) or "nothing"
    address = safe_text(end.base_url, 200)
    return {"tenant": end.tenant, "api": end.api, "address": address, "snapshot": end.snapshot, "records": records}


def _moment(moment: datetime) -> str:
    return f"{day(moment)}, {moment:%H:%M} {moment.tzname() or ''}".rstrip()


def _alarm(facts: PlanFacts, now: datetime) -> str:
    """The warning that people must read first, if there is one."""
    days = days_left(facts, now)
    if facts.source.api != "v2" or facts.empty or days >= NARROW:
        return ""
    if days < 0:
        return (
            f"It would be done {margin(facts, now)}: too late to read the source after that. Ask for a higher rate, or move the most "
            "important records first."
        )
    return (
        f"It would be done {_moment(finishes_at(facts, now))}; {margin(facts, now)}. Little time is left for problems."
    )


def _patched(facts: PlanFacts, field: PatchedField) -> dict[str, Any]:
    return {
        "resource": plural(field.resource),
        "field": safe_text(_named(field.resource, field.field), 40),
        "records": field.records,
        "replaced": field.replaced,
        "parts": [("plain", field.records - field.replaced), ("unrecognised", field.replaced)],
        "examples": [_example(facts, finding) for finding in field.examples],
    }


def _example(facts: PlanFacts, finding: Finding) -> dict[str, str]:
    """A finding on the page, with its record."""
    return {
        "record": name_of(finding),
        "link": record_link(facts, finding),
        "title": finding.title,
        "value": finding.wanted,
        "before": finding.found,
    }


def _group(facts: PlanFacts, group: IssueGroup) -> dict[str, Any]:
    """Findings of one kind, with the texts of the first one."""
    first = group.examples[0]
    return {
        "field": safe_text(_named(group.resource, group.field), 60),
        "problem": REASONS[FILE].problem if first.code == FILE else first.problem,
        "suggestion": first.suggestion,
        "count": f"{group.count:,}",
        "examples": [_example(facts, finding) for finding in group.examples],
        "more": f"{group.count - len(group.examples):,}" if group.count > len(group.examples) else "",
    }


def _named(resource: str, field: str) -> str:
    """A field in the librarians' words; of another resource than publications with that, too."""
    return field_name(field) if resource == PUBLICATIONS else f"{plural(resource)}: {field_name(field)}"


def _files(files: FileCounts) -> str:
    if not files.upload + files.present + files.missing:
        return "The records have no files."
    text = f"{counted(files.upload, 'file')} will be uploaded, {size(files.bytes)} in all; {files.covers:,} of them are covers."
    return f"{text} {files.present:,} are there already." if files.present else text

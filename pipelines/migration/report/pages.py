"""The page and the Markdown of a plan, for whoever decides whether it is applied. Both are made of one context."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pipelines.humanize import counted, duration, size
from pipelines.inventory import LAST_DAY_OF_V2
from pipelines.migration.model.plan import (
    CONFLICT,
    CREATE,
    HTML,
    MARKDOWN,
    PATCH,
    QUARANTINED,
    SKIPPED,
    UNCHANGED,
    End,
    FileCounts,
    Plan,
    PlanFacts,
)
from pipelines.migration.model.wording import (
    ACTIONS,
    advice_on,
    advice_on_unsent,
    days_left,
    evidence,
    finishes_at,
    headline,
    margin,
    plural,
)
from pipelines.migration.report.issues import IssueExample, IssueGroup, PatchedField, PlanSummary, sorts, summarise
from pipelines.report.issues import shown
from pipelines.report.plots import Bar, Plot, as_image
from pipelines.report.rendering import day, html, markdown
from pipelines.store.durable import storage_errors, write_atomically

if TYPE_CHECKING:
    from pipelines.migration.verify.verdict import MigrationVerification

PACKAGE = "pipelines.migration.report"

BARS = 10
"""Bars of a plot at most."""

MOST_PATHS = 100
"""Paths of what is not moved that the page shows; issues.tsv has all."""

NARROW = 7
"""Days before the end of version 2 below which a page warns: what goes wrong has to be mended in them."""

COLOURS = {
    CREATE: "plain",
    PATCH: "unrecognised",
    UNCHANGED: "valid",
    SKIPPED: "repaired",
    CONFLICT: "invalid",
    QUARANTINED: "invalid",
}
"""Action → its colour; the two that need a person have one."""


def make_pages(plan: Plan, *, now: datetime) -> PlanSummary:
    """Write plan.md, plan.html and issues.tsv beside the rows of a plan. `now`: when it would begin."""
    looked = summarise(plan)
    context = _context(plan.facts, looked, now)
    with storage_errors(plan.folder):
        write_atomically(plan.path(MARKDOWN), markdown(PACKAGE, "plan.md", context).encode())
        plots = {**plots_of(plan.facts), "fields": _plot_of_fields(looked)}
        write_atomically(plan.path(HTML), html(PACKAGE, "plan.html", context, plots).encode())
    return looked


def plan_picture(plan: Plan, *, now: datetime) -> str:
    """What a plan comes to, as Markdown with its plots in it, for a page that shows nothing else of it."""
    lines = "\n".join(f"- {line}" for line in headline(plan.facts, now))
    plots = [f"![{plot.title}]({as_image(plot)})" for plot in plots_of(plan.facts).values() if plot.bars]
    return "\n\n".join([lines, *plots])


def proof_picture(found: MigrationVerification) -> str:
    """What a verification came to, as Markdown with its plot in it."""
    rows = (
        ("records compared", found.compared, 0),
        ("files checked", found.files_checked, 0),
        ("missing", 0, found.missing),
        ("duplicated", 0, found.duplicated),
        ("differing", 0, found.differing),
    )
    bars = [Bar(label, (good, bad), f"{good + bad:,}") for label, good, bad in rows]
    title = "The library holds what the plan says" if found.equal else "The library is not as the plan says"
    if not any(sum(bar.parts) for bar in bars):
        return f"{title}: there was nothing to compare."
    plot = Plot(title, ("valid", "invalid"), bars)
    return f"{title}, {found.verified_at}.\n\n![{plot.title}]({as_image(plot)})"


def plots_of(facts: PlanFacts) -> dict[str, Plot]:
    """What is drawn of the facts: what happens to the records, and what told that two are one."""
    actions = [one for one in COLOURS if facts.count(one)]
    records = [
        Bar(plural(resource), [counts.get(one, 0) for one in actions], f"{sum(counts.values()):,}")
        for resource, counts in facts.counts.items()
        if any(counts.values())
    ]
    matches = [Bar(evidence(one), [count], f"{count:,}") for one, count in _most(facts.matched_by)]
    colours, legend = zip(*((COLOURS[one], ACTIONS[one]) for one in actions), strict=True) if actions else ((), ())
    return {
        "records": Plot("What happens to the records", colours, records, legend),
        "matches": Plot("What told that two records are one", ("valid",), matches),
    }


def _plot_of_fields(looked: PlanSummary) -> Plot:
    bars = [
        Bar(shown(one.field, 24), [one.records - one.replaced, one.replaced], f"{one.records:,}")
        for one in looked.patched[:BARS]
    ]
    return Plot("Fields that are changed", ("plain", "invalid"), bars, ("added", "replaced"))


def _context(facts: PlanFacts, looked: PlanSummary, now: datetime) -> dict[str, Any]:
    """What the templates put into their places."""
    unsent = sorts(facts.unsent)
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
        "notes": [shown(one, 1000) for one in facts.notes],
        "tiles": _tiles(facts, looked, now),
        "actions": [{"name": ACTIONS[one], "colour": COLOURS[one]} for one in COLOURS if facts.count(one)],
        "resources": [
            {"name": plural(name), "counts": [f"{counts.get(one, 0):,}" for one in COLOURS if facts.count(one)]}
            for name, counts in facts.counts.items()
        ],
        "times": _times(facts, now),
        "mails": counted(facts.mails, "person") if facts.mails else "",
        "replaced": counted(looked.replaced, "record") if looked.replaced else "",
        "overwrite": facts.overwrite,
        "patched": [_patched(one) for one in looked.patched],
        "conflicts": _groups(looked.conflicts),
        "waiting": _who("wait", facts.count(CONFLICT), "record"),
        "decisions": counted(facts.decisions, "decision") if facts.decisions else "",
        "unfit": _groups(looked.unfit),
        "nameless": counted(facts.unfit, "record") if facts.unfit else "",
        "unsent": [_unsent(path, count, looked.unsent.get(path)) for path, count in list(unsent.items())[:MOST_PATHS]],
        "more_unsent": f"{len(unsent) - MOST_PATHS:,}" if len(unsent) > MOST_PATHS else "",
        "invalid": _who("break", facts.invalid_identifiers, "identifier"),
        "matches": [{"evidence": evidence(one), "count": f"{count:,}"} for one, count in _most(facts.matched_by)],
        "files": _files(facts.files),
        "missing": counted(facts.files.missing, "file") if facts.files.missing else "",
        "missing_examples": looked.missing.examples,
        "issues": counted(looked.lines, "line"),
    }


def _who(does: str, number: int, noun: str) -> str:
    """`1 record waits`, `3 records wait`, or nothing."""
    return f"{counted(number, noun)} {does}{'s' if number == 1 else ''}" if number else ""


def _end(end: End) -> dict[str, str]:
    """One of the two libraries."""
    records = ", ".join(f"{count:,} {plural(name)}" for name, count in end.records.items()) or "nothing"
    address = shown(end.base_url, 200)
    return {"tenant": end.tenant, "api": end.api, "address": address, "snapshot": end.snapshot, "records": records}


def _moment(moment: datetime) -> str:
    return f"{day(moment)}, {moment:%H:%M} {moment.tzname() or ''}".rstrip()


def _alarm(facts: PlanFacts, now: datetime) -> str:
    """What must be read before all else."""
    left = days_left(facts, now)
    if facts.source.api != "v2" or facts.empty or left >= NARROW:
        return ""
    if left < 0:
        return (
            f"It would be done {margin(facts, now)}: too late for what still has to be read there. Ask for a higher rate, or move the most "
            "important first."
        )
    return f"It would be done {_moment(finishes_at(facts, now))}; {margin(facts, now)}. There is little room for what goes wrong."


def _tiles(facts: PlanFacts, looked: PlanSummary, now: datetime) -> list[dict[str, str]]:
    tiles = [(f"{facts.count(CREATE):,}", "to be created"), (f"{facts.count(PATCH):,}", "to be changed")]
    if looked.replaced:
        tiles.append((f"{looked.replaced:,}", "in which something is replaced"))
    if facts.count(CONFLICT):
        tiles.append((f"{facts.count(CONFLICT):,}", "to be decided by a person"))
    if facts.files.upload:
        tiles.append((f"{facts.files.upload:,}", f"files to be uploaded, {size(facts.files.bytes)}"))
    if not facts.empty:
        tiles.append((duration(facts.minutes * 60), f"for {counted(facts.requests, 'request')}"))
    if facts.source.api == "v2":
        left = days_left(facts, now)
        tiles.append(
            (f"{abs(left):,}", "days from then until version 2 ends" if left >= 0 else "days after version 2 ends")
        )
    return [{"number": number, "what": what} for number, what in tiles]


def _times(facts: PlanFacts, now: datetime) -> list[tuple[str, str]]:
    times = [
        ("Requests", f"{facts.requests:,}"),
        ("Budget", f"{facts.requests_per_minute:,} requests a minute"),
        ("Takes", duration(facts.minutes * 60)),
        ("If it begins", _moment(now)),
        ("it is done", _moment(finishes_at(facts, now))),
    ]
    if facts.source.api == "v2":
        left = days_left(facts, now)
        times.append(
            (
                "Version 2 ends",
                f"{day(LAST_DAY_OF_V2)}, {counted(abs(left), 'day')} {'later' if left >= 0 else 'earlier'}",
            )
        )
    return times


def _patched(one: PatchedField) -> dict[str, Any]:
    return {
        "resource": plural(one.resource),
        "field": shown(one.field, 40),
        "records": f"{one.records:,}",
        "replaced": f"{one.replaced:,}",
        "examples": one.examples,
    }


def _groups(groups: Mapping[str, IssueGroup]) -> list[dict[str, Any]]:
    """Records by reason, the commonest first."""
    return [
        {
            "problem": advice_on(reason).problem,
            "suggestion": advice_on(reason).suggestion,
            "count": f"{one.count:,}",
            "examples": one.examples,
            "more": f"{one.count - len(one.examples):,}" if one.count > len(one.examples) else "",
        }
        for reason, one in sorted(groups.items(), key=lambda one: -one[1].count)
    ]


def _unsent(path: str, count: int, group: IssueGroup | None) -> dict[str, str]:
    problem, suggestion = advice_on_unsent(path, None)
    example = group.examples[0] if group else IssueExample("")
    told = {"path": shown(path, 60), "count": f"{count:,}", "problem": problem, "suggestion": suggestion}
    return {**told, "record": example.record, "example": shown(example.value, 120)}


def _files(files: FileCounts) -> str:
    if not files.upload + files.there + files.missing:
        return "The records have no files."
    told = f"{counted(files.upload, 'file')} will be uploaded, {size(files.bytes)} in all; {files.covers:,} of them are covers."
    return f"{told} {files.there:,} are there already." if files.there else told


def _most(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:BARS]

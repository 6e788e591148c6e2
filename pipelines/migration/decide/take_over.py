"""Takes the decisions of a file over into a plan, as if the file were put in the place of its conflicts.tsv, with more checks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from pipelines.errors import ConfigurationError
from pipelines.humanize import counted
from pipelines.migration.model.plan import CONFLICTS, Plan
from pipelines.migration.plan.conflicts import (
    ConflictLine,
    Decisions,
    conflict_lines,
    newest_table,
    read_decisions,
    write_conflicts,
)
from pipelines.store.snapshots.snapshots import DataFolder

NAMED = 5
"""Records that a message names at most."""


class TakenOver(msgspec.Struct, kw_only=True):
    """What a file decided."""

    plan: str
    path: str
    """conflicts.tsv of the plan."""
    decisions: dict[str, int]
    """Decision → lines of the file with it."""
    withdrawn: int
    """Decisions of before that the file does not have any more."""
    left: int
    """Conflicts without a decision."""


def take_over(data: DataFolder, plan: Plan, path: Path) -> TakenOver:
    """Replace the decisions of a plan by those of the file at `path`, all of them or none.

    Raises `ConfigurationError` for a file that cannot be understood, for one of another plan, and for a plan whose decisions no next plan
    reads, because a newer one has its own.
    """
    if not path.is_file():
        raise ConfigurationError(f"There is no file {path}.")
    _check_newest(data, plan)
    table = plan.path(CONFLICTS)
    before, decisions = read_decisions(table), read_decisions(path)
    open_conflicts = _check_same_plan(plan, path, decisions, conflict_lines(plan, before))
    write_conflicts(plan, decisions)
    return TakenOver(
        plan=plan.name,
        path=str(table),
        decisions=dict(Counter(str(decision.decision) for decision in decisions.values()).most_common()),
        withdrawn=len(before.keys() - decisions.keys()),
        left=open_conflicts,
    )


def _check_newest(data: DataFolder, plan: Plan) -> None:
    facts = plan.facts
    newest = newest_table(data, facts.source.base_url, facts.target.base_url)
    if newest is not None and newest[0].created_at > facts.created_at:
        name = newest[1].parent.name
        raise ConfigurationError(
            f"Plan {plan.name} is not the newest between '{facts.source.tenant}' and '{facts.target.tenant}': {name} is, and the next plan "
            f"reads the decisions of that one only. Open {newest[1].parent}, decide there, and name it instead."
        )


def _check_same_plan(plan: Plan, path: Path, decisions: Decisions, lines: Iterable[ConflictLine]) -> int:
    """Raise `ConfigurationError` where the file decides about other records than the plan asks about; returns the conflicts left open."""
    unknown, open_conflicts, other_titles, titles = {*decisions}, 0, 0, 0
    for line in lines:
        key = (line.resource, line.source_id)
        open_conflicts += line.waits and key not in decisions
        if key in unknown:
            unknown.remove(key)
            plan_title, file_title = _letters(line.title), _letters(decisions[key].title)
            titles += bool(plan_title and file_title)
            other_titles += bool(plan_title and file_title) and plan_title != file_title
    if unknown:
        named = ", ".join(f"{resource} {number}" for resource, number in [*unknown][:NAMED])
        more = f" and {len(unknown) - NAMED:,} more" if len(unknown) > NAMED else ""
        raise ConfigurationError(
            f"{path} decides about {counted(len(unknown), 'record')} about which plan {plan.name} does not ask: {named}{more}. Nothing was "
            "taken over. Is it the file of another plan? Save it again from the page of this one."
        )
    if other_titles * 2 > titles:
        raise ConfigurationError(
            f"{path} has other titles than plan {plan.name} in {other_titles:,} of {counted(titles, 'line')}, so it seems to be the file "
            "of another plan. Nothing was taken over. Save it again from the page of this one."
        )
    return open_conflicts


def _letters(title: str) -> str:
    """The letters of a title that survive every encoding and every spreadsheet."""
    return re.sub(r"[^a-z0-9]", "", title.casefold())

"""The conflicts of a plan as data of its page, in which librarians decide them, and the script and style of that part.

The rows go into the file as they are read, a few at a time (I11). Every text of a record is made safe to display (I10), and nothing in the
data can end the element in which it is (I13). The page shows of people what conflicts.tsv shows: no names.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from pipelines.inventory import noun, plural
from pipelines.migration.model.comparable import Form
from pipelines.migration.model.comparison_database import in_steps
from pipelines.migration.model.formatting import SHORT, cut_both, display_pair, display_text, value_of
from pipelines.migration.model.plan import CONFLICTS, SOURCE, TARGET, Plan, PlanRow
from pipelines.migration.model.reasons import decisions_about
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.plan.conflicts import (
    ConflictLine,
    conflict_lines,
    headings,
    read_decisions,
)
from pipelines.records.advice import field_name
from pipelines.records.matching import comparable
from pipelines.records.tables.registry import PERSONAL
from pipelines.records.values import RecordId
from pipelines.report.issues import safe_text
from pipelines.report.rendering import link_to

PACKAGE = "pipelines.migration.decide"
SCRIPTS = ("table.js", "choices.js", "cards.js", "decide.js")
STYLE = "decide.css"

SHOWN = 300
"""Characters of a value on the page at most; in the table they are fewer."""

CANDIDATES_SHOWN = 4
"""Candidates of which the page has the values; their numbers are all there."""

CONTEXT = ("title", "publishable_type", "published_on", "authors", "identifiers")
"""Fields of a publication that the page shows beside those in conflict."""


class _Kind(NamedTuple):
    """Conflicts of one resource with one reason."""

    resource: str
    reason: str
    waits: bool
    """Whether nothing of such a record is written before it is decided."""


class PageRows:
    """The conflicts of a plan as JSON, line by line, and then what the script has to know about them."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._kinds: dict[_Kind, dict[str, Any]] = {}
        self._fields: dict[str, str] = {}

    def json(self) -> Iterator[bytes]:
        """Yield the conflicts, in the order of conflicts.tsv: a JSON array, in pieces. Nothing where there is none."""
        lines = conflict_lines(self._plan, read_decisions(self._plan.path(CONFLICTS)))
        first = next(lines, None)
        if first is None:
            return
        before = b"[\n"
        records = _Records(self._plan)
        for step in in_steps(chain([first], lines)):
            rows = [line.row for line in step if line.row is not None]
            records.look_up(rows)
            for line in step:
                yield before + _safe_json(self._row(line, records))
                before = b",\n"
        yield b"\n]"

    def about(self) -> bytes:
        """The facts about the conflicts as JSON, once all of them were yielded."""
        facts = self._plan.facts
        return _safe_json(
            {
                "plan": facts.plan,
                "seal": facts.rows_sha256[:16],
                "source": facts.source.tenant,
                "target": facts.target.tenant,
                "pages": {
                    side: end.record_url
                    for side, end in (("source", facts.source), ("target", facts.target))
                    if link_to(end.record_url, 1)
                },
                "columns": headings(facts),
                "file": CONFLICTS,
                "kinds": list(self._kinds.values()),
                "fields": self._fields,
            }
        )

    def _row(self, line: ConflictLine, records: _Records) -> list[Any]:
        """One conflict: kind, id, title, candidates, fields in conflict, other fields, decision.

        Ids are texts: some are too long for JavaScript's numbers.
        """
        asked = [] if line.row is None else [*_asked(line.row)]
        context = [] if line.row is None else [*records.fields(line, {entry[0] for entry in asked})]
        for name in (*(entry[0] for entry in asked), *(entry[0] for entry in context)):
            self._fields.setdefault(name, field_name(name).replace("_", " "))
        candidates = [str(number) for number in line.candidates]
        return [self._kind(line), str(line.source_id), line.title, candidates, asked, context, line.decision]

    def _kind(self, line: ConflictLine) -> int:
        reason = line.reason
        kind = _Kind(line.resource, reason.code, line.waits)
        if kind not in self._kinds:
            self._kinds[kind] = {
                "number": len(self._kinds),
                "resource": line.resource,
                "one": noun(line.resource),
                "many": plural(line.resource),
                "problem": reason.problem,
                "suggestion": reason.suggestion,
                "advice": reason.choice,
                "offers": decisions_about(reason, line.resource),
                "waits": kind.waits,
                "plain": kind.reason == "fields_differ",
                "hidden": line.resource in PERSONAL,
            }
        number: int = self._kinds[kind]["number"]
        return number


def script() -> str:
    """The script of the page."""
    return '"use strict";\n' + "".join(_template(name) for name in SCRIPTS)


def style() -> str:
    """The style of what the script makes."""
    return _template(STYLE)


def policy(text: str) -> str:
    """The source for `script-src` that allows this script and no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _template(name: str) -> str:
    return resources.files(PACKAGE).joinpath("templates", name).read_text(encoding="utf-8")


def _safe_json(value: Any) -> bytes:
    """JSON that cannot end the element in which it is."""
    return msgspec.json.encode(value).replace(b"<", rb"\u003c")


def _asked(row: PlanRow) -> Iterator[list[str]]:
    """The fields in conflict: name, source, target; where they are longer than in conflicts.tsv, also the two values there.

    Of a person only the names of fields.
    """
    for field, values in row.differing.items():
        name = safe_text(field, 40)
        if row.resource in PERSONAL:
            yield [name]
            continue
        pair = display_pair(field, *map(value_of, values))
        short, long = cut_both(*pair, SHORT), cut_both(*pair, SHOWN)
        yield [name, *long] if short == long else [name, *long, *short]


class _Records:
    """The publications of both sides among some conflicts."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._found: list[dict[RecordId, Mapping[str, str]]] = [{}, {}]

    def look_up(self, rows: Sequence[PlanRow]) -> None:
        """Read the records of these rows; those of earlier rows are forgotten."""
        rows = [row for row in rows if row.resource == PUBLICATIONS]
        ids = ([row.source_id for row in rows], [number for row in rows for number in _shown_candidates(row)])
        sides = zip(map(self._plan.side, (SOURCE, TARGET)), ids, strict=True)
        self._found = [
            {number: _fields_of(form) for number, form in side.forms(side_ids).items()} if side.exists else {}
            for side, side_ids in sides
        ]

    def fields(self, line: ConflictLine, asked: set[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the fields of a publication apart from those in conflict: name, then the source and each candidate that is shown.

        0 stands for the value of the source, and null for none.
        """
        source, target = self._found
        if line.resource != PUBLICATIONS or line.source_id not in source:
            return
        sides = [target.get(number, {}) for number in line.candidates[:CANDIDATES_SHOWN]]
        for name in CONTEXT:
            source_value, *target_values = (side.get(name) for side in (source[line.source_id], *sides))
            if name not in asked and any(text is not None for text in (source_value, *target_values)):
                yield (
                    name,
                    _shown(name, source_value),
                    *(0 if value == source_value else _shown(name, value) for value in target_values),
                )


def _fields_of(form: Form) -> Mapping[str, str]:
    """The fields of a record, and its date also where that is only a year, which is not sent."""
    date = form.unsent.get("published_on")
    return comparable(form.values if date is None else {**form.values, "published_on": date})


def _shown_candidates(row: PlanRow) -> Iterable[RecordId]:
    return ([] if row.target_id is None else [row.target_id]) + row.candidates[:CANDIDATES_SHOWN]


def _shown(field: str, text: str | None) -> str | None:
    if text is None:
        return None
    shown = display_text(field, value_of(text))
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"

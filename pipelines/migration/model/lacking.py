"""What the target lacks although the source has it: what a plan could not send, and what the service did not keep of a write.

It is counted from the rows of the plan and from the journal, so that apply, status and verify give the same numbers, also for plans of
earlier versions. Other values that are not sent are not among it: the plan and issues.tsv list those.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from pipelines.humanize import MOST_LISTED, counted
from pipelines.migration.model.actions import PRESENT_ACTIONS, Action, FileAction
from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.formatting import display_both, value_of
from pipelines.migration.model.journal import RECORD_WRITES, Journal
from pipelines.migration.model.journal_entries import WriteState
from pipelines.migration.model.plan import Plan, PlannedFile
from pipelines.migration.model.resource_types import PUBLICATIONS, LeftOut
from pipelines.migration.model.unsent_values import advice_on_unsent, is_reference
from pipelines.migration.model.wording import advice_on
from pipelines.records.advice import Advice, advice_of
from pipelines.records.files import COVER
from pipelines.records.tables.registry import PERSONAL
from pipelines.service.redaction import outside_text

MOST_CHARACTERS = 300
"""Of a text from outside."""

MOST_NUMBERS = 20
"""Of a reference to several records."""

_FILES = msgspec.json.Decoder(list[PlannedFile])

_MAY_REFER = r'"(contributor|organization|categories\[|[^"]*(collection|authorit)'
"""Part of the JSON of unsent values that may have a reference, besides the fields that a plan knows to; most rows are not decoded."""

_PRESENT = ", ".join(f"'{action}'" for action in PRESENT_ACTIONS)

_ROWS = f"""
    SELECT resource, source_id, action, title, reason, unsent, kept, CASE WHEN lacks_file OR keeps_file THEN files END AS files
    FROM (
        SELECT
            *,
            action IN ({_PRESENT}) AND coalesce(files LIKE '%"{FileAction.MISSING}"%', false) AS lacks_file,
            coalesce(files LIKE '%"kept":%', false) AS keeps_file,
            action IN ({_PRESENT}) AND coalesce(regexp_matches(unsent, ?), false) AS may_refer
        FROM file
    )
    WHERE action = '{Action.QUARANTINED}' OR lacks_file OR keeps_file OR kept IS NOT NULL OR may_refer
"""  # noqa: S608  our own words


_NUMBERS = (LeftOut.LINK, LeftOut.UNKNOWN_REFERENCE)
"""Why a field with numbers of records is left out: the target lacks the references."""

LOOK = "Look at the record in the target, and enter there what is lacking."
"""What to do about a value that the service keeps otherwise."""

NOT_KEPT = "the service answered without it, so it does not keep it."
"""End of the message about additional fields of publications that a service ignores: of all records, the first one is an item."""


class LackingKind(StrEnum):
    """What is lacking."""

    RECORD = "record"
    FILE = "file"
    COVER = "cover"
    REFERENCE = "reference"
    """The record is there without a reference to another one."""
    WRITE = "write"
    """The record or file was written, by this plan or an earlier one, and the service did not keep all of it as it was sent."""


class LackingItem(msgspec.Struct, kw_only=True, frozen=True):
    """One thing that the target lacks."""

    kind: LackingKind
    resource: str
    source_id: int
    title: str = ""
    """The title of its record; empty for a person."""
    name: str = ""
    """The name of the file, or the field of the reference."""
    value: str = ""
    """The numbers of the records in the source to which it refers."""
    problem: str
    suggestion: str

    @property
    def text(self) -> str:
        """What is lacking and why, for a line about the record."""
        if self.kind in (LackingKind.RECORD, LackingKind.WRITE):
            return self.problem
        what = f"{self.name} {self.value}" if self.kind == LackingKind.REFERENCE else f"the {self.kind} {self.name}"
        return f"{what.strip()} is not moved: {self.problem.removesuffix('.')}."


class LackingCounts(msgspec.Struct, kw_only=True):
    """How much is lacking, by kind."""

    records: int = 0
    files: int = 0
    covers: int = 0
    references: int = 0
    writes: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return self.records + self.files + self.covers + self.references + self.writes

    def __str__(self) -> str:
        """`2 records, 1 cover`; empty where nothing is lacking."""
        words = (
            (self.records, "record"),
            (self.files, "file"),
            (self.covers, "cover"),
            (self.references, "reference"),
            (self.writes, "incomplete write"),
        )
        return ", ".join(counted(count, noun) for count, noun in words if count)

    def add(self, kind: LackingKind) -> None:
        """Count one."""
        name = f"{kind}s"
        setattr(self, name, getattr(self, name) + 1)


class Lacking(LackingCounts, kw_only=True):
    """How much is lacking, and the first items."""

    items: list[LackingItem] = []


def lacking_of(plan: Plan, journal: Journal | None = None) -> Lacking:
    """What the target lacks after a plan. With a journal, also what the service did not keep of the writes so far."""
    found = Lacking(records=plan.facts.unfit, items=[])
    repeated = Counter[str]()
    for item in _all(plan, journal):
        found.add(item.kind)
        if item.kind == LackingKind.WRITE and item.problem.endswith(NOT_KEPT):
            repeated[item.problem] += 1
            if repeated[item.problem] > 1:
                continue
        if len(found.items) < MOST_LISTED:
            found.items.append(item)
    found.items = [_with_count(item, repeated[item.problem]) for item in found.items]
    return found


def _with_count(item: LackingItem, records: int) -> LackingItem:
    """An item that stands for several records, with their number."""
    if records <= 1:
        return item
    return msgspec.structs.replace(item, problem=f"{item.problem} So it is in {counted(records, 'record')}.")


def _all(plan: Plan, journal: Journal | None) -> Iterator[LackingItem]:
    yield from not_sent(plan)
    if journal is not None:
        yield from _not_kept(plan, journal)


def not_sent(plan: Plan) -> Iterator[LackingItem]:
    """Yield what a plan could not send, or knows to be kept otherwise, in the order of its rows.

    Records without an id are in `PlanFacts.unfit` only.
    """
    references = reference_fields(plan)
    names = sorted({name for found in references.values() for name in found})
    may_refer = "|".join((_MAY_REFER, *map(re.escape, names))) + ")"
    with plan.reading() as database:
        for batch in database.sql(_ROWS, params=[may_refer]).to_arrow_reader(STEP):
            for row in batch.to_pylist():
                yield from _items(row, references.get(row["resource"], {}))


def reference_fields(plan: Plan) -> dict[str, dict[str, str]]:
    """Resource → each field that refers to other records, or may, and why a value of it is not moved."""
    references: dict[str, dict[str, str]] = {
        name: {
            **dict.fromkeys(found.references, LeftOut.NO_RECORD),
            **{field: why for field, why in found.left_out.items() if why in _NUMBERS},
        }
        for name, found in plan.types.items()
    }
    left_out = plan.facts.additional_fields.left_out if plan.facts.additional_fields else {}
    references[PUBLICATIONS] = {
        **{name: LeftOut.NO_RECORD for name, rule in plan.additional.items() if rule.leads_to},
        **{field: why for field, why in left_out.items() if why in _NUMBERS},
    }
    return references


def _items(row: Mapping[str, Any], references: Mapping[str, str]) -> Iterator[LackingItem]:
    title = "" if row["resource"] in PERSONAL else row["title"] or ""
    if row["action"] == Action.QUARANTINED:
        yield _item(row, title, LackingKind.RECORD, advice_on(row["reason"]))
        return
    if row["kept"]:
        yield _item(row, title, LackingKind.WRITE, Advice(_kept_fields(row), LOOK))
    if row["files"]:
        for file in _FILES.decode(row["files"]):
            if file.action == FileAction.MISSING:
                yield _file(row, title, file)
            elif file.kept:
                yield _kept_file(row, title, file)
    if row["unsent"]:
        for path, value in msgspec.json.decode(row["unsent"]).items():
            if is_reference(row["resource"], path, value, references):
                advice = advice_on_unsent(path, None, left_out=references.get(path.partition("[")[0], ""))
                yield _item(row, title, LackingKind.REFERENCE, advice, path, _numbers(value))


def _numbers(value: object) -> str:
    """The numbers of a reference without anything else, because the rest may name a person."""
    if isinstance(value, dict):
        value = value.get("id")
    if isinstance(value, list):
        return ", ".join(filter(None, map(_numbers, value[:MOST_NUMBERS])))
    return str(value) if isinstance(value, int) else ""


def _kept_fields(row: Mapping[str, Any]) -> str:
    """What the service keeps otherwise of a record: each field with both values; of a person only the names of fields."""
    fields = msgspec.json.decode(row["kept"])
    if row["resource"] in PERSONAL:
        return f"{', '.join(fields)}: the service keeps another value than was sent."
    texts = (
        f"{outside_text(name, MOST_CHARACTERS)}: the service keeps «{found}» for «{sent}»"
        for name, values in fields.items()
        for sent, found in [display_both(name, *map(value_of, values))]
    )
    return f"{'; '.join(texts)}."


def _kept_file(row: Mapping[str, Any], title: str, file: PlannedFile) -> LackingItem:
    name = outside_text(file.filename or file.name or "", MOST_CHARACTERS)
    problem = f"The {file.kind if file.kind == COVER else 'file'} {name}: the service keeps another {file.kept} than was sent."
    return _item(row, title, LackingKind.WRITE, Advice(problem, LOOK), file.kind)


def _file(row: Mapping[str, Any], title: str, file: PlannedFile) -> LackingItem:
    problem, suggestion = advice_of("file")
    kind = LackingKind.COVER if file.kind == COVER else LackingKind.FILE
    name = outside_text(file.filename or file.name or "", MOST_CHARACTERS)
    problem = outside_text(file.problem or "", MOST_CHARACTERS) or problem
    return _item(row, title, kind, Advice(problem, suggestion), name)


def _item(  # noqa: PLR0917  the parts of an item
    row: Mapping[str, Any], title: str, kind: LackingKind, advice: Advice, name: str = "", value: str = ""
) -> LackingItem:
    return LackingItem(
        kind=kind,
        resource=row["resource"],
        source_id=row["source_id"],
        title=outside_text(title, MOST_CHARACTERS),
        name=name,
        value=value,
        problem=advice.problem,
        suggestion=advice.suggestion,
    )


def _not_kept(plan: Plan, journal: Journal) -> Iterator[LackingItem]:
    """A finished write has a message where the service did not take or keep all of it."""
    columns = ("state", "message", "resource", "source_id", "kind")
    entries: Iterable[tuple[Any, ...]] = journal.columns_of_plan(plan.name, columns)
    for state, message, resource, source_id, kind in entries:
        if state == WriteState.DONE and message:
            yield LackingItem(
                kind=LackingKind.WRITE,
                resource=resource,
                source_id=source_id,
                name="" if kind in RECORD_WRITES else kind,
                problem=message,
                suggestion=LOOK,
            )

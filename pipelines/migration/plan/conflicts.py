"""conflicts.tsv: one line for each conflict, with a column for the decision of a person. The next plan reads it.

People edit the file in a spreadsheet, which may save it with another encoding, other separators and other line ends. A line that cannot be
understood is an error, so that no decision is ignored.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import NamedTuple

import msgspec

from pipelines.errors import ConfigurationError
from pipelines.inventory import RESOURCES
from pipelines.migration.model.actions import Action, Decision
from pipelines.migration.model.formatting import differences, target_numbers
from pipelines.migration.model.plan import CONFLICTS, FACTS, Plan, PlanFacts, PlanRow
from pipelines.migration.model.plan_folders import plans_folder
from pipelines.migration.model.reasons import DECIDED, TWINS, Reason, reason_of
from pipelines.migration.model.resource_types import MERGEABLE
from pipelines.records.tables.registry import PERSONAL
from pipelines.records.values import RecordId, id_order, record_id
from pipelines.report.issues import safe_text
from pipelines.report.tables import write_lines
from pipelines.service.redaction import outside_text
from pipelines.settings.addresses import library_key
from pipelines.store.durable import replacing, storage_errors
from pipelines.store.snapshots.snapshots import DataFolder


def headings(facts: PlanFacts) -> tuple[str, ...]:
    """The headings of the table. The last one lists what may be written in its column."""
    source, target = facts.source.tenant, facts.target.tenant
    return (
        "resource",
        "source_id",
        "title",
        "problem",
        "candidates",
        f"differing: «{source}» | «{target}»",
        f"decision: create, skip, match 123, source ({source} counts), target ({target} counts) or merge (authorities and locations)",
    )


_ALLOWED = (
    "create, skip, match and a number of the target (match 123), source, target, or, for authorities and locations, merge "
    "(merge 123: 123 remains)"
)
_NEEDED = ("resource", "source_id", "decision")
_SEPARATORS = "\t;,|"
_HEADING_WITHIN = 20
"""Lines in which the heading is searched: a person may have put other lines above it."""

_MISTAKES_LISTED = 10
"""Mistakes of a file that one message lists."""

_TEXT_ID = r"[^\s#']*[^\s#'\d.,]\S*?"
"""Matches an id that is no number; a number in another form, such as 1.234, is none."""

_DECISION = re.compile(
    rf"(create|skip|match|source|target|merge)(?:[\s:=#]*(\d+)|[\s:=#]+({_TEXT_ID}))?[\s.]*", re.IGNORECASE
)
_ID = re.compile(rf"[\s#']*(?:(\d{{1,19}})(?:\.0)?|({_TEXT_ID}))\s*")


class RecordDecision(NamedTuple):
    """A person's decision about a record. `target_id`: the record of the target that is meant; none to create or to skip."""

    resource: str
    source_id: RecordId
    decision: Decision
    target_id: RecordId | None
    title: str

    @property
    def written(self) -> str:
        """The decision as a person writes it."""
        return self.decision if self.target_id is None else f"{self.decision} {self.target_id}"


Decisions = Mapping[tuple[str, RecordId], RecordDecision]
"""Resource and id in the source → decision."""


class ConflictLine(NamedTuple):
    """One line of the table."""

    resource: str
    source_id: RecordId
    title: str
    reason: Reason
    candidates: list[RecordId]
    """The records of the target that a decision may name."""
    row: PlanRow | None
    """The row of the plan; none for a decision about a record that is no conflict any more."""
    decision: str
    """What was decided, as a person writes it; empty where nothing was."""

    @property
    def waits(self) -> bool:
        """Whether nothing of the record is written before it is decided; a proposed merge may be left as it is."""
        return self.row is not None and self.row.action == Action.CONFLICT

    @property
    def cells(self) -> Sequence[str | int]:
        """The line, in the order of `headings`."""
        fields = self.row.differing if self.row else {}
        return (
            self.resource,
            self.source_id,
            self.title,
            f"{self.reason.problem} {self.reason.suggestion}".strip(),
            target_numbers(self.candidates),
            ", ".join(safe_text(name, 40) for name in fields) if self.resource in PERSONAL else differences(fields),
            self.decision,
        )


def write_conflicts(plan: Plan, decided: Decisions) -> None:
    """Write the conflicts of a plan, then the decisions about records that are no conflicts any more: the file has every decision.

    A conflict that remains in spite of a decision has this decision already filled in.
    """
    path, cells = plan.path(CONFLICTS), (line.cells for line in conflict_lines(plan, decided))
    with storage_errors(path), replacing(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        write_lines(headings(plan.facts), cells, text)
        text.detach()


def read_decisions(path: Path) -> Decisions:
    """Read the decisions in a file that a person edited; none where there is no file.

    Raises `ConfigurationError` that lists every line that cannot be understood.
    """
    mistakes: list[str] = []
    decisions: dict[tuple[str, RecordId], tuple[int, RecordDecision]] = {}
    target_lines: dict[tuple[str, RecordId], int] = {}
    for line, cells in _rows(path) if path.is_file() else ():
        try:
            if decision := _decision(cells):
                _check_unique(line, decision, decisions, target_lines)
        except ValueError as error:
            mistakes.append(f"line {line}: {error}")
    if mistakes:
        raise ConfigurationError(_message(path, mistakes))
    return {key: decision for key, (_line, decision) in decisions.items()}


def _check_unique(
    line: int,
    decision: RecordDecision,
    decisions: dict[tuple[str, RecordId], tuple[int, RecordDecision]],
    target_lines: dict[tuple[str, RecordId], int],
) -> None:
    """Raise `ValueError` where another line has another decision about the record, or the same record of the target."""
    what = f"'{decision.written}' for {decision.resource} {decision.source_id}"
    first_line, first_decision = decisions.setdefault((decision.resource, decision.source_id), (line, decision))
    if decision.written != first_decision.written:
        raise ValueError(f"{what}, but line {first_line} says '{first_decision.written}'. Keep one of them")
    if decision.target_id is not None and first_line == line:
        first = target_lines.setdefault((decision.resource, decision.target_id), line)
        if first != line:
            raise ValueError(
                f"{what}, but line {first} takes {decision.target_id} of the target, and only one record can be it. "
                "Write skip or create for the other"
            )


def _message(path: Path, mistakes: Sequence[str]) -> str:
    more = [f"and {len(mistakes) - _MISTAKES_LISTED:,} more"] if len(mistakes) > _MISTAKES_LISTED else []
    return (
        "\n  ".join(
            [f"The decisions in {path} cannot be used, and none of them was:", *mistakes[:_MISTAKES_LISTED], *more]
        )
        + f"\nA decision is {_ALLOWED}. An empty cell decides nothing. Mend these lines and run the command again."
    )


class _Library(msgspec.Struct):
    base_url: str


class EarlierPlan(msgspec.Struct):
    """The facts of a plan that every version of Bookferry writes, and what later plans do as it did."""

    created_at: str
    source: _Library
    target: _Library
    first_days: bool = False
    sends_invalid: bool = False


def newest_table(data: DataFolder, source_base_url: str, target_base_url: str) -> tuple[EarlierPlan, Path] | None:
    """The newest plan, and its conflicts.tsv, between two libraries, whatever their tenants are called.

    Plans of other versions count, too, so that an update loses no decision.
    """
    libraries, plans = (library_key(source_base_url), library_key(target_base_url)), []
    for path in plans_folder(data).glob(f"*/{FACTS}"):
        try:
            earlier = _EARLIER_PLAN_DECODER.decode(path.read_bytes())
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        between, table = (
            (library_key(earlier.source.base_url), library_key(earlier.target.base_url)),
            path.parent / CONFLICTS,
        )
        if between == libraries and table.is_file():
            plans.append((earlier, table))
    return max(plans, key=lambda pair: (pair[0].created_at, pair[1]), default=None)


def _asked_rows(plan: Plan) -> Iterator[PlanRow]:
    """Yield the rows about which people are asked, each once: the conflicts, and then the merges that are proposed."""
    yield from plan.rows(Action.CONFLICT)
    if mergeable := {*MERGEABLE} & {*plan.facts.resources}:
        yield from (row for row in plan.rows(resources=mergeable) if row.reason == TWINS)


def conflict_lines(plan: Plan, decided: Decisions) -> Iterator[ConflictLine]:
    """Yield the lines of the table of a plan, in its order."""
    unasked = {**decided}
    for row in _asked_rows(plan):
        key, reason = (row.resource, row.source_id), reason_of(row.reason, row.resource)
        decision = unasked.pop(key).written if key in unasked else ""
        yield ConflictLine(*key, safe_text(row.display_title), reason, _numbers_of(row), row, decision)
    for key, entry in sorted(unasked.items(), key=_record_order):
        numbers = [] if entry.target_id is None else [entry.target_id]
        yield ConflictLine(*key, safe_text(entry.title), DECIDED, numbers, None, entry.written)


def _record_order(entry: tuple[tuple[str, RecordId], RecordDecision]) -> tuple[str, tuple[bool, RecordId]]:
    (resource, number), _decision = entry
    return resource, id_order(number)


def _numbers_of(row: PlanRow) -> list[RecordId]:
    """The records of the target that a decision may name."""
    if row.target_id is None:
        return row.candidates
    return [row.target_id, *row.candidates] if row.reason == TWINS else [row.target_id]


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each line that is not empty: its number in a spreadsheet, and its cells by column."""
    with storage_errors(path), path.open(encoding=_encoding(path), errors="replace", newline="") as file:
        beginning = "".join(line for line, _number in zip(file, range(_HEADING_WITHIN), strict=False))
        separator, heading = _heading(path, beginning)
        file.seek(0)
        columns: list[str] = []
        try:
            for line, cells in enumerate(csv.reader(file, delimiter=separator, strict=True), start=1):
                if not columns:
                    columns = heading if _columns(cells) == heading else []
                elif any(cell.strip() for cell in cells):
                    yield line, dict(zip(columns, cells, strict=False))
        except csv.Error as error:
            raise ConfigurationError(
                f"{path} cannot be read as a table ({error}). Save it again as text with tabs between the columns."
            ) from None


def _encoding(path: Path) -> str:
    """The encoding of a file that a spreadsheet saved: UTF-8, UTF-16 or Windows-1252."""
    with path.open("rb") as file:
        start = file.read(4)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if b"\0" in start[:2]:
        return "utf-16-le" if start[1:2] == b"\0" else "utf-16-be"
    try:
        with path.open(encoding="utf-8", newline="") as file:
            while file.read(1 << 20):
                pass
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def _heading(path: Path, beginning: str) -> tuple[str, list[str]]:
    """The separator of the columns, and their names."""
    for separator in _SEPARATORS:
        for cells in csv.reader(StringIO(beginning, newline=""), delimiter=separator):
            if {*_NEEDED} <= {*(columns := _columns(cells))}:
                return separator, columns
    raise ConfigurationError(
        f"{path} has no line with the headings {', '.join(_NEEDED)} among its first {_HEADING_WITHIN}, so it is unknown which cells are "
        "decisions. Put the first line back as it was written, or remove the file to be asked again."
    )


def _columns(cells: Sequence[str]) -> list[str]:
    """The names of columns: the first word of each heading."""
    return [(re.findall(r"\w+", cell.casefold()) or [""])[0] for cell in cells]


def _decision(cells: Mapping[str, str]) -> RecordDecision | None:
    """The decision of one line. Raises `ValueError` that says what is wrong with it."""
    text = _plain(cells.get("decision", ""))
    if not text:
        return None
    match = _DECISION.fullmatch(text)
    if not match:
        raise ValueError(f"'{_quoted(cells['decision'])}' is no decision")
    decision, number = Decision(match[1].casefold()), match[2] or match[3]
    resource = _plain(cells.get("resource", "")).casefold().replace(" ", "_")
    if resource not in RESOURCES:
        raise ValueError(
            f"'{text}', but '{_quoted(cells.get('resource', ''))}' in column resource is none of {', '.join(RESOURCES)}"
        )
    source = _id(cells.get("source_id", ""))
    if source is None:
        raise ValueError(
            f"'{text}', but '{_quoted(cells.get('source_id', ''))}' in column source_id is not the id of a record"
        )
    takes_none = decision in (Decision.CREATE, Decision.SKIP)
    if number and takes_none:
        raise ValueError(f"'{text}': {decision} takes no number")
    if decision == Decision.MERGE and resource not in MERGEABLE:
        raise ValueError(f"'{text}', but only {' and '.join(MERGEABLE)} can be merged")
    needs_one = not takes_none and decision != Decision.MERGE
    target = _id(number or (cells.get("candidates", "") if needs_one else ""))
    if needs_one and target is None:
        raise ValueError(f"'{text}' names no record of the target: write its number after it ({decision} 123)")
    return RecordDecision(resource, source, decision, target, cells.get("title", ""))


def _id(text: str) -> RecordId | None:
    """The id in a cell; none unless there is exactly one."""
    match = _ID.fullmatch(_plain(text))
    return record_id(match[1] or match[2]) if match else None


def _plain(text: str) -> str:
    """A cell with single blanks and in one Unicode form."""
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _quoted(text: str) -> str:
    return outside_text(text, 60)


_EARLIER_PLAN_DECODER = msgspec.json.Decoder(EarlierPlan)

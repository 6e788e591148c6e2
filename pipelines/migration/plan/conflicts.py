"""conflicts.tsv: what a person must decide, a line for each conflict, with a column to write the decision into. The next plan reads it.

People open it in a spreadsheet and save it as that likes, so what is read may have another encoding, other separators and other line ends
than what was written. A line that cannot be understood is an error: a decision is never passed over.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import msgspec

from pipelines.errors import ConfigurationError
from pipelines.inventory import RESOURCES
from pipelines.migration.model.formatting import display_both, value_of
from pipelines.migration.model.plan import CONFLICT, CONFLICTS, FACTS, PlanRow
from pipelines.migration.model.plan_folders import plans_folder
from pipelines.migration.model.wording import advice_on
from pipelines.records.tables.registry import PERSONAL
from pipelines.records.values import whole_number
from pipelines.report.issues import safe_text, write_lines
from pipelines.service.redaction import outside_text
from pipelines.store.durable import storage_errors
from pipelines.store.snapshots.snapshots import DataFolder

CREATE, SKIP, MATCH, SOURCE, TARGET = "create", "skip", "match", "source", "target"
"""What a person may decide: it is new, leave it out, it is that one of the target; the source's values count, or the target's."""

COLUMNS = (
    "resource",
    "source_id",
    "title",
    "problem",
    "candidates",
    "differing",
    "decision: create, skip, match 123, source (ours counts) or target (theirs counts)",
)
"""The last one tells, where it is written, what may be written."""

DECIDED = "Decided before; clear the last cell to be asked again."

_ALLOWED = "create, skip, match and a number of the target (match 123), source or target"
_NEEDED = ("resource", "source_id", "decision")
_SEPARATORS = "\t;,|"
_HEADING_WITHIN = 20
"""Lines in which the heading is looked for: somebody may have put one of his own above it."""

_MOST_TOLD = 10
"""Mistakes of a file that are told at once."""

_DECISION = re.compile(r"(create|skip|match|source|target)(?:[\s:=#]*(\d+))?[\s.]*")
_NUMBER = re.compile(r"[\s#']*(\d{1,19})(?:\.0)?\s*")


class Decision(NamedTuple):
    """What a person decided of a record. `target_id`: the record of the target that is meant; without one only to create or to skip."""

    resource: str
    source_id: int
    decision: str
    target_id: int | None
    title: str

    @property
    def written(self) -> str:
        """As a person writes it."""
        return self.decision if self.target_id is None else f"{self.decision} {self.target_id}"


Decisions = Mapping[tuple[str, int], Decision]
"""By resource and the record of the source."""


def write_conflicts(path: Path, rows: Iterable[PlanRow], decided: Decisions) -> None:
    """Write the conflicts among `rows`, and after them what was `decided` and is no conflict any more: this file alone has every decision.

    A conflict that is one in spite of a decision has that already filled in.
    """
    with storage_errors(path), path.open("w", encoding="utf-8", newline="") as file:
        write_lines(COLUMNS, _lines(rows, decided), file)


def read_decisions(path: Path) -> list[Decision]:
    """The decisions in a file that a person has edited. Raises `ConfigurationError` with every line that cannot be understood."""
    mistakes: list[str] = []
    found: dict[tuple[str, int], tuple[int, Decision]] = {}
    taken: dict[tuple[str, int], int] = {}
    for line, cells in _rows(path):
        try:
            if one := _decision(cells):
                _check_alone(line, one, found, taken)
        except ValueError as error:
            mistakes.append(f"line {line}: {error}")
    if mistakes:
        raise ConfigurationError(_told(path, mistakes))
    return [one for _line, one in found.values()]


def _check_alone(
    line: int, one: Decision, found: dict[tuple[str, int], tuple[int, Decision]], taken: dict[tuple[str, int], int]
) -> None:
    """Raise `ValueError` where another line decides otherwise of the record, or takes the same one of the target."""
    what = f"'{one.written}' for {one.resource} {one.source_id}"
    before, same = found.setdefault((one.resource, one.source_id), (line, one))
    if one.written != same.written:
        raise ValueError(f"{what}, but line {before} says '{same.written}'. Leave one of them")
    if one.target_id is not None and before == line:
        first = taken.setdefault((one.resource, one.target_id), line)
        if first != line:
            raise ValueError(
                f"{what}, but line {first} takes {one.target_id} of the target, and only one record can be it. "
                "Write skip or create for the other"
            )


def _told(path: Path, mistakes: Sequence[str]) -> str:
    more = [f"and {len(mistakes) - _MOST_TOLD:,} more"] if len(mistakes) > _MOST_TOLD else []
    return (
        "\n  ".join([f"The decisions in {path} cannot be used, and none of them was:", *mistakes[:_MOST_TOLD], *more])
        + f"\nA decision is {_ALLOWED}. An empty cell decides nothing. Mend these lines and run the command again."
    )


class _Library(msgspec.Struct):
    base_url: str


class _Made(msgspec.Struct):
    """What every version of Bookferry tells of a plan."""

    created_at: str
    source: _Library
    target: _Library


def newest_table(data: DataFolder, source_base_url: str, target_base_url: str) -> tuple[str, Path] | None:
    """When the newest plan from the one library to the other was made, whatever the tenants are called, and its table of decisions.

    Also one that this version cannot apply: what people decided outlives an update.
    """
    wanted, found = (source_base_url.lower(), target_base_url.lower()), []
    for path in plans_folder(data).glob(f"*/{FACTS}"):
        try:
            made = msgspec.json.decode(path.read_bytes(), type=_Made)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        between, table = (made.source.base_url.lower(), made.target.base_url.lower()), path.parent / CONFLICTS
        if between == wanted and table.is_file():
            found.append((made.created_at, table))
    return max(found, default=None)


def _lines(rows: Iterable[PlanRow], decided: Decisions) -> Iterator[Sequence[str | int]]:
    again = set()
    for row in rows:
        if row.action == CONFLICT:
            earlier = decided.get((row.resource, row.source_id))
            if earlier:
                again.add((row.resource, row.source_id))
            yield (
                row.resource,
                row.source_id,
                "" if row.resource in PERSONAL else safe_text(row.title or ""),
                " ".join(advice_on(row.reason)),
                numbers(row.candidates if row.target_id is None else [row.target_id]),
                ", ".join(row.differing) if row.resource in PERSONAL else differing(row.differing),
                earlier.written if earlier else "",
            )
    for key, one in sorted(decided.items()):
        if key not in again:
            target = numbers([] if one.target_id is None else [one.target_id])
            yield (one.resource, one.source_id, safe_text(one.title), DECIDED, target, "", one.written)


def differing(fields: Mapping[str, Sequence[str | None]]) -> str:
    """What differs: `title: «source» | «target»`."""
    pairs = ((field, *display_both(field, *map(value_of, values))) for field, values in fields.items())
    return " · ".join(f"{safe_text(field, 40)}: «{ours}» | «{theirs}»" for field, ours, theirs in pairs)


def numbers(ids: Iterable[int]) -> str:
    """Numbers of the target, which a spreadsheet takes for text: `#12 or #34`."""
    return " or ".join(f"#{one}" for one in ids)


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Line as a spreadsheet counts it, and its cells by column; lines without anything are left out."""
    with storage_errors(path), path.open(encoding=_encoding(path), errors="replace", newline="") as file:
        beginning = "".join(line for line, _number in zip(file, range(_HEADING_WITHIN), strict=False))
        separator, heading = _heading(path, beginning)
        file.seek(0)
        columns: list[str] = []
        try:
            for line, cells in enumerate(csv.reader(file, delimiter=separator, strict=True), start=1):
                if not columns:
                    columns = heading if _columns(cells) == heading else []
                elif any(one.strip() for one in cells):
                    yield line, dict(zip(columns, cells, strict=False))
        except csv.Error as error:
            raise ConfigurationError(
                f"{path} cannot be read as a table ({error}). Save it again as text with tabs between the columns."
            ) from None


def _encoding(path: Path) -> str:
    """Of a file as some spreadsheet saved it: UTF-8, or UTF-16, or else what Windows wrote before."""
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
    """What separates the columns, and their names."""
    for separator in _SEPARATORS:
        for cells in csv.reader(StringIO(beginning, newline=""), delimiter=separator):
            if {*_NEEDED} <= {*(columns := _columns(cells))}:
                return separator, columns
    raise ConfigurationError(
        f"{path} has no line with the headings {', '.join(_NEEDED)} among its first {_HEADING_WITHIN}, so nobody knows which cells are "
        "decisions. Put the first line back as it was written, or remove the file to be asked again."
    )


def _columns(cells: Sequence[str]) -> list[str]:
    """Names of columns; what follows a name tells people more."""
    return [(re.findall(r"\w+", one.casefold()) or [""])[0] for one in cells]


def _decision(cells: Mapping[str, str]) -> Decision | None:
    """The decision of one line. Raises `ValueError` with what is wrong with it."""
    said = _plain(cells.get("decision", ""))
    if not said:
        return None
    found = _DECISION.fullmatch(said)
    if not found:
        raise ValueError(f"'{_quoted(cells['decision'])}' is no decision")
    decision, number = found.groups()
    resource = _plain(cells.get("resource", "")).replace(" ", "_")
    if resource not in RESOURCES:
        raise ValueError(
            f"'{said}', but '{_quoted(cells.get('resource', ''))}' in column resource is none of {', '.join(RESOURCES)}"
        )
    source = _id(cells.get("source_id", ""))
    if source is None:
        raise ValueError(
            f"'{said}', but '{_quoted(cells.get('source_id', ''))}' in column source_id is not the number of a record"
        )
    if decision in (CREATE, SKIP):
        if number:
            raise ValueError(f"'{said}': {decision} takes no number")
        return Decision(resource, source, decision, None, cells.get("title", ""))
    target = _id(number) if number else _id(cells.get("candidates", ""))
    if target is None:
        raise ValueError(
            f"'{said}' does not tell which record of the target: write its number behind it ({decision} 123)"
        )
    return Decision(resource, source, decision, target, cells.get("title", ""))


def _id(text: str) -> int | None:
    """The one number that a cell holds."""
    found = _NUMBER.fullmatch(_plain(text))
    return whole_number(int(found[1])) if found else None


def _plain(text: str) -> str:
    """A cell without case, doubled blanks and the forms that only look otherwise."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _quoted(text: str) -> str:
    return outside_text(text, 60)

"""Finds what the target has twice, because a request without a response was sent again and took effect after all (I8).

Only what the journal sent again is looked at: other duplicates of a library are its own. A twin equals the record or the file that the
journal knows, was not there when that was planned, and no other write accounts for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from pipelines.migration.model.comparable import RECORDS, Side, digest
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import JournalEntry, WriteKind, WriteState
from pipelines.migration.model.plan import Plan, Twin
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.model.target_reading import TargetListing
from pipelines.records.files import ASSET, AttachedFile, attached_files
from pipelines.records.values import decode_record, whole_number
from pipelines.store.parquet import connect_duckdb, escaped, literal

_CONTENT = "SELECT e.number, r.content FROM entry AS e JOIN read_parquet({path}) AS r ON r.id = e.{id}"
_EQUAL = "SELECT w.number, list(DISTINCT n.id) FROM ({wanted}) AS w JOIN read_parquet({now}) AS n USING (content) GROUP BY ALL"

KnownBefore = Callable[[JournalEntry, Collection[int]], set[int]]
"""Returns those ids of the resource of an entry that were in the target when its plan was made."""


class TwinFinder:
    """Looks for twins in one reading of the target. `source`: the source's publications, which the entries wrote."""

    def __init__(
        self,
        journal: Journal,
        now: Side,
        listed: Mapping[str, TargetListing],
        known_before: KnownBefore,
        source: Side | None = None,
    ) -> None:
        self._journal = journal
        self._now = now
        self._listed = listed
        self._known_before = known_before
        self._source = source

    def find(self, entries: Iterable[JournalEntry]) -> Iterator[tuple[JournalEntry, list[int], str]]:
        """Yield each entry that has twins, with their ids, and the name of the file where it is one."""
        sent = [entry for entry in entries if entry.state in (WriteState.DONE, WriteState.REFUSED)]
        creations = [entry for entry in sent if entry.kind == WriteKind.CREATE]
        publications = self._equal_publications([entry for entry in creations if entry.resource == PUBLICATIONS])
        for entry in creations:
            if entry.resource == PUBLICATIONS:
                ids: Collection[int] = publications.get(entry.number, ())
            else:
                ids = self._equal_records(entry)
            if new := self._new_ids(entry, ids):
                yield entry, new, ""
        yield from self._files([entry for entry in sent if entry.kind == WriteKind.ASSET])

    def _new_ids(self, entry: JournalEntry, ids: Collection[int]) -> list[int]:
        found = set(ids)
        if not found:
            return []
        return sorted(found - self._journal.known_ids(entry.resource, found) - self._known_before(entry, found))

    def _equal_publications(self, entries: Sequence[JournalEntry]) -> dict[int, list[int]]:
        """Number of the entry → records with the content of its record now, or with the content of the source."""
        if not entries:
            return {}
        now = literal(escaped(self._now.path(RECORDS)))
        with connect_duckdb(memory_limit="512MB", threads=2) as database:
            database.execute("CREATE TABLE entry (number BIGINT, source_id BIGINT, target_id BIGINT)")
            database.executemany(
                "INSERT INTO entry VALUES (?, ?, ?)", [(one.number, one.source_id, one.target_id) for one in entries]
            )
            wanted = _CONTENT.format(path=now, id="target_id")
            if self._source is not None:
                wanted += f" UNION {_CONTENT.format(path=literal(escaped(self._source.path(RECORDS))), id='source_id')}"
            rows = database.execute(_EQUAL.format(wanted=wanted, now=now)).fetchall()
        return dict(rows)

    def _equal_records(self, entry: JournalEntry) -> list[int]:
        """Records of another resource with the values that the record of an entry was given."""
        listing = self._listed.get(entry.resource)
        if listing is None or listing.type is None:
            return []
        resource_type = listing.type
        found = []
        for record in listing.records():
            compared = resource_type.compared_record(record)
            equal = any(
                wanted and all(digest(compared.get(name)) == value for name, value in wanted.items())
                for wanted in (entry.held, entry.wanted)
            )
            if equal and (number := whole_number(record.get("id"))) is not None:
                found.append(number)
        return found

    def _files(self, entries: Sequence[JournalEntry]) -> Iterator[tuple[JournalEntry, list[int], str]]:
        """Yield each entry of a file with the other files of its record that are like it and that no entry accounts for."""
        wanted = [entry for entry in entries if entry.asset_id is not None and entry.target_id is not None]
        if not wanted:
            return
        files = files_of(self._now, [entry.target_id for entry in wanted if entry.target_id is not None])
        for entry in wanted:
            assets = {file.asset_id: file for file in files.get(entry.target_id or 0, ()) if file.kind == ASSET}
            own = assets.get(entry.asset_id)
            written = self._journal.of_record(entry.resource, entry.source_id)
            known = {one.asset_id for one in written if one.kind == WriteKind.ASSET and one.state == WriteState.DONE}
            alike = [
                number
                for number, file in assets.items()
                if own is not None and number is not None and number not in known and _shape(file) == _shape(own)
            ]
            if own is not None and (new := sorted(set(alike) - self._known_before(entry, alike))):
                yield entry, new, own.filename or own.name or str(own.asset_id)


def twin_of(entry: JournalEntry, twins: list[int], file: str) -> Twin:
    """A twin as results name it. `twins`: at least one id besides that of the entry."""
    target_id = entry.target_id if entry.target_id is not None else twins[0]
    others = [number for number in twins if file or number != target_id]
    return Twin(resource=entry.resource, source_id=entry.source_id, target_id=target_id, twins=others, file=file)


def ids_before(plan: Plan, entry: JournalEntry, ids: Collection[int]) -> set[int]:
    """Those ids of records, or of the assets of a record, that were in the target when the plan of an entry was made."""
    if entry.kind == WriteKind.CREATE:
        return plan.ids_when_planned(entry.resource, ids)
    files = files_of(plan.target, [entry.target_id or 0]).get(entry.target_id or 0, ())
    return {file.asset_id for file in files if file.asset_id in ids and file.asset_id is not None}


def files_of(library: Side, ids: Collection[int]) -> dict[int, list[AttachedFile]]:
    """Id of a publication → its files."""
    return {number: attached_files(decode_record(text.encode())) for number, text in library.files(ids).items()}


def _shape(file: AttachedFile) -> tuple[str | None, str | None, int | None]:
    return file.name, file.filename, file.size

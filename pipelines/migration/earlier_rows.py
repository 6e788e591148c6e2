"""The normalised rows of an earlier plan, which are taken over where a record is still the same: a night changes few of a million.

No copy of them is kept: each plan has both sides in comparable form anyway, in its folder, and they go with it. Beside them,
`normalised.json` names the rules by which they were made, among them the code itself and every setting that has a part in it, and the
checksums of the tables. Rows of other rules, or of tables that are not as they were written, are not taken over.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import StorageError
from pipelines.migration.model.comparable import KEYS, RECORDS, ComparableLibrary
from pipelines.records.additional_fields import FieldRule
from pipelines.records.residue import ADDRESS_QUERY
from pipelines.records.rules import name_of_rules
from pipelines.store.durable import sha256_of, storage_errors, write_atomically
from pipelines.store.parquet import bounded_duckdb, escaped, literal

if TYPE_CHECKING:
    import duckdb

FACTS = "normalised.json"
"""The name of the file beside the tables. It is written last."""

MOST_GROUPS = 8
"""Row groups that are in memory at once. Where a list is in another order than before, the rows of further groups are made anew."""

_CODE = ("records", "publication_fields.py", "migration/model/comparable.py", "migration/normalise.py")
"""What of `pipelines` has a part in a normalised row; migration/normalise.py makes the rows of it."""


class NormalisedFacts(msgspec.Struct, kw_only=True):
    """normalised.json."""

    rules: str
    """See `rules_of`."""
    records_sha256: str
    keys_sha256: str
    groups: list[tuple[int, int]]
    """Of each batch of records, the rows of the table of records and of that of keys."""


def rules_of(kinds_text: str, sent: Sequence[str], additional: Mapping[str, FieldRule], *, first_day: bool) -> str:
    """The name of the rules of `normalise.normalise` with these settings: equal names mean equal rows for equal records."""
    return name_of_rules(_CODE, kinds_text, sorted(sent), list(additional.items()), first_day)


def write_facts(side: ComparableLibrary, rules: str, groups: list[tuple[int, int]]) -> None:
    """Write normalised.json, once both tables are complete."""
    facts = NormalisedFacts(
        rules=rules,
        records_sha256=sha256_of(side.path(RECORDS)),
        keys_sha256=sha256_of(side.path(KEYS)),
        groups=groups,
    )
    write_atomically(side.folder / FACTS, msgspec.json.encode(facts))


def _read_facts(folder: Path) -> NormalisedFacts | None:
    try:
        return msgspec.json.decode((folder / FACTS).read_bytes(), type=NormalisedFacts)
    except (OSError, msgspec.MsgspecError):
        return None


_Key = tuple[int, str, str]
"""A row of `KEYS`."""


class KnownRow(NamedTuple):
    """A row of the earlier table of records: its group, its place there, and its rows of `KEYS`."""

    group: int
    place: int
    keys: Sequence[_Key]


class EarlierRows:
    """The rows of an earlier side that the records of a raw table still have. Made by `earlier_rows`."""

    def __init__(self, side: ComparableLibrary, facts: NormalisedFacts, places: Iterator[int | None]) -> None:
        """`places`: for each row of the raw table, the row of the earlier table that is the same record; None where there is none."""
        self._places = places
        self._records = pq.ParquetFile(side.path(RECORDS))
        self._keys = pq.ParquetFile(side.path(KEYS))
        self._begins = [0, *accumulate(rows for rows, _keys in facts.groups if rows)]
        self._key_groups = _numbered_groups(facts)
        self._loaded: dict[int, tuple[pa.Table, list[list[_Key]]]] = {}

    def next(self, count: int) -> list[KnownRow | None]:
        """The rows of the next records of the raw table; None for a record that has to be normalised."""
        places = list(islice(self._places, count))
        wanted = Counter(bisect_right(self._begins, place) - 1 for place in places if place is not None)
        groups = {group for group, _rows in wanted.most_common(MOST_GROUPS)}
        self._loaded = {group: self._loaded.get(group) or self._load(group) for group in groups}
        return [self._known(place) for place in places]

    def _known(self, place: int | None) -> KnownRow | None:
        if place is None:
            return None
        group = bisect_right(self._begins, place) - 1
        if group not in self._loaded:
            return None
        within, keys = place - self._begins[group], self._loaded[group][1]
        return KnownRow(group, within, keys[within]) if keys else None

    def rows(self, fresh: pa.RecordBatch, order: Sequence[KnownRow | int]) -> pa.RecordBatch:
        """Rows of `RECORDS` in this order: known ones, and those of `fresh` by their place there."""
        *begins, of_fresh = accumulate((records.num_rows for records, _keys in self._loaded.values()), initial=0)
        begin_of = dict(zip(self._loaded, begins, strict=True))
        places = [of_fresh + one if isinstance(one, int) else begin_of[one.group] + one.place for one in order]
        known = [records.cast(fresh.schema) for records, _keys in self._loaded.values()]
        rows = pa.concat_tables([*known, pa.Table.from_batches([fresh])]).combine_chunks()
        [batch] = rows.take(pa.array(places, pa.int64())).to_batches()
        return batch

    def _load(self, group: int) -> tuple[pa.Table, list[list[_Key]]]:
        """A row group of the table of records, and the keys of each of its rows; none if a record is there twice: keys have its id only."""
        records = self._records.read_row_group(group)
        of_id: dict[int, list[_Key]] = {}
        if (number := self._key_groups[group]) is not None:
            columns = (column.to_pylist() for column in self._keys.read_row_group(number).columns)
            for key in cast("Iterable[_Key]", zip(*columns, strict=True)):
                of_id.setdefault(key[0], []).append(key)
        ids = cast("list[int]", records.column("id").to_pylist())
        return records, [of_id.get(number, []) for number in ids] if len({*ids}) == len(ids) else []

    def close(self) -> None:
        """Close the tables."""
        self._records.close()
        self._keys.close()


def _numbered_groups(facts: NormalisedFacts) -> list[int | None]:
    """The row group of the table of keys for each row group of that of records; a batch without keys has none."""
    numbers, last = [], -1
    for rows, keys in facts.groups:
        last += bool(keys)
        if rows:
            numbers.append(last if keys else None)
    return numbers


@contextmanager
def earlier_rows(raw: Path, folder: Path, earlier: Sequence[Path], rules: str) -> Iterator[EarlierRows | None]:
    """The rows of the first of some earlier sides that was made by these rules; None where none was, or where it is damaged.

    `raw`: the raw table that is normalised now; `folder`: for temporary files.
    """
    facts = None
    for candidate in earlier:
        found = _read_facts(candidate)
        if found is not None and found.rules == rules:
            facts, side = found, ComparableLibrary(candidate, 0, 0)
            break
    if facts is None or not _is_whole(side, facts):
        yield None
        return
    with bounded_duckdb("256MB", 1, folder / ".spilled") as database:
        found_places = _places(database, raw, side).to_arrow_reader(10_000)
        rows = EarlierRows(side, facts, (place for batch in found_places for place in batch.column(0).to_pylist()))
        try:
            yield rows
        finally:
            rows.close()


def _places(database: duckdb.DuckDBPyConnection, raw: Path, side: ComparableLibrary) -> duckdb.DuckDBPyRelation:
    """For each row of a raw table, the row of the earlier side that is the same record.

    Records are the same by their SHA-256; by that without the queries of addresses where a service signs them anew for each response.
    """
    raw_rows, earlier = (
        f"read_parquet({literal(escaped(path))}, file_row_number = true)" for path in (raw, side.path(RECORDS))
    )
    database.execute(f"""
        CREATE TEMP TABLE earlier AS
            SELECT sha256, min(file_row_number) AS place FROM {earlier} GROUP BY sha256;
        CREATE TEMP TABLE others AS
            SELECT file_row_number AS number FROM {raw_rows} WHERE sha256 NOT IN (SELECT sha256 FROM earlier);
        CREATE TEMP TABLE unsigned AS
            SELECT file_row_number AS number, sha256(regexp_replace(payload, {literal(ADDRESS_QUERY)}, '\\1"', 'g')) AS sha256
            FROM {raw_rows} WHERE file_row_number IN (SELECT number FROM others);
    """)  # noqa: S608  addresses of ours, quoted
    return database.sql(f"""
        SELECT earlier.place
        FROM {raw_rows} AS raw
        LEFT JOIN unsigned ON unsigned.number = raw.file_row_number
        LEFT JOIN earlier ON earlier.sha256 = coalesce(unsigned.sha256, raw.sha256)
        ORDER BY raw.file_row_number
    """)  # noqa: S608  as above


def _is_whole(side: ComparableLibrary, facts: NormalisedFacts) -> bool:
    """Whether the tables are as they were written."""
    try:
        with storage_errors(side.folder):
            return (sha256_of(side.path(RECORDS)), sha256_of(side.path(KEYS))) == (
                facts.records_sha256,
                facts.keys_sha256,
            )
    except StorageError:
        return False

"""Rows of an earlier plan are taken over only where nothing could be different, and the result is the same as without them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.migration import earlier_rows
from pipelines.migration.earlier_rows import FACTS, MOST_GROUPS
from pipelines.migration.model.comparable import KEYS, RECORDS, STEP, ComparableLibrary
from pipelines.migration.model.plan import CONFLICTS, ISSUES, ROWS, Plan
from pipelines.migration.normalise import normalise
from pipelines.records import rules
from pipelines.records.additional_fields import ANY_VALUE
from pipelines.records.canonical_json import CanonicalReader
from pipelines.records.identifiers.verdicts import VERDICTS
from pipelines.records.residue import ADDRESS_QUERY, ADDRESSES, without_queries
from pipelines.records.tables.registry import raw_table
from pipelines.store.parquet import connect_duckdb, literal, table_writer
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.library_pair import LibraryPair
from tests.records.identifiers.test_real_library import library as real_records

Record = Mapping[str, Any]
UNREADABLE = b'{"id": 1, "title": "read again"}'
"""Stands for the JSON of a record that must not be read."""


@pytest.fixture(scope="module")
def library() -> list[Record]:
    """The real records, with ids, in several batches; some have no id or no identifier."""
    records = [{"id": number, **record} for number, record in enumerate(real_records(), start=1)]
    return [
        {"title": "without an id"},
        *records[: STEP + 500],
        *({"id": 10_000 + n} for n in range(STEP)),
        *records[-500:],
    ]


def write_raw(path: Path, records: Sequence[Record], payloads: Sequence[bytes] | None = None, rows: int = 3000) -> Path:
    """A raw table in row groups of so many `rows`. `payloads`: others than those of the records."""
    table = raw_table("publications")
    texts = [msgspec.json.encode(record) for record in records]
    columns = [
        pa.array([None] * len(texts), pa.int64()),
        pa.array([1] * len(texts), table.schema.field("page").type),
        pa.array([text.decode() for text in payloads or texts], pa.string()),
        pa.array([hashlib.sha256(text).hexdigest() for text in texts], pa.string()),
    ]
    whole = pa.Table.from_arrays(columns, schema=table.schema)
    with table_writer(path, table) as writer:
        for batch in whole.to_batches(max_chunksize=rows):
            writer.write(batch)
    return path


def content(side: ComparableLibrary) -> tuple[bytes, bytes, bytes, int, int]:
    """All that a side consists of."""
    files = (side.path(table).read_bytes() for table in (RECORDS, KEYS))
    return (*files, (side.folder / FACTS).read_bytes(), side.records, side.unfit)  # type: ignore[return-value]


def changed(records: Sequence[Record]) -> list[Record]:
    """A night later: some are edited, some are gone, some are new."""
    edited = [{**one, "title": f"Edited {place}"} if place % 50 == 7 else one for place, one in enumerate(records)]
    return [
        {"id": 90_001, "title": "New", "doi": "10.1000/182"},
        *edited[:30],
        *edited[40:],
        {"id": 90_002},
        {"id": None},
    ]


def signed_anew(records: Sequence[Record]) -> list[Record]:
    """A night later, the addresses of files have another signature."""
    return [
        {**one, "cover": {"id": "c", "url": f"https://a.example/c?sig={place}"}} for place, one in enumerate(records)
    ]


@pytest.mark.parametrize(
    "night",
    [list, changed, signed_anew, lambda records: records[::-1], lambda _records: []],
    ids=["same", "changed", "signed anew", "reversed", "empty"],
)
def test_the_result_is_the_same_with_and_without_earlier_rows(
    tmp_path: Path, library: list[Record], night: Callable[[Sequence[Record]], list[Record]]
) -> None:
    first = normalise(write_raw(tmp_path / "first", library), tmp_path / "a")
    later = write_raw(tmp_path / "later", night(library), rows=1700)
    again = normalise(later, tmp_path / "b", earlier=[first.folder])
    assert content(again) == content(normalise(later, tmp_path / "c"))


def test_rows_in_any_order_are_the_same(tmp_path: Path) -> None:
    """Of a list in another order, a batch needs more groups than are in memory; their other rows are made anew."""
    records = [{"id": number, "title": f"Title {number}", "doi": f"10.1000/{number}"} for number in range(1, 2001)]
    first = normalise(write_raw(tmp_path / "first", records, rows=100), tmp_path / "a")
    assert len(records) // 100 > MOST_GROUPS
    later = write_raw(tmp_path / "later", [record for start in range(100) for record in records[start::100]])
    again = normalise(later, tmp_path / "b", earlier=[first.folder])
    assert content(again) == content(normalise(later, tmp_path / "c"))


def test_a_record_that_is_listed_twice_keeps_its_own_keys(tmp_path: Path) -> None:
    records = [{"id": 1, "title": "A", "doi": f"10.1000/{number}"} for number in range(3)]
    first = normalise(write_raw(tmp_path / "first", records), tmp_path / "a")
    later = write_raw(tmp_path / "later", [records[2], records[0], {"id": 2}])
    again = normalise(later, tmp_path / "b", earlier=[first.folder])
    assert content(again) == content(normalise(later, tmp_path / "c"))


def test_only_what_changed_is_read(tmp_path: Path, library: list[Record]) -> None:
    """Where a record is the same by its SHA-256, its JSON is not read."""
    first = normalise(write_raw(tmp_path / "first", library), tmp_path / "a")
    night = changed(library)
    known = [msgspec.json.encode(record) for record in library if "id" in record]
    texts = [msgspec.json.encode(record) for record in night]
    unreadable = [UNREADABLE if text in {*known} else text for text in texts]
    assert unreadable.count(UNREADABLE) > 0.9 * len(library)
    again = normalise(write_raw(tmp_path / "later", night, unreadable), tmp_path / "b", earlier=[first.folder])
    assert content(again) == content(normalise(write_raw(tmp_path / "whole", night), tmp_path / "c"))


def test_addresses_that_are_signed_anew_are_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record is the same although the query of an address is another one; a query elsewhere is content."""
    records = [
        {
            "id": number,
            "title": f'"url":"https://a.example/{number}?title"',
            "homepage_url": f"https://a.example/?page={number}",
            "cover": {
                "id": f"c{number}",
                "url": "https://a.example/c?X-Amz-Signature=1",
                "thumb_url": "https://a.example/t?{}",
            },
            "assets": [
                {"id": number, "preview_url": "https://a.example/p?token=1"},
                {"id": 900 + number, "url": "p?1"},
            ],
        }
        for number in range(1, 20)
    ]
    signed = [
        msgspec.json.encode(one).replace(b"Signature=1", b"Signature=2").replace(b"token=1", b"") for one in records
    ]
    signed[3] = signed[3].replace(b"?title", b"?other")
    signed[4] = signed[4].replace(b"?page=", b"?p=")
    night = [msgspec.json.decode(one) for one in signed]
    first = normalise(write_raw(tmp_path / "first", records), tmp_path / "a")
    read = list[bytes]()
    monkeypatch.setattr(CanonicalReader, "read", lambda _reader, payload: read.append(payload))
    normalise(write_raw(tmp_path / "later", night), tmp_path / "b", earlier=[first.folder])
    assert read == signed[3:5]
    monkeypatch.undo()
    again = normalise(write_raw(tmp_path / "later", night), tmp_path / "b", earlier=[first.folder])
    assert content(again) == content(normalise(write_raw(tmp_path / "whole", night), tmp_path / "c"))


PIECES = st.lists(
    st.sampled_from(["?", '"', "\\", ",", "{", "url", '"url":"', "https://a.example/", "sig=1", "ä"])
).map("".join)
MEMBERS = st.sampled_from(["url", "thumb_url", "preview_url", "a_url", '"url', ',"url', "id"]) | PIECES
VALUES = st.recursive(
    PIECES | st.none(), lambda inner: st.lists(inner) | st.dictionaries(MEMBERS, inner), max_leaves=12
)


@given(st.dictionaries(MEMBERS, VALUES))
def test_queries_of_addresses_are_left_out_in_both_languages(record: Record) -> None:
    """Python names the earlier rows, DuckDB finds them. Nothing else in a record changes."""
    payload = msgspec.json.encode(record)
    with connect_duckdb() as database:
        sql = f"SELECT regexp_replace(?, {literal(ADDRESS_QUERY)}, '\\1\"', 'g')"
        [(left,)] = database.execute(sql, [payload.decode()]).fetchall()
    assert without_queries(payload) == left.encode()
    assert msgspec.json.decode(left) == unsigned(record)


def unsigned(value: Any) -> Any:
    """The same without these queries, unless JSON has to escape a character of the address."""
    if isinstance(value, list):
        return [unsigned(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: one.partition("?")[0]
        if key in ADDRESSES and isinstance(one, str) and not {'"', "\\"} & {*one}
        else unsigned(one)
        for key, one in value.items()
    }


OTHER_RULES: dict[str, dict[str, Any]] = {
    "first day": {"first_day": True},
    "additional field": {"additional": {"subtitle": ANY_VALUE}},
    "invalid identifiers": {"sent": sorted(VERDICTS)},
    "configured identifiers": {"kinds_text": '[["local",{"fields":["local"]}]]'},
}


@pytest.mark.parametrize("options", [OTHER_RULES[name] for name in OTHER_RULES if name != "configured identifiers"])
def test_rows_of_other_rules_are_not_taken_over(tmp_path: Path, library: list[Record], options: dict[str, Any]) -> None:
    raw = write_raw(tmp_path / "raw", library[:100])
    first = normalise(raw, tmp_path / "a")
    again = normalise(raw, tmp_path / "b", earlier=[first.folder], **options)
    assert content(again) == content(normalise(raw, tmp_path / "c", **options))
    assert read_again(tmp_path, library[:100], first, **options)


def test_each_setting_has_rules_of_its_own() -> None:
    usual: dict[str, Any] = {"kinds_text": "", "sent": (), "additional": {}, "first_day": False}
    found = {earlier_rows.rules_of(**{**usual, **options}) for options in ({}, *OTHER_RULES.values())}
    assert len(found) == 1 + len(OTHER_RULES)


def test_rows_of_other_code_are_not_taken_over(
    tmp_path: Path, library: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = normalise(write_raw(tmp_path / "first", library[:100]), tmp_path / "a")
    monkeypatch.setattr(rules, "_code", lambda _parts: "of another version")
    assert read_again(tmp_path, library[:100], first)


@pytest.mark.parametrize("damaged", [f"{RECORDS.name}.parquet", f"{KEYS.name}.parquet", FACTS])
@pytest.mark.parametrize("how", ["missing", "shorter", "altered"])
def test_damaged_rows_are_not_taken_over(tmp_path: Path, library: list[Record], damaged: str, how: str) -> None:
    first = normalise(write_raw(tmp_path / "first", library[:100]), tmp_path / "a")
    assert not read_again(tmp_path, library[:100], first)
    path = first.folder / damaged
    before = path.read_bytes()
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(before[:-1] if how == "shorter" else b"{" + before[:0:-1])
    assert read_again(tmp_path, library[:100], first)


def test_the_newest_rows_of_the_same_rules_count(tmp_path: Path, library: list[Record]) -> None:
    first = normalise(write_raw(tmp_path / "first", library[:100]), tmp_path / "a")
    other = normalise(write_raw(tmp_path / "other", library[:100]), tmp_path / "o", first_day=True)
    assert not read_again(tmp_path, library[:100], other, first)


def read_again(folder: Path, records: Sequence[Record], *earlier: ComparableLibrary, **options: Any) -> bool:
    """Whether the JSON of these records is read although there are earlier rows."""
    raw = write_raw(folder / "unreadable", records, [UNREADABLE if "id" in record else b"{}" for record in records])
    side = normalise(raw, folder / "again", earlier=[one.folder for one in earlier], **options)
    found = {row["title"] for row in _rows(side)}
    assert found == {'"read again"'} or '"read again"' not in found
    return found == {'"read again"'}


def _rows(side: ComparableLibrary) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(side.path(RECORDS)).to_pylist()
    return rows


def test_a_second_plan_is_the_same_as_one_without_a_first(pair: LibraryPair, snapshot: Snapshot) -> None:
    """What a plan has of its publications does not depend on the plans before it."""
    pair.call("POST", "publications", {"title": "Only there", "publishable_type": "Book"})
    plans = [pair.plan(snapshot), pair.plan(snapshot)]
    for path in pair.config.parent.glob(f"library-data/plans/*/*/{FACTS}"):
        path.unlink()
    plans.append(pair.plan(snapshot))
    first, second, without = map(parts, plans)
    assert first == second == without


def parts(plan: Plan) -> dict[str, bytes]:
    """The files of a plan that have neither its name nor its time."""
    sides = (side.path(table) for side in (plan.source, plan.target) for table in (RECORDS, KEYS))
    paths = (*sides, *map(plan.path, (ROWS, CONFLICTS, ISSUES)))
    return {path.relative_to(plan.folder).as_posix(): path.read_bytes() for path in paths}

"""Matching: the SQL of sql/migration against the same rules in plain Python. Several matches never make a new record (I8)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.migration.model.publication_type import STAGES
from pipelines.migration.plan.comparison import match

Keys = frozenset[tuple[str, str]]


@dataclass
class Side:
    """The records of one library: id → fingerprint, and id → identifiers."""

    fingerprints: dict[int, str | None] = field(default_factory=dict)
    keys: dict[int, Keys] = field(default_factory=dict)
    contents: dict[int, str] = field(default_factory=dict)


@dataclass
class Found:
    """Source id → target id and evidence; source id → candidates and reason."""

    matched: dict[int, tuple[int, str]]
    ambiguous: dict[int, tuple[tuple[int, ...], str]]


def matched(
    source: Side,
    target: Side,
    written: dict[int, int],
    remembered: dict[int, int],
    *,
    same_library: bool,
) -> Found:
    """The matches of the SQL."""
    with duckdb.connect() as database:
        for name, side in (("source", source), ("target", target)):
            database.execute(f"CREATE TABLE {name} (id VARCHAR)")
            database.execute(f"CREATE TABLE {name}_keys (id VARCHAR, stage VARCHAR, type VARCHAR, value VARCHAR)")
            _fill(database, name, [(number,) for number in side.keys])
            rows = [(one, "identifier", *key) for one, keys in side.keys.items() for key in sorted(keys)]
            rows += [(one, "content", "content", text) for one, text in side.contents.items()]
            rows += [(one, "fingerprint", "fingerprint", text) for one, text in side.fingerprints.items() if text]
            _fill(database, f"{name}_keys", rows)
        database.execute("CREATE TABLE written (source_id VARCHAR, target_id VARCHAR)")
        _fill(database, "written", list(written.items()))
        database.execute("CREATE TABLE remembered (source_id VARCHAR, target_id VARCHAR, matched_by VARCHAR)")
        _fill(database, "remembered", [(*pair, "name") for pair in remembered.items()])
        database.execute("CREATE TABLE decisions (source_id VARCHAR, decision VARCHAR, target_id VARCHAR)")
        database.execute("CREATE TABLE same_library AS SELECT ? AS yes", [same_library])
        match(database, STAGES)
        rows = database.execute("SELECT source_id, target_id, matched_by FROM matched").fetchall()
        ambiguous = database.execute("SELECT source_id, candidates, reason FROM ambiguous").fetchall()
    assert len({row[0] for row in rows}) == len({row[1] for row in rows}) == len(rows), "matched twice"
    assert len({row[0] for row in ambiguous}) == len(ambiguous)
    return Found(
        {int(s): (int(t), how) for s, t, how in rows},
        {int(s): (tuple(sorted(map(int, found))), why) for s, found, why in ambiguous},
    )


def _fill(database: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[object, ...]]) -> None:
    if rows:
        database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def in_python(  # noqa: C901, PLR0912  rule by rule
    source: Side, target: Side, written: dict[int, int], remembered: dict[int, int], *, same_library: bool
) -> Found:
    """The same rules, record by record."""
    found = Found({}, {})
    taken: set[int] = set()

    def take(one: int, other: int, how: str) -> None:
        found.matched[one] = (other, how)
        taken.add(other)

    not_written = {
        one: other
        for one, other in remembered.items()
        if one not in written and other not in written.values() and other in target.keys
    }
    known = {one: other for one, other in (written | not_written).items() if one in source.keys}
    for one, other in known.items():
        if other not in target.keys:
            found.ambiguous[one] = ((other,), "deleted_in_target")
        elif [*known.values()].count(other) > 1:
            found.ambiguous[one] = ((other,), "several_sources")
        else:
            take(one, other, "journal" if one in written else "name")
    if same_library:
        left = [one for one in source.keys if one in target.keys and one not in {*found.matched, *found.ambiguous}]
        found.ambiguous |= {one: ((one,), "several_sources") for one in left if one in taken}
        for one in left:
            if one not in taken:
                take(one, one, "id")
    for how in ("identifier", "content", "fingerprint"):
        free = [one for one in source.keys if one not in {*found.matched, *found.ambiguous}]
        wanted = {other for others, _why in found.ambiguous.values() for other in others}
        open_to = [one for one in target.keys if one not in taken]
        pairs = {(one, other) for one in free for other in open_to if _agree(source, one, target, other, how)}
        apart = {pair for pair in pairs if _disagree(source.keys[pair[0]], target.keys[pair[1]])}
        if how != "identifier":
            pairs -= apart
        of_source, of_target = defaultdict(set), defaultdict(set)
        for one, other in pairs:
            of_source[one].add(other)
            of_target[other].add(one)
        for one, others in of_source.items():
            sources = max(len(of_target[other]) + (other in wanted) for other in others)
            if len(others) == 1 and sources == 1 and (one, *others) not in apart:
                take(one, *others, how)
            else:
                why = (
                    "several_targets"
                    if len(others) > 1
                    else "several_sources"
                    if sources > 1
                    else "identifiers_disagree"
                )
                found.ambiguous[one] = (tuple(sorted(others)), why)
    gone = {one: other for one, other in remembered.items() if one not in written and other not in target.keys}
    for one, other in gone.items():
        if one in source.keys and one not in {*found.matched, *found.ambiguous}:
            found.ambiguous[one] = ((other,), "deleted_in_target")
    return found


def _agree(source: Side, one: int, target: Side, other: int, how: str) -> bool:
    if how == "identifier":
        return not source.keys[one].isdisjoint(target.keys[other])
    in_source = source.contents if how == "content" else source.fingerprints
    in_target = target.contents if how == "content" else target.fingerprints
    return in_source.get(one) is not None and in_source.get(one) == in_target.get(other)


def _disagree(one: Keys, other: Keys) -> bool:
    types = {kind for kind, _value in one} & {kind for kind, _value in other}
    return any({key for key in one if key[0] == kind}.isdisjoint(other) for kind in types)


_KEYS = st.frozensets(
    st.tuples(st.sampled_from(["doi", "isbn", "pmid"]), st.sampled_from(["a", "b", "c", "d", "e"])), max_size=3
)


@st.composite
def sides(draw: st.DrawFn, first: int) -> Side:
    side = Side()
    for number in range(first, first + draw(st.integers(0, 6))):
        side.fingerprints[number] = draw(st.sampled_from([None, "x", "y", "z"]))
        side.keys[number] = draw(_KEYS)
        if draw(st.booleans()):
            side.contents[number] = draw(st.sampled_from(["one", "two", "three"]))
    return side


@pytest.mark.long
@given(
    sides(1),
    sides(4),
    *[st.dictionaries(st.integers(1, 7), st.integers(4, 10), max_size=3) for _ in range(2)],
    st.booleans(),
)
def test_the_sql_agrees_with_plain_python(
    source: Side, target: Side, written: dict[int, int], remembered: dict[int, int], same_library: bool
) -> None:
    expected = in_python(source, target, written, remembered, same_library=same_library)
    assert matched(source, target, written, remembered, same_library=same_library) == expected

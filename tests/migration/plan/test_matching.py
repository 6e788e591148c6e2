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
class Matches:
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
) -> Matches:
    """The matches of the SQL."""
    with duckdb.connect() as database:
        for name, side in (("source", source), ("target", target)):
            database.execute(f"CREATE TABLE {name} (id VARCHAR)")
            database.execute(f"CREATE TABLE {name}_keys (id VARCHAR, stage VARCHAR, type VARCHAR, value VARCHAR)")
            _fill(database, name, [(number,) for number in side.keys])
            rows = [(number, "identifier", *key) for number, keys in side.keys.items() for key in sorted(keys)]
            rows += [(number, "content", "content", text) for number, text in side.contents.items()]
            rows += [(number, "fingerprint", "fingerprint", text) for number, text in side.fingerprints.items() if text]
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
    return Matches(
        {int(s): (int(t), how) for s, t, how in rows},
        {int(s): (tuple(sorted(map(int, candidates))), reason) for s, candidates, reason in ambiguous},
    )


def _fill(database: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[object, ...]]) -> None:
    if rows:
        database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


def in_python(  # noqa: C901, PLR0912  rule by rule
    source: Side, target: Side, written: dict[int, int], remembered: dict[int, int], *, same_library: bool
) -> Matches:
    """The same rules, record by record."""
    matches = Matches({}, {})
    taken: set[int] = set()

    def take(source_id: int, target_id: int, how: str) -> None:
        matches.matched[source_id] = (target_id, how)
        taken.add(target_id)

    not_written = {
        source_id: target_id
        for source_id, target_id in remembered.items()
        if source_id not in written and target_id not in written.values() and target_id in target.keys
    }
    known_matches = {
        source_id: target_id for source_id, target_id in (written | not_written).items() if source_id in source.keys
    }
    for source_id, target_id in known_matches.items():
        if target_id not in target.keys:
            matches.ambiguous[source_id] = ((target_id,), "deleted_in_target")
        elif [*known_matches.values()].count(target_id) > 1:
            matches.ambiguous[source_id] = ((target_id,), "several_sources")
        else:
            take(source_id, target_id, "journal" if source_id in written else "name")
    if same_library:
        left = [
            number
            for number in source.keys
            if number in target.keys and number not in {*matches.matched, *matches.ambiguous}
        ]
        matches.ambiguous |= {number: ((number,), "several_sources") for number in left if number in taken}
        for source_id in left:
            if source_id not in taken:
                take(source_id, source_id, "id")
    for how in ("identifier", "content", "fingerprint"):
        free = [source_id for source_id in source.keys if source_id not in {*matches.matched, *matches.ambiguous}]
        candidates = {target_id for target_ids, _why in matches.ambiguous.values() for target_id in target_ids}
        open_to = [target_id for target_id in target.keys if target_id not in taken]
        pairs = {
            (source_id, target_id)
            for source_id in free
            for target_id in open_to
            if _agree(source, source_id, target, target_id, how)
        }
        apart = {pair for pair in pairs if _disagree(source.keys[pair[0]], target.keys[pair[1]])}
        if how != "identifier":
            pairs -= apart
        of_source, of_target = defaultdict(set), defaultdict(set)
        for source_id, target_id in pairs:
            of_source[source_id].add(target_id)
            of_target[target_id].add(source_id)
        for source_id, target_ids in of_source.items():
            sources = max(len(of_target[target_id]) + (target_id in candidates) for target_id in target_ids)
            if len(target_ids) == 1 and sources == 1 and (source_id, *target_ids) not in apart:
                take(source_id, *target_ids, how)
            else:
                reason = (
                    "several_targets"
                    if len(target_ids) > 1
                    else "several_sources"
                    if sources > 1
                    else "identifiers_disagree"
                )
                matches.ambiguous[source_id] = (tuple(sorted(target_ids)), reason)
    gone = {
        source_id: target_id
        for source_id, target_id in remembered.items()
        if source_id not in written and target_id not in target.keys
    }
    for source_id, target_id in gone.items():
        if source_id in source.keys and source_id not in {*matches.matched, *matches.ambiguous}:
            matches.ambiguous[source_id] = ((target_id,), "deleted_in_target")
    return matches


def _agree(source: Side, source_id: int, target: Side, target_id: int, how: str) -> bool:
    if how == "identifier":
        return not source.keys[source_id].isdisjoint(target.keys[target_id])
    in_source = source.contents if how == "content" else source.fingerprints
    in_target = target.contents if how == "content" else target.fingerprints
    return in_source.get(source_id) is not None and in_source.get(source_id) == in_target.get(target_id)


def _disagree(source_keys: Keys, target_keys: Keys) -> bool:
    types = {kind for kind, _value in source_keys} & {kind for kind, _value in target_keys}
    return any({key for key in source_keys if key[0] == kind}.isdisjoint(target_keys) for kind in types)


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

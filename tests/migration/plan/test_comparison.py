"""Two libraries compared, whichever resource it is: the real publications of both versions, and others that are made up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.migration.model import comparison_database
from pipelines.migration.model.actions import Action, Decision
from pipelines.migration.model.comparable import KEYS, RECORDS, Side, digest
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind
from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.model.resource_types import RESOURCE_TYPES, ResourceType
from pipelines.migration.plan.comparison import compare, write_side
from pipelines.migration.plan.conflicts import RecordDecision
from pipelines.migration.plan.field_merge import CONFLICTS, FieldVerdict
from pipelines.migration.plan.record_rows import compared_fields, outcome_of
from pipelines.migration.plan.target_ids import TargetIds
from pipelines.records.forms import form_of
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.service.clock import SystemClock
from pipelines.state.local import LocalState
from pipelines.store.encryption import PersonalKey
from pipelines.store.parquet import bounded_duckdb
from tests.records.identifiers.test_real_library import library as real_records

SHIFT = 100_000
"""The difference between the ids of both libraries."""

PUBLICATIONS = publication_type(STANDARD_KINDS)
TYPES = {"publications": PUBLICATIONS, **RESOURCE_TYPES}
KEY = PersonalKey(bytes(range(32)))

Record = dict[str, Any]


class Result(NamedTuple):
    """What becomes of a record."""

    action: Action
    target_id: int | None
    matched_by: str | None
    patched: list[str]
    conflicts: list[str]
    reason: str | None
    candidates: list[int]


def migrated(record: Record, shift: int = SHIFT) -> Record:
    """A record of version 3 after its migration."""
    return {**form_of(record).fields, "id": record["id"] + shift}


def compared(  # noqa: PLR0917  both sides, and what is known of them
    folder: Path,
    resource: ResourceType,
    source_records: Iterable[Mapping[str, Any]],
    target_records: Iterable[Mapping[str, Any]],
    written: Mapping[int, int] | None = None,
    decisions: Sequence[tuple[int, Decision, int | None]] = (),
    *,
    same_library: bool = False,
) -> dict[int, Result]:
    """Record of the source → what becomes of it."""
    folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(LocalState(folder / "state.db"), "a", "b", SystemClock())
    for source_id, target_id in (written or {}).items():
        number = journal.intend("earlier", resource.resource, source_id, WriteKind.CREATE)
        journal.done(number, target_id=target_id)
    made = [RecordDecision(resource.resource, *decision, "") for decision in decisions]
    decided = {(decision.resource, decision.source_id): decision for decision in made}
    key = KEY if resource.personal else None
    source, target = (Side(folder / name, resource.resource, key) for name in ("source", "target"))
    with TargetIds(same_library=same_library) as ids:
        write_side(source, source_records, resource, find_target=ids.target_of)
        write_side(target, target_records, resource.of_target)
        fields = compared_fields(resource, ids)
        with comparison_database.comparison_database(folder) as database:
            matches = compare(
                database,
                resource,
                source,
                target,
                journal=journal,
                find_target=ids.target_of,
                decisions=decided,
                same_library=same_library,
            )
            results = {}
            for match in matches:
                outcome = outcome_of(resource, match, fields, overwrite=False)
                patched, conflicts = outcome.with_verdict(FieldVerdict.PATCH), outcome.with_verdict(*CONFLICTS)
                values = (outcome.action, match.target_id, match.matched_by, patched, conflicts, outcome.reason)
                results[match.source_id] = Result(*values, match.candidates)
    journal.close()
    return results


@pytest.fixture(scope="module")
def library() -> list[Record]:
    return [{"id": number, **record} for number, record in enumerate(real_records(), start=1)][::5]


@pytest.mark.long
def test_another_library_with_all_records_needs_nothing(tmp_path: Path, library: list[Record]) -> None:
    """I8: no record is created again. Every match is right; an ambiguous record, or one without any evidence, is not guessed."""
    results = compared(tmp_path, PUBLICATIONS, library, map(migrated, library))
    matched = {number: result for number, result in results.items() if result.target_id is not None}
    assert {result.action for result in matched.values()} == {Action.UNCHANGED}
    assert all(result.target_id == number + SHIFT for number, result in matched.items())
    assert {result.action for number, result in results.items() if number not in matched} <= {Action.CONFLICT}
    assert len(matched) > 0.95 * len(library)


@pytest.mark.parametrize("source", [{"published_on": "1999"}, {"assets": [{"id": 5, "name": "scan.pdf"}]}])
def test_a_record_without_anything_to_compare_is_no_other_one(tmp_path: Path, source: Record) -> None:
    [result] = compared(tmp_path, PUBLICATIONS, [{"id": 1, **source}], [{"id": 9, "assets": []}]).values()
    assert (result.target_id, result.candidates) == (None, [])


@pytest.mark.long
def test_references_count_within_one_library_only(tmp_path: Path) -> None:
    """service.md#references: ids of contributors and organizations are valid in their own library."""
    source = {"id": 1, "title": "A", "doi": "10.1000/182", "contributor": {"id": 5}}
    target = {"id": 1, "title": "A", "identifiers": [{"type": "doi", "value": "10.1000/182"}], "contributor": {"id": 9}}
    for same_library, action in ((False, Action.UNCHANGED), (True, Action.CONFLICT)):
        [result] = compared(tmp_path / action, PUBLICATIONS, [source], [target], same_library=same_library).values()
        assert result.action == action


def test_what_the_target_has_in_a_form_that_is_not_read_is_not_overwritten(tmp_path: Path) -> None:
    source = {"id": 1, "title": "A", "doi": "10.1000/182", "published_on": "2020-01-01"}
    target = {"id": 1, "title": "A", "identifiers": [{"type": "doi", "value": "10.1000/182"}]}
    for date, patched, conflicts in ((None, ["published_on"], []), ("around 2020", [], ["published_on"])):
        records = [target | {"published_on": date}]
        [result] = compared(tmp_path / str(date), PUBLICATIONS, [source], records).values()
        assert (result.patched, result.conflicts) == (patched, conflicts)


def test_records_without_an_id_are_left_out(tmp_path: Path) -> None:
    side = Side(tmp_path, "publications")
    write_side(side, [{"title": "without an id"}, {"(record)": 1}, {"id": "7"}], PUBLICATIONS)
    assert side.ids_among([7, 8]) == {7}


# ---- every resource alike

NAMED = {
    "publications": lambda number, name: {
        "id": number,
        "title": name,
        "published_on": "2020-01-01",
        "authors": [{"name": "A"}],
    },
    "users": lambda number, name: {"id": number, "email": f"{name}@library.example", "name": name},
    "collections": lambda number, name: {"id": number, "name": name},
    "authorities": lambda number, name: {"id": number, "name": name, "kind": "person"},
    "tasks": lambda number, name: {"id": number, "title": name},
}
"""Resource → a record that is matched by this name, in any case."""

WORDS = st.sampled_from(["ada", "Ada", "bea", "cleo"])


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    resource=st.sampled_from([*NAMED]),
    source_names=st.dictionaries(st.integers(1, 6), WORDS, max_size=5),
    target_names=st.dictionaries(st.integers(4, 9), WORDS, max_size=5),
    written=st.dictionaries(st.integers(1, 6), st.integers(4, 12), max_size=3),
    decided=st.dictionaries(
        st.integers(1, 6),
        st.tuples(st.sampled_from([Decision.MATCH, Decision.SOURCE, Decision.TARGET]), st.integers(4, 12)),
        max_size=2,
    ),
    same_library=st.booleans(),
)
def test_no_two_records_become_one_and_no_decision_is_ignored(  # noqa: PLR0917  what is known of both sides
    tmp_path_factory: pytest.TempPathFactory,
    resource: str,
    source_names: dict[int, str],
    target_names: dict[int, str],
    written: dict[int, int],
    decided: dict[int, tuple[Decision, int]],
    same_library: bool,
) -> None:
    """I8: unless a person said so for both, which conflicts.tsv does not allow."""
    decided = {
        source_id: decision
        for source_id, decision in decided.items()
        if [number for _decision, number in decided.values()].count(decision[1]) == 1
    }
    results = compared(
        tmp_path_factory.mktemp("compared"),
        TYPES[resource],
        [NAMED[resource](number, name) for number, name in source_names.items()],
        [NAMED[resource](number, name) for number, name in target_names.items()],
        written,
        [(number, *decision) for number, decision in decided.items()],
        same_library=same_library,
    )
    assert [*results] == [*source_names]
    taken = [result.target_id for result in results.values() if result.target_id is not None]
    assert len(taken) == len({*taken}), "two records became one"
    for number, result in results.items():
        if number in decided:
            target_id = decided[number][1]
            expected = (target_id, None) if target_id in target_names else (None, "decided_is_missing")
            assert (result.target_id, result.reason if result.target_id is None else None) == expected
        elif number in written and written[number] not in target_names:
            assert result.reason == "deleted_in_target"
        fits = [
            candidate
            for candidate, name in target_names.items()
            if name.casefold() == source_names[number].casefold() and candidate not in taken
        ]
        assert result.action != Action.CREATE or not fits, "a record that fits makes it no new one"


def test_the_name_as_it_is_written_counts_before_the_name_in_any_case(tmp_path: Path) -> None:
    names = {1: "Maps", 2: "maps", 3: "Plans", 4: "Other"}, {7: "MAPS", 8: "maps", 9: "plans"}
    source, target = ([NAMED["collections"](number, name) for number, name in side.items()] for side in names)
    results = compared(tmp_path, TYPES["collections"], source, target)
    assert {number: result.target_id for number, result in results.items()} == {1: 7, 2: 8, 3: 9, 4: None}


def test_nothing_readable_of_persons_is_on_disk(tmp_path: Path) -> None:
    person = {"id": 1, "email": "ada@library.example", "name": "Ada Lovelace"}
    results = compared(tmp_path, TYPES["users"], [person], [{**person, "id": 7}])
    assert results[1].target_id == 7
    side = Side(tmp_path / "source", "users", KEY)
    assert side.forms([1])[1].values["name"] == "Ada Lovelace"
    for table in (RECORDS, KEYS):
        content = side.path(table).read_bytes()
        assert not [
            text for text in ("ada@", "Lovelace", digest('"ada@library.example"') or "") if text.encode() in content
        ]


@pytest.mark.long
@pytest.mark.parametrize("resource", ["publications", "collections"])
def test_nothing_is_quadratic_in_names_that_all_share(tmp_path: Path, resource: str) -> None:
    """Twenty thousand records of one name on each side: each is asked about, and with a few candidates."""
    many = 20_000
    source, target = ((NAMED[resource](first + number, "ada") for number in range(many)) for first in (1, 1_000_001))
    results = compared(tmp_path, TYPES[resource], source, target)
    assert {result.reason for result in results.values()} == {"several_targets"}
    assert {len(result.candidates) for result in results.values()} == {10}


RECORDS_OF_200_MB = 40_000


@pytest.mark.long
def test_rows_that_are_larger_than_the_memory_come_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I11: a database of a million records a side has four times as much as it may hold in memory."""
    monkeypatch.setattr(
        comparison_database,
        "bounded_duckdb",
        lambda _memory, threads, spilled: bounded_duckdb("96MB", threads, spilled),
    )
    source, target = (
        ({"id": number, "name": f"N{number}", "description": f"{number} " * 800} for number in numbers)
        for numbers in (range(RECORDS_OF_200_MB), range(RECORDS_OF_200_MB - 1, -1, -1))
    )
    results = compared(tmp_path, RESOURCE_TYPES["collections"], source, target)
    assert [(number, result.action, result.target_id) for number, result in results.items()] == [
        (number, Action.UNCHANGED, number) for number in range(RECORDS_OF_200_MB)
    ]

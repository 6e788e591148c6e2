"""Both sides of another resource in a file: which records are the same, and where references lead (I8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipelines.migration.model.actions import Action, Decision
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import WriteKind
from pipelines.migration.model.resource_types import RESOURCE_TYPES
from pipelines.migration.plan.conflicts import RecordDecision
from pipelines.migration.plan.match_store import MatchStore, PreparedRecord
from pipelines.service.clock import SystemClock
from pipelines.store.encryption import PersonalKey
from tests.state_places import Place

USERS, COLLECTIONS = RESOURCE_TYPES["users"], RESOURCE_TYPES["collections"]
PERSON = {"email": "ada@library.example", "name": "Ada"}

SOURCES, TARGETS = "several_sources", "several_targets"

Sides = tuple[Mapping[int, dict[str, Any]], Mapping[int, dict[str, Any]]]


def prepared(records: Mapping[int, dict[str, Any]]) -> Iterator[tuple[int, PreparedRecord]]:
    for number, values in records.items():
        yield number, PreparedRecord(values=values, references={}, unsent={}, reason=None)


def named(**names: str) -> dict[int, dict[str, Any]]:
    """Collections by id: `named(n1="Maps")`."""
    return {int(number[1:]): {"name": name} for number, name in names.items()}


@pytest.fixture
def journal(place: Place) -> Iterator[Journal]:
    journal = Journal(place.state(clock := SystemClock()), "https://a", "https://b", clock)
    yield journal
    journal.close()


Matches = Callable[..., dict[int, tuple[int | None, str | None, list[int]]]]


@pytest.fixture
def matches(tmp_path: Path, journal: Journal) -> Matches:
    """Loads one pair of sides after the other; returns those of the last one: id → (its match, by what or why not, candidates)."""

    def match(
        *loaded: Sides, same_library: bool = False, decisions: Sequence[RecordDecision] = ()
    ) -> dict[int, tuple[int | None, str | None, list[int]]]:
        with MatchStore(tmp_path / "match.sqlite", same_library=same_library) as store:
            for source, target in loaded:
                assert store.load(COLLECTIONS, prepared(source), target.items()) == len(source)
                store.match(COLLECTIONS, journal, {decision.source_id: decision for decision in decisions})
            return {
                found.source_id: (found.target_id, found.matched_by or found.reason, found.candidates)
                for found in store.results(COLLECTIONS)
            }

    return match


def test_the_name_as_it_is_written_counts_before_the_name_in_any_case(matches: Matches) -> None:
    found = matches((named(n1="Maps", n2="maps", n3="Plans", n4="Other"), named(n7="MAPS", n8="maps", n9="plans")))
    assert found == {1: (7, "name", []), 2: (8, "name", []), 3: (9, "name", []), 4: (None, None, [])}


def test_several_records_of_a_name_are_left_to_a_person(matches: Matches) -> None:
    found = matches((named(n1="Maps", n2="Plans", n3="Plans"), named(n7="Maps", n8="Maps", n9="Plans")))
    assert found == {1: (None, TARGETS, [7, 8]), 2: (None, SOURCES, [9]), 3: (None, SOURCES, [9])}


def test_a_record_that_waits_for_a_person_counts_among_those_that_fit(matches: Matches) -> None:
    found = matches((named(n1="Maps", n2="Maps", n3="maps"), named(n7="MAPS", n8="Plans")))
    assert found == dict.fromkeys((1, 2, 3), (None, SOURCES, [7]))
    found = matches((named(n1="Maps", n2="Maps", n3="maps"), named(n7="Maps")))
    assert found == dict.fromkeys((1, 2, 3), (None, SOURCES, [7])), (
        "1 and 2 fit exactly, and 3 does not get it because they wait"
    )


def test_what_the_journal_knows_and_ids_of_one_library_count_before_names(matches: Matches, journal: Journal) -> None:
    number = journal.intend("plan", "collections", 1, WriteKind.CREATE)
    journal.done(number, target_id=8)
    sides = named(n1="Maps", n2="Plans"), named(n2="Renamed", n7="Maps", n8="Renamed, too")
    assert {number: found[0] for number, found in matches(sides).items()} == {1: 8, 2: None}
    assert {number: found[0] for number, found in matches(sides, same_library=True).items()} == {1: 8, 2: 2}


def decided(source_id: int, decision: Decision, target_id: int | None = None) -> RecordDecision:
    return RecordDecision("collections", source_id, decision, target_id, "")


def test_a_decision_gives_the_record_of_another_one_away_only_where_a_person_decides_about_that_one_too(
    matches: Matches, journal: Journal
) -> None:
    """I8: an earlier plan wrote 2 of the source to 10, and now a person says that 10 is 1 of the source."""
    journal.done(journal.intend("plan", "collections", 2, WriteKind.CREATE), target_id=10)
    sides = named(n1="Maps", n2="Plans"), named(n10="Plans", n11="plans")
    match = decided(1, Decision.MATCH, 10)
    assert matches(sides, decisions=[match]) == {1: (10, "decision", []), 2: (None, SOURCES, [10])}
    for decision in (Decision.SKIP, Decision.CREATE):
        assert matches(sides, decisions=[match, decided(2, decision)]) == {1: (10, "decision", []), 2: (None, None, [])}


def test_records_that_were_written_to_one_are_asked_about_once_the_decision_is_withdrawn(
    matches: Matches, journal: Journal
) -> None:
    for number in (1, 2):
        journal.done(journal.intend("plan", "collections", number, WriteKind.PATCH), target_id=10)
    sides = named(n1="Maps", n2="Plans"), named(n10="Plans")
    assert matches(sides) == dict.fromkeys((1, 2), (None, SOURCES, [10]))


def test_in_one_library_a_record_that_a_person_gave_away_is_no_new_one(matches: Matches) -> None:
    found = matches(
        (named(n1="Maps", n2="Plans"), named(n2="Plans")), same_library=True, decisions=[decided(1, Decision.SOURCE, 2)]
    )
    assert found == {1: (2, "decision", []), 2: (None, SOURCES, [2])}


@pytest.mark.parametrize("decision", [Decision.MATCH, Decision.SOURCE, Decision.TARGET, Decision.MERGE])
def test_a_decision_for_a_record_that_does_not_exist_is_a_conflict(
    matches: Matches, journal: Journal, decision: Decision
) -> None:
    """Neither the record of the same name nor the one of an earlier plan is taken for it; a record that the source lacks takes nothing."""
    journal.done(journal.intend("plan", "collections", 2, WriteKind.CREATE), target_id=10)
    journal.done(journal.intend("plan", "collections", 3, WriteKind.CREATE), target_id=11)
    sides = named(n1="Maps", n2="Plans", n3="Poems", n4="Plays"), named(n7="Maps", n10="Plans", n12="Plays")
    decisions = [*(decided(number, decision, 99) for number in (1, 2, 3)), decided(5, decision, 12)]
    assert matches(sides, decisions=decisions) == {
        **dict.fromkeys((1, 2, 3), (None, "decided_is_missing", [])),
        4: (12, "name", []),
    }


def test_nothing_is_left_of_the_resource_before(matches: Matches) -> None:
    """Its ids are those of other records."""
    earlier = named(n1="Maps", n2="Plans"), named(n7="Maps", n8="Plans", n9="Plans")
    found = matches(earlier, (named(n1="Poems", n2="Plays"), named(n7="Essays")))
    assert found == {1: (None, None, []), 2: (None, None, [])}


@pytest.mark.parametrize("same_library", [False, True])
def test_references_lead_to_what_earlier_rows_match_or_create(tmp_path: Path, *, same_library: bool) -> None:
    actions = [Action.CREATE, Action.PATCH, Action.UNCHANGED, Action.CONFLICT, Action.CONFLICT, Action.QUARANTINED]
    columns = {
        "resource": ["users"] * 6,
        "source_id": [1, 2, 3, 4, 5, 6],
        "target_id": [None, 12, 13, 14, None, None],
        "action": [str(action) for action in actions],
    }
    with MatchStore(tmp_path / "match.sqlite", same_library=same_library) as store:
        store.note(pa.table(columns))
        found = [store.target_of("users", number) for number in range(1, 7)]
        assert found == [(True, None), (True, 12), (True, 13), (True, 14), (False, None), (False, None)]
        assert store.target_of("locations", 1) == ((True, 1) if same_library else (False, None))


def test_persons_are_on_disk_only_encrypted(tmp_path: Path, journal: Journal) -> None:
    path = tmp_path / "match.sqlite"
    with MatchStore(path, same_library=False, key=PersonalKey(bytes(range(32)))) as store:
        store.load(USERS, prepared({1: PERSON}), [(7, PERSON)])
        store.match(USERS, journal, {})
        [found] = store.results(USERS)
        assert (found.target_id, found.source.values, found.target) == (7, PERSON, PERSON)
        assert not [text for text in PERSON.values() if text.encode() in path.read_bytes()]
        store.load(COLLECTIONS, prepared(named(n1="Maps")), named(n7="Maps").items())
        store.match(COLLECTIONS, journal, {})
        [found] = store.results(COLLECTIONS)
        assert (found.target_id, found.target) == (7, {"name": "Maps"}), "other resources are as they are"
    assert not path.exists()

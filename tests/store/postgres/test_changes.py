"""A night whose changes alone are written: every view shows what a whole load of each night would show."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pipelines.backup.database import stage_again
from pipelines.errors import TemporaryError
from pipelines.records import rules
from pipelines.store.encryption import PersonalKey, PersonalKeys
from pipelines.store.postgres import changes
from pipelines.store.postgres.loading import Database
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.postgres import database
from tests.store.postgres.comparison import assert_same_views
from tests.store.postgres.conftest import Ask, asking, library, library_snapshot
from tests.store.snapshot_factory import STARTED_AT

Records = dict[str, dict[int, dict[str, Any]]]
"""Resource → id → record."""


def publication(number: int, version: int, signed: int = 0) -> dict[str, Any]:
    """A record whose own row and lists depend on its version. `signed`: when the address of its cover was."""
    url = f"https://files.example.org/c?X-Amz-Signature={signed}"
    return {
        "id": number,
        "title": f"Title {number}, {version // 4}",
        "isbn": "978-0-306-40615-7" if version % 2 else "",
        "doi": f"10.5555/{number}.{version // 3}",
        "authors": [{"name": f"Author {place + version // 2}", "type": "person"} for place in range(version % 3)],
        "categories": [{"id": place, "name": f"Category {place}"} for place in range((version + number) % 3)],
        "cover": {"id": f"c{version % 5}", "storage": "store", "metadata": {"size": version}, "url": url}
        if version % 4
        else None,
        "shelf_mark": f"{version}\0" if version % 7 == 1 else version,
    }


def others(numbers: Mapping[int, int], signed: int = 0) -> Records:
    """Records of other resources that refer to publications, to each other, and now and then to one that is not there."""
    return {
        "users": {
            one: {"id": one, "name": f"N{v}", "roles": ["admin", "reader"][: v % 3], "avatar_url": f"?sig={signed}"}
            for one, v in numbers.items()
        },
        "locations": {one: {"id": one, "name": f"Shelf {v // 2}"} for one, v in numbers.items()},
        "hard_copies": {
            one: {"id": one, "publication": {"id": one + (100 if v % 11 == 10 else 0)}, "location": {"id": one}}
            for one, v in numbers.items()
        },
        "tasks": {
            one: {"id": f"A-{one}" if v % 6 == 5 else one, "title": f"T{v}", "assignee_id": one, "own": v % 3}
            for one, v in numbers.items()
        },
    }


def payloads(records: Records) -> dict[str, list[str]]:
    return {resource: [json.dumps(one) for _, one in sorted(found.items())] for resource, found in records.items()}


NUMBERS = st.dictionaries(st.integers(1, 6), st.integers(0, 12), min_size=1)
"""Id → version of the records of a night."""


NIGHTS = st.lists(
    st.tuples(
        NUMBERS,
        st.sampled_from([True, True, False]),
        st.sampled_from(["", "", "", "later", "again", "whole", "prune"]),
        st.integers(0, 2),
    ),
    min_size=2,
    max_size=6,
)
"""Of each night the versions, whether the other resources are backed up, too, what happens besides, and how addresses are signed."""


@settings(
    max_examples=12 if "CI" in os.environ else 4,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    nights=NIGHTS,
    pruned=st.integers(0, 5),
    few=st.sampled_from([1, 3, changes.FEW]),
    compared=st.sampled_from([changes.COMPARED, 0.5, 1]),
)
def test_every_night_is_what_its_files_say(  # noqa: PLR0917  two fixtures, and what hypothesis gives
    server: str,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    nights: list[tuple[dict[int, int], bool, str, int]],
    pruned: int,
    few: int,
    compared: float,
) -> None:
    """Nights of any content, of all resources or of publications alone, in any order, loaded again, pruned, or loaded whole.

    `compared`: the share of records that differ from which their rows are compared; `few`: changed records that are written alone.
    """
    monkeypatch.setattr(changes, "FEW", few)
    monkeypatch.setattr(changes, "COMPARED", compared)
    data = DataFolder(tmp_path_factory.mktemp("nights") / "data")
    with database(server) as address, psycopg.connect(address, autocommit=True) as connection:
        ask = asking(connection)
        postgres, later, loaded = Database(address), list[Snapshot](), list[Snapshot]()
        for day, (versions, complete, what, signed) in enumerate(nights):
            found = {one: publication(one, version, signed) for one, version in versions.items()}
            records: Records = {"publications": found} | (others(versions, signed) if complete else {})
            snapshot = library_snapshot(data, payloads(records), day=day)
            if what == "later":
                later.append(snapshot)
                continue
            if what == "whole" and loaded:
                ask("UPDATE old.loaded_tables SET rules = 'others'")
            if what == "prune" and loaded:
                shutil.rmtree(loaded.pop(pruned % len(loaded)).path)
            postgres.load(data, snapshot)
            loaded.append(snapshot)
            if what == "again":
                postgres.load(data, loaded[pruned % len(loaded)])
            if not later:
                assert_same_views(data, ask, *instants(day))
        for snapshot in later:
            postgres.load(data, snapshot)
        if later:
            assert_same_views(data, ask, *instants(len(nights)))


def instants(day: int) -> list[datetime]:
    """An hour after the last snapshot, and after the one before."""
    return [STARTED_AT + timedelta(days=one, hours=1) for one in (day, day - 1)]


def versions(*numbers: int) -> dict[str, list[str]]:
    """Publications of these versions, by place."""
    return payloads({"publications": {one: publication(one, version) for one, version in enumerate(numbers, start=1)}})


def test_only_rows_that_differ_are_written(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """A changed title is one row; its authors stay as they are. Unchanged rows are not touched."""
    records = library(4)
    assert postgres.load(data, library_snapshot(data, records)).written is None
    before = dict(ask("SELECT id, ctid::text FROM old.publications_20261120t020000z"))
    changed = {"publications": [record.replace('"Title 2"', '"Another"') for record in records["publications"][:3]]}
    loaded = postgres.load(data, library_snapshot(data, changed, day=1))
    assert loaded.tables["publication_authors"] == 6
    assert loaded.written == {
        "publications": 2,
        "publication_identifiers": 2,
        "publication_authors": 2,
        "publication_categories": 1,
        "publication_files": 1,
    }
    after = dict(ask("SELECT id, ctid::text FROM old.publications_20261120t020000z"))
    assert {one for one, place in before.items() if after.get(one) != place} == {2, 4}
    assert ask("SELECT id, snapshot, until FROM old.publications_20261120t020000z_past ORDER BY id") == [
        (2, "20261120T020000Z", "20261121T020000Z"),
        (4, "20261120T020000Z", "20261121T020000Z"),
    ]
    nothing = postgres.load(data, library_snapshot(data, changed, day=2))
    assert set((nothing.written or {}).values()) == {0}
    assert_same_views(data, ask, *instants(2))


@pytest.mark.parametrize("order", list(permutations(([1, "A-1"], [1], [1, "A-2"]))), ids=str)
def test_records_with_a_text_for_an_id_are_there(
    data: DataFolder, postgres: Database, ask: Ask, order: tuple[list[int | str], ...]
) -> None:
    """They have no number, by which changes would be found: such a night is loaded whole."""
    for day, ids in enumerate(order):
        tasks = [json.dumps({"id": one, "title": f"Task {one}"}) for one in ids]
        postgres.load(data, library_snapshot(data, {"tasks": tasks}, day=day))
        titles = ask("SELECT title FROM tasks ORDER BY title")
        assert titles == sorted((f"Task {one}",) for one in ids)
    assert_same_views(data, ask, *instants(2))


def test_history_takes_the_space_of_its_changes(data: DataFolder, postgres: Database, address: str) -> None:
    """`stage --history` writes what a nightly load of each would: one whole table, and the rows that ended."""
    nights = [library_snapshot(data, versions(*[4] * 50, day), day=day) for day in range(6)]
    loads = stage_again(postgres, data, "old", history=True)
    assert [load.snapshot for load in loads] == [night.manifest.snapshot for night in nights]
    assert [load.written is None for load in loads] == [True, *[False] * 5]
    assert rows_of(address) == 51 + 5


@pytest.mark.long
def test_history_before_a_night_that_is_there_takes_the_space_of_its_changes(
    data: DataFolder, postgres: Database, address: str, ask: Ask
) -> None:
    """The newest night was loaded first, as after the first backup with a database: the others are one whole table more."""
    nights = [library_snapshot(data, versions(*[4] * 50, day), day=day) for day in range(6)]
    stage_again(postgres, data, "old")
    loads = stage_again(postgres, data, "old", history=True)
    assert [load.snapshot for load in loads] == [night.manifest.snapshot for night in nights[:-1]]
    assert [load.written is None for load in loads] == [True, *[False] * 4]
    assert rows_of(address) == 51 + 51 + 4
    night = library_snapshot(data, versions(*[4] * 50, 6), day=6)
    assert postgres.load(data, night).written is not None
    assert_same_views(data, ask, *instants(3), *instants(6))
    shutil.rmtree(nights[2].path)
    postgres.load(data, library_snapshot(data, versions(*[5] * 51), day=7))
    assert_same_views(data, ask, *instants(3), *instants(7))


def rows_of(address: str) -> int:
    """The rows of all tables of publications, of any night."""
    with psycopg.connect(address) as connection:
        connection.execute("ANALYZE")
        rows = "SELECT sum(reltuples)::int FROM pg_class WHERE relnamespace = 'old'::regnamespace"
        found = connection.execute(f"{rows} AND relname ~ '^publications_2026' AND relkind = 'r'").fetchone()
    return found[0] if found else 0


def test_rows_of_pruned_nights_go(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """Rows that no night has any more take no space; those that a night between still has stay."""
    nights = [library_snapshot(data, versions(*[day] * 3), day=day) for day in range(5)]
    for night in nights:
        postgres.load(data, night)
    past = "SELECT count(*) FROM old.publications_20261120t020000z_past"
    assert ask(past) == [(12,)]
    for night in (nights[1], nights[3]):
        shutil.rmtree(night.path)
    assert postgres.load(data, library_snapshot(data, versions(4, 4, 4), day=5)).written is not None
    assert ask(past) == [(6,)]
    assert_same_views(data, ask, *instants(2), *instants(5))
    assert postgres.loaded_snapshots("old") == [f"202611{day}T020000Z" for day in (20, 22, 24, 25)]


def test_addresses_that_are_signed_anew_change_no_row(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """The checksums of such records are those of each night all the same; a night that signs nothing keeps those of the night before."""
    nights = list[Snapshot]()
    for day, (signed, changed) in enumerate(((0, 1), (1, 2), (1, 3), (2, 3))):
        records = {one: publication(one, changed if one == 1 else 1, signed) for one in range(1, 9)}
        nights.append(library_snapshot(data, payloads({"publications": records}), day=day))
        written = postgres.load(data, nights[-1]).written
        assert (written or {}).get("publications") == (None, 1, 1, 0)[day]
    checksums = "SELECT snapshot, count(*) FROM old.publications_20261120t020000z_checksums GROUP BY 1 ORDER BY 1"
    assert ask(checksums) == [("20261121T020000Z", 7), ("20261122T020000Z", 7), ("20261123T020000Z", 8)]
    assert_same_views(data, ask, *instants(1), *instants(3))
    for view in ("publications", "publications_history"):
        assert "checksums" not in str(ask(f"EXPLAIN SELECT id, title FROM {view}"))
    shutil.rmtree(nights[1].path)
    assert postgres.load(data, library_snapshot(data, versions(*[1] * 8), day=4)).written is not None
    assert "20261121T020000Z" not in dict(ask(checksums))
    assert_same_views(data, ask, *instants(3), *instants(4))


def others_named(data: DataFolder, ask: Ask) -> None:
    ask("UPDATE old.loaded_tables SET rules = 'others'")


def left_out(data: DataFolder, ask: Ask) -> None:
    ask("UPDATE old.loaded_tables SET rules = ''")


def other_file(data: DataFolder, ask: Ask) -> None:
    ask("UPDATE old.loaded_tables SET sha256 = 'another' WHERE table_name = 'publication_files'")


def pruned_night(data: DataFolder, ask: Ask) -> None:
    shutil.rmtree(data.snapshots("old")[0].path)


def damaged_night(data: DataFolder, ask: Ask) -> None:
    (data.snapshots("old")[0].path / "publication_authors.parquet").write_bytes(b"PAR1")


def table_of_its_own(data: DataFolder, ask: Ask) -> None:
    ask("CREATE TABLE old.mine (id bigint REFERENCES old.publications_20261120t020000z)")
    ask("INSERT INTO old.mine VALUES (2)")


@pytest.mark.parametrize(
    "happens",
    [others_named, left_out, other_file, pruned_night, damaged_night, table_of_its_own],
    ids=lambda one: one.__name__,
)
def test_a_night_that_cannot_follow_is_loaded_whole(
    data: DataFolder, postgres: Database, ask: Ask, happens: Callable[[DataFolder, Ask], None]
) -> None:
    """Other rules, a key that was left out, a night that is no longer there as it was, or a row that somebody else refers to."""
    postgres.load(data, library_snapshot(data, versions(1, 1)))
    night = library_snapshot(data, versions(2), day=1)
    happens(data, ask)
    loaded = postgres.load(data, night)
    assert (loaded.written, loaded.left_out) == (None, [])
    assert ask("SELECT title FROM publications") == [("Title 1, 0",)]
    ask("DROP TABLE IF EXISTS old.mine")
    shutil.rmtree(night.path.with_name("snapshot=20261120T020000Z"), ignore_errors=True)
    assert postgres.load(data, night).written is None  # the first night goes
    assert postgres.load(data, library_snapshot(data, versions(3), day=2)).written is not None


def test_a_night_that_other_code_staged_is_loaded_whole(
    data: DataFolder, postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal records may have other rows then. The night after follows again."""
    postgres.load(data, library_snapshot(data, versions(1)))
    monkeypatch.setattr(rules, "VERSION", "a later one")
    loads = [postgres.load(data, library_snapshot(data, versions(1), day=day)) for day in (1, 2)]
    assert [load.written is None for load in loads] == [True, False]


def test_many_changes_are_loaded_whole(data: DataFolder, postgres: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a tenth of the records, unless they are few."""
    monkeypatch.setattr(changes, "FEW", 1)
    kinds = list[bool]()
    for day, numbers in enumerate(([1] * 20, [2, 2] + [1] * 18, [3, 3, 3] + [1] * 17)):
        kinds.append(postgres.load(data, library_snapshot(data, versions(*numbers), day=day)).written is None)
    assert kinds == [True, False, True]


@pytest.mark.parametrize("again", [{"id": 1, "title": "Twice"}, {"title": "Nameless"}], ids=["repeated", "without"])
def test_records_that_ids_do_not_tell_apart_are_loaded_whole(
    data: DataFolder, postgres: Database, ask: Ask, again: dict[str, Any]
) -> None:
    """Their table has no primary key. Later nights are whole loads, until the ids are right again."""
    records = versions(1, 1)
    postgres.load(data, library_snapshot(data, records))
    odd = {"publications": [*records["publications"], json.dumps(again)]}
    loads = [postgres.load(data, library_snapshot(data, odd, day=day)) for day in (1, 2)]
    loads += [postgres.load(data, library_snapshot(data, records, day=day)) for day in (3, 4)]
    assert [(load.written is None, bool(load.left_out)) for load in loads] == [
        (True, True),
        (True, True),
        (True, False),
        (False, False),
    ]
    assert_same_views(data, ask, *instants(4))


def test_a_reference_that_breaks_is_reported(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """The key that the changes violate is left out of a whole load, and comes back with it."""
    copies = {"hard_copies": {1: {"id": 1, "publication": {"id": 2}}}}
    loads = [
        postgres.load(data, library_snapshot(data, versions(*numbers) | payloads(copies), day=day))
        for day, numbers in enumerate(((1, 1), (1,), (1, 2), (1, 3)))
    ]
    absent = "hard_copies: no foreign key from location_id to locations.id, because locations was not loaded with it."
    broken = "hard_copies: no foreign key from publication_id to publications.id, because some rows name one that is not there."
    assert [load.left_out for load in loads] == [[absent], [absent, broken], [absent], []]
    assert [load.written is None for load in loads] == [True, True, True, False]
    assert_same_views(data, ask, *instants(3))


def test_only_what_people_is_about_is_encrypted(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """Changes of encrypted tables are found with the key; without it the tables stay as they are."""
    keyed = DataFolder(data.path, PersonalKeys([PersonalKey(bytes(range(32)))]))
    for day, name in enumerate(("Ada", "Ada", "Grace")):
        records = versions(day) | payloads({"users": {1: {"id": 1, "name": name, "roles": ["admin"]}}})
        loaded = postgres.load(keyed, library_snapshot(keyed, records, day=day))
        assert (loaded.written or {}).get("users") == (None, 0, 1)[day]
    assert ask("SELECT name FROM old.users") == [("Grace",)]
    later = library_snapshot(keyed, records, day=3)
    assert "users" not in postgres.load(data, later).tables
    assert ask("SELECT name FROM old.users") == [("Grace",)]


@pytest.mark.parametrize("ends", ["lock", "connection"])
def test_changes_that_are_interrupted_leave_the_night_before(
    address: str, data: DataFolder, ask: Ask, ends: str
) -> None:
    """A lock that lasts too long is named; a connection that breaks leaves nothing; the next load writes the changes."""
    postgres = Database(address, seconds=0.5 if ends == "lock" else 20)
    postgres.load(data, library_snapshot(data, versions(1, 1)))
    night = library_snapshot(data, versions(1, 2, 2), day=1)
    with psycopg.connect(address, application_name="an index") as connection, ThreadPoolExecutor(1) as pool:
        connection.execute("LOCK TABLE old.publications IN SHARE MODE")
        loading = pool.submit(postgres.load, data, night)
        if ends == "connection":
            while not ask("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
                assert not loading.done()
            ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        why = "held locks on the tables .*an index" if ends == "lock" else "failed: .*untouched"
        with pytest.raises(TemporaryError, match=why):
            loading.result()
        assert ask("SELECT count(*), min(snapshot) FROM publications") == [(2, "20261120T020000Z")]
    assert postgres.load(data, night).written is not None
    assert_same_views(data, ask, *instants(1))


def test_a_load_goes_although_rows_of_another_refer_to_it(
    data: DataFolder, postgres: Database, ask: Ask, whole: Callable[[], None]
) -> None:
    """Publications were loaded whole since, the copies were not: their key ends with the publications that they refer to."""
    copies = payloads({"hard_copies": {1: {"id": 1, "publication": {"id": 1}}}})
    first = library_snapshot(data, versions(1, 1) | copies)
    postgres.load(data, first)
    later = library_snapshot(data, copies, day=1)
    assert postgres.load(data, later).written == {"hard_copies": 0}
    whole()
    postgres.load(data, library_snapshot(data, versions(1, 2), day=2))
    keys = "SELECT count(*) FROM pg_constraint WHERE conrelid = 'old.hard_copies_20261120t020000z'::regclass AND contype = 'f'"
    assert ask(keys) == [(1,)]
    shutil.rmtree(first.path)
    postgres.load(data, library_snapshot(data, versions(1, 3), day=3))
    assert ask(keys) == [(0,)]
    assert_same_views(data, ask, *instants(1), *instants(3))

"""Nights in any order: every view shows what the files say, and only what differs is written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pipelines.backup.database import stage_again
from pipelines.errors import ConfigurationError, TemporaryError
from pipelines.store.encryption import PersonalKey, PersonalKeys
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
        "id": f"A-{number}" if version % 9 == 8 else number,
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
        st.sampled_from(["", "", "", "later", "again", "prune"]),
        st.integers(0, 2),
    ),
    min_size=2,
    max_size=6,
)
"""Of each night the versions, whether the other resources are backed up, too, what happens besides, and how addresses are signed."""


@pytest.mark.long
@settings(
    max_examples=6,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    nights=NIGHTS,
    pruned=st.integers(0, 5),
)
def test_every_night_is_what_its_files_say(
    state_server: str,
    tmp_path_factory: pytest.TempPathFactory,
    nights: list[tuple[dict[int, int], bool, str, int]],
    pruned: int,
) -> None:
    """Nights of any content, of all resources or of publications alone, in any order, loaded again, or pruned."""
    data = DataFolder(tmp_path_factory.mktemp("nights") / "data")
    with database(state_server) as address, psycopg.connect(address, autocommit=True) as connection:
        ask = asking(connection)
        postgres, later, loaded = Database(address), list[Snapshot](), list[Snapshot]()
        for day, (versions, complete, what, signed) in enumerate(nights):
            found = {one: publication(one, version, signed) for one, version in versions.items()}
            records: Records = {"publications": found} | (others(versions, signed) if complete else {})
            snapshot = library_snapshot(data, payloads(records), day=day)
            if what == "later":
                later.append(snapshot)
                continue
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
    assert postgres.load(data, library_snapshot(data, records)).written["publications"] == 4
    before = dict(ask("SELECT id, ctid::text FROM old.publications_rows"))
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
    after = dict(ask("SELECT id, ctid::text FROM old.publications_rows"))
    assert {one for one, place in before.items() if after.get(one) != place} == {2, 4}
    assert ask("SELECT id, snapshot, until FROM old.publications_past ORDER BY id") == [
        (2, "20261120T020000Z", "20261121T020000Z"),
        (4, "20261120T020000Z", "20261121T020000Z"),
    ]
    nothing = postgres.load(data, library_snapshot(data, changed, day=2))
    assert set(nothing.written.values()) == {0}
    assert_same_views(data, ask, *instants(2))


@pytest.mark.parametrize("order", [([1, "A-1"], [1], [1, "A-2"]), ([1], [1, "A-2"], [1, "A-1"])], ids=str)
def test_records_with_a_text_for_an_id_are_there(
    data: DataFolder, postgres: Database, ask: Ask, order: tuple[list[int | str], ...]
) -> None:
    """They have no number to compare them by: each night has its own."""
    for day, ids in enumerate(order):
        records = [json.dumps({"id": one, "title": f"Record {one}"}) for one in ids]
        postgres.load(data, library_snapshot(data, {"tasks": records, "publications": records}, day=day))
        for table in ("tasks", "publications"):
            assert ask(f"SELECT title FROM {table} ORDER BY title") == [(f"Record {one}",) for one in ids]
    gone = sorted((f"Record {one}",) for before, after in pairwise(order) for one in before if one not in after)
    for table in ("tasks", "publications"):
        assert ask(f"SELECT title FROM {table}_deleted ORDER BY title") == gone
    assert_same_views(data, ask, *instants(2))


def test_history_before_a_night_that_is_there_takes_the_space_of_its_changes(
    data: DataFolder, postgres: Database, address: str, ask: Ask
) -> None:
    """The newest night was loaded first, as after the first backup with a database. The others take no more space than in their order."""
    nights = [library_snapshot(data, versions(*[4] * 50, day), day=day) for day in range(6)]
    stage_again(postgres, data, "old")
    loads = stage_again(postgres, data, "old", history=True)
    assert [load.snapshot for load in loads] == [night.manifest.snapshot for night in nights[:-1]]
    assert rows_of(address) == 51 + 5
    night = library_snapshot(data, versions(*[4] * 50, 6), day=6)
    postgres.load(data, night)
    assert_same_views(data, ask, *instants(3), *instants(6))
    shutil.rmtree(nights[2].path)
    postgres.load(data, library_snapshot(data, versions(*[5] * 51), day=7))
    assert_same_views(data, ask, *instants(3), *instants(7))


def rows_of(address: str) -> int:
    """The rows of all tables of publications, of any night."""
    with psycopg.connect(address) as connection:
        connection.execute("ANALYZE")
        rows = "SELECT sum(reltuples)::int FROM pg_class WHERE relnamespace = 'old'::regnamespace"
        found = connection.execute(f"{rows} AND relname ~ '^publications_(rows|past)$'").fetchone()
    return found[0] if found else 0


def test_addresses_that_are_signed_anew_change_no_row(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """The checksum of such a record is another one each night, and nothing else is."""
    written = list[int]()
    for day, (signed, changed) in enumerate(((0, 1), (1, 2), (1, 3), (2, 3))):
        records = {one: publication(one, changed if one == 1 else 1, signed) for one in range(1, 9)}
        night = library_snapshot(data, payloads({"publications": records}), day=day)
        written.append(postgres.load(data, night).written["publications"])
    assert written == [8, 1, 1, 0]
    assert_same_views(data, ask, *instants(1), *instants(3))


@pytest.mark.parametrize("is_pruned", [True, False], ids=["pruned", "damaged"])
def test_a_night_needs_no_file_of_the_one_before(
    data: DataFolder, postgres: Database, ask: Ask, *, is_pruned: bool
) -> None:
    """What differs is found on the server. A night that the data folder has no more goes from the history."""
    before = library_snapshot(data, versions(1, 1))
    postgres.load(data, before)
    if is_pruned:
        shutil.rmtree(before.path)
    else:
        (before.path / "publication_authors.parquet").write_bytes(b"PAR1")
    assert postgres.load(data, library_snapshot(data, versions(2, 1), day=1)).written["publications"] == 1
    assert ask("SELECT title FROM publications ORDER BY id") == [("Title 1, 0",), ("Title 2, 0",)]
    assert len(ask("SELECT DISTINCT snapshot FROM publications_history")) == (1 if is_pruned else 2)


def test_a_table_of_somebody_else_that_refers_to_a_row_is_named(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """The load stops before anything is written, and says what stands in its way."""
    postgres.load(data, library_snapshot(data, versions(1, 1)))
    ask("CREATE TABLE old.mine (id bigint REFERENCES old.publications_rows); INSERT INTO old.mine VALUES (2)")
    night = library_snapshot(data, versions(2), day=1)
    with pytest.raises(ConfigurationError, match=r'violates foreign key.*"mine".*A table of yours refers to rows'):
        postgres.load(data, night)
    assert ask("SELECT count(*) FROM publications") == [(2,)]
    ask("DROP TABLE old.mine")
    postgres.load(data, night)
    assert_same_views(data, ask, *instants(1))


@pytest.mark.parametrize("again", [{"id": 1, "title": "Twice"}, {"title": "Nameless"}], ids=["repeated", "without"])
def test_records_that_ids_do_not_tell_apart_are_there(
    data: DataFolder, postgres: Database, ask: Ask, again: dict[str, Any]
) -> None:
    """They are without primary key, and the result says so."""
    records = versions(1, 1)
    odd = {"publications": [*records["publications"], json.dumps(again)]}
    left_out = [
        postgres.load(data, library_snapshot(data, of_night, day=day)).left_out
        for day, of_night in enumerate((records, odd, odd, records))
    ]
    assert [bool(sentences) for sentences in left_out] == [False, True, True, False]
    assert left_out[1][0].startswith("publications: ")
    assert_same_views(data, ask, *instants(1), *instants(3))


def test_only_what_people_is_about_is_encrypted(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """Changes of encrypted tables are found with the key; without it the tables stay as they are."""
    keyed = DataFolder(data.path, PersonalKeys([PersonalKey(bytes(range(32)))]))
    for day, name in enumerate(("Ada", "Ada", "Grace")):
        records = versions(day) | payloads({"users": {1: {"id": 1, "name": name, "roles": ["admin"]}}})
        loaded = postgres.load(keyed, library_snapshot(keyed, records, day=day))
        assert loaded.written["users"] == (1, 0, 1)[day]
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
    postgres.load(data, night)
    assert_same_views(data, ask, *instants(1))

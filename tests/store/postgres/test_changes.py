"""Nights in any order: every view shows what the files say, and only what differs is written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pipelines.backup.database import stage_again
from pipelines.errors import ConfigurationError, TemporaryError
from pipelines.store.postgres.loading import Database, LoadResult
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


def other_resources(numbers: Mapping[int, int], signed: int = 0) -> Records:
    """Records of other resources that refer to publications, to each other, and now and then to one that is not there."""
    return {
        "users": {
            number: {
                "id": number,
                "name": f"N{v}",
                "roles": ["admin", "reader"][: v % 3],
                "avatar_url": f"?sig={signed}",
            }
            for number, v in numbers.items()
        },
        "locations": {number: {"id": number, "name": f"Shelf {v // 2}"} for number, v in numbers.items()},
        "hard_copies": {
            number: {
                "id": number,
                "publication": {"id": number + (100 if v % 11 == 10 else 0)},
                "location": {"id": number},
            }
            for number, v in numbers.items()
        },
        "tasks": {
            number: {
                "id": f"A-{number}" if v % 6 == 5 else number,
                "title": f"T{v}",
                "assignee_id": number,
                "own": v % 3,
            }
            for number, v in numbers.items()
        },
    }


def payloads(records: Records) -> dict[str, list[str]]:
    return {
        resource: [json.dumps(record) for _, record in sorted(by_number.items())]
        for resource, by_number in records.items()
    }


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
        for day, (versions, complete, event, signed) in enumerate(nights):
            publications = {number: publication(number, version, signed) for number, version in versions.items()}
            records: Records = {"publications": publications} | (other_resources(versions, signed) if complete else {})
            snapshot = library_snapshot(data, payloads(records), day=day)
            if event == "later":
                later.append(snapshot)
                continue
            if event == "prune" and loaded:
                shutil.rmtree(loaded.pop(pruned % len(loaded)).path)
            postgres.load(data, snapshot)
            loaded.append(snapshot)
            if event == "again":
                postgres.load(data, loaded[pruned % len(loaded)])
            if not later:
                assert_same_views(data, ask, *instants(day))
        for snapshot in later:
            postgres.load(data, snapshot)
        if later:
            assert_same_views(data, ask, *instants(len(nights)))


def instants(day: int) -> list[datetime]:
    """An hour after the last snapshot, and after the one before."""
    return [STARTED_AT + timedelta(days=number, hours=1) for number in (day, day - 1)]


def versions(*numbers: int) -> dict[str, list[str]]:
    """Publications of these versions, by place."""
    return payloads(
        {"publications": {place: publication(place, version) for place, version in enumerate(numbers, start=1)}}
    )


def test_only_rows_that_differ_are_written(data: DataFolder, postgres: Database, ask: Ask) -> None:
    """A changed title is one row; its authors stay as they are. Addresses that are signed anew each night are no change."""
    records = library(4)["publications"]

    def loaded(records: Sequence[str], day: int) -> LoadResult:
        cover = f'"url": "https://files.example.org/c?X-Amz-Signature={day}", "storage"'
        signed = {"publications": [record.replace('"storage"', cover) for record in records]}
        return postgres.load(data, library_snapshot(data, signed, day=day))

    assert loaded(records, 0).written["publications"] == 4
    before = dict(ask("SELECT id, ctid::text FROM old.publications_rows"))
    changed = [record.replace('"Title 2"', '"Another"') for record in records[:3]]
    second = loaded(changed, 1)
    assert second.tables["publication_authors"] == 6
    assert second.written == {
        "publications": 2,
        "publication_identifiers": 2,
        "publication_authors": 2,
        "publication_categories": 1,
        "publication_files": 1,
    }
    after = dict(ask("SELECT id, ctid::text FROM old.publications_rows"))
    assert {number for number, place in before.items() if after.get(number) != place} == {2, 4}
    assert ask("SELECT id, snapshot, until FROM old.publications_past ORDER BY id") == [
        (2, "20261120T020000Z", "20261121T020000Z"),
        (4, "20261120T020000Z", "20261121T020000Z"),
    ]
    assert set(loaded(changed, 2).written.values()) == {0}
    assert_same_views(data, ask, *instants(2))


def test_history_before_a_night_that_is_there_takes_the_space_of_its_changes(
    data: DataFolder, postgres: Database, ask: Ask
) -> None:
    """The newest night was loaded first, as after the first backup with a database. The others take no more space than in their order."""
    nights = [library_snapshot(data, versions(*[4] * 50, day), day=day) for day in range(6)]
    stage_again(postgres, data, "old")
    loads = stage_again(postgres, data, "old", history=True)
    assert [load.snapshot for load in loads] == [night.manifest.snapshot for night in nights[:-1]]
    rows = "SELECT (SELECT count(*) FROM old.publications_rows), (SELECT count(*) FROM old.publications_past)"
    assert sum(ask(rows)[0]) == 51 + 5
    assert_same_views(data, ask, *instants(3), *instants(5))


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


@pytest.mark.long
@pytest.mark.parametrize("odd", [[1], [None], ["A-1"], ["A-1", "A-2"]], ids=str)
def test_records_that_ids_do_not_tell_apart_are_there(
    data: DataFolder, postgres: Database, ask: Ask, odd: list[int | str | None]
) -> None:
    """Ids that come twice, are none or texts: such records are without primary key, and the result says so. Each night has its own."""
    for day, ids in enumerate(([1], [1, *odd], [1, *odd], [1, *odd[1:]])):
        records = [json.dumps({"id": record_id, "title": f"Record {record_id}"}) for record_id in ids]
        left_out = postgres.load(
            data, library_snapshot(data, {"tasks": records, "publications": records}, day=day)
        ).left_out
        assert {sentence.partition(":")[0] for sentence in left_out} == (
            {"tasks", "publications"} if len(ids) > 1 else set()
        )
        for table in ("tasks", "publications"):
            assert ask(f"SELECT title FROM {table} ORDER BY title") == sorted(
                (f"Record {record_id}",) for record_id in ids
            )
    assert_same_views(data, ask, *instants(1), *instants(3))


def test_changes_that_are_interrupted_leave_the_night_before(address: str, data: DataFolder, ask: Ask) -> None:
    """A lock that lasts too long is named; the next load writes the changes."""
    postgres = Database(address, seconds=0.5)
    postgres.load(data, library_snapshot(data, versions(1, 1)))
    night = library_snapshot(data, versions(1, 2, 2), day=1)
    with psycopg.connect(address, application_name="an index") as connection:
        connection.execute("LOCK TABLE old.publications IN SHARE MODE")
        with pytest.raises(TemporaryError, match=r"held locks on the tables .*an index"):
            postgres.load(data, night)
        assert ask("SELECT count(*), min(snapshot) FROM publications") == [(2, "20261120T020000Z")]
    postgres.load(data, night)
    assert_same_views(data, ask, *instants(1))

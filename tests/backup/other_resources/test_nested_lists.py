"""Lists at an address of their own of each record, which `nested` of a tenant names: they are read, proved and staged as any other list."""

from __future__ import annotations

import json
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pipelines.migration.model.target_reading import snapshot_listing
from pipelines.store.catalogue import open_catalogue
from pipelines.store.maintenance.differences import compare
from pipelines.store.maintenance.verification import verify
from pipelines.store.postgres.loading import Database
from tests.backup.other_resources.conftest import Lists, Serve, TwoVersionRunner, rows
from tests.cli.command import BOOKFERRY, PATIENCE, environment, run
from tests.postgres import database

NESTED = 'nested = ["collections/publications"]'
BOOKS = [{"id": number, "title": f"Book {number}"} for number in range(1, 141)]
PATH = "collections/{}/publications"
MEMBERS: dict[str, list[Any]] = {
    "1": BOOKS[:120],
    "2": [],
    "3": [{"id": 900 + number, "publication_id": number, "note": "n"} for number in (7, 5)],
    "A-1": [BOOKS[6]],
}


@pytest.fixture
def library() -> Lists:
    """Books, collections that do not show what they have, and the list of each collection."""
    names = [{"id": int(key) if key.isdigit() else key, "name": f"Collection {key}"} for key in MEMBERS]
    members = {PATH.format(key): records for key, records in MEMBERS.items()}
    return Lists({"publications": BOOKS, "collections": names, **members})


ASSIGNEE = {"id": 4, "name": "Ada", "email": "ada@example.org"}
OTHER_LISTS: dict[str, list[Any]] = {
    "publications": BOOKS[:3],
    "collections": [{"id": 1, "name": "Maps"}, {"id": 2, "name": "Empty"}],
    "tasks": [{"id": 5, "title": "Bind"}],
    "collections/1/members": [{"id": 903, "publication_id": 2, "position": 1}, {"id": 904, "publication_id": 1}],
    "collections/2/members": [],
    "tasks/5/assignees": [ASSIGNEE],
    "tasks/5/time-logs": [{"id": 11, "minutes": 30, "user_id": 4}, {"id": 12, "minutes": 5, "user_id": 4}],
}


def test_a_list_of_any_name_has_a_table_of_its_own(serve: Serve, state_server: str) -> None:
    """Where an entry leads is known by the name of the list, or by its keys; the entry itself is JSON, and is personal with persons."""
    library = Lists(OTHER_LISTS)
    names = ["collections/members", "tasks/assignees", "tasks/time-logs"]
    runner, _server = serve(library, f"nested = {names}")
    snapshot = runner.back_up("publications", "collections", "tasks", run="first")
    assert (snapshot.manifest.complete, snapshot.manifest.problems) == (True, [])
    members, assignees, logs = (
        rows(snapshot, f"{of}") for of in ("collection_members", "task_assignees", "task_time_logs")
    )
    assert [(row["collection_id"], row["position"], row["id"]) for row in members] == [(1, 0, 2), (1, 1, 1)]
    assert [(row["task_id"], row["user_id"], json.loads(row["entry"])) for row in assignees] == [(5, 4, ASSIGNEE)]
    assert [(row["task_id"], row["id"]) for row in logs] == [(5, 11), (5, 12)]
    library.lists |= {"collections/2/members": [{"id": 905, "publication_id": 3}], "tasks/5/time-logs": []}
    second = runner.back_up("publications", "collections", "tasks", run="second")
    with runner.library() as backup, open_catalogue(backup.data) as catalogue:
        assert verify(backup.data, second.key, now=datetime(2026, 11, 27, tzinfo=UTC)).problems == []
        differences = compare(backup.data, snapshot, second).resources
        changed = {
            name: (difference.added_ids, difference.removed_ids)
            for name, difference in differences.items()
            if difference.different
        }
        assert changed == {"collection_members": (["2/905"], []), "task_time_logs": ([], ["5/11", "5/12"])}
        with database(state_server) as address, psycopg.connect(address) as connection:
            postgres = Database(address)
            for night in (snapshot, second):
                loaded = postgres.load(backup.data, night)
            assert loaded.tables["collection_members"] == 3
            for query in QUERIES:
                assert (
                    connection.execute(query).fetchall() == catalogue.execute(query.replace("library.", "")).fetchall()
                ), query
        described = run("tables", "task_assignees", "--json", folder=runner.config.parent).document
        assert [column["column"] for column in described["columns"] if column["personal"]] == ["entry"]
        assert "entry" not in {row[0] for row in catalogue.execute("DESCRIBE task_assignees").fetchall()}


QUERIES = (
    "SELECT c.name, p.title FROM library.collection_members AS m, library.collections AS c, library.publications AS p "  # noqa: ISC004
    "WHERE m.collection_id = c.id AND m.id = p.id ORDER BY c.name, m.position",
    "SELECT count(*), count(DISTINCT snapshot) FROM library.task_time_logs_history",
    "SELECT count(*) FROM library.task_assignees",
    "SELECT table_name, read FROM library.tables_read WHERE table_name LIKE 'task%' ORDER BY 1",
)


@pytest.mark.parametrize("status", [403, 404])
def test_a_list_that_cannot_be_read_makes_the_snapshot_partial_by_the_id_of_its_record(
    serve: Serve, library: Lists, status: int
) -> None:
    library.refused["collections/3/publications"] = status
    runner, _server = serve(library, NESTED)
    manifest = runner.back_up("publications", "collections").manifest
    [problem] = manifest.problems
    assert problem.startswith("collection_publications: collection 3: could not be read.")
    assert (manifest.complete, manifest.resources["collection_publications"].records) == (False, 121)
    library.refused |= {PATH.format(key): 404 for key in MEMBERS}
    snapshot = runner.back_up("publications", "collections", run="none")
    assert (snapshot.manifest.complete, [*snapshot.manifest.unreadable]) == (False, ["collection_publications"])
    assert snapshot.manifest.not_read == ["/collections/:id/publications"]
    assert "take it out of `nested`" in snapshot.manifest.problems[0]
    assert len(rows(snapshot, "collections")) == len(MEMBERS)


def test_each_list_without_a_count_is_read_twice_although_another_has_the_same_records(
    serve: Serve, library: Lists
) -> None:
    """I4: two walks over one list are its proof, not one walk over each of two."""
    library.counts = False
    library.lists[PATH.format("2")] = library.lists[PATH.format("1")]
    runner, server = serve(library, NESTED)
    assert runner.back_up("publications", "collections").manifest.complete
    first_pages = [request.path for request in server.received if request.query.get("page") == "1"]
    assert [first_pages.count(f"/api/v3/{PATH.format(number)}") for number in (1, 2)] == [2, 2]


def test_half_a_pair_of_surrogates_costs_neither_a_record_its_list_nor_a_list_its_entry(
    serve: Serve, library: Lists, tmp_path: Path
) -> None:
    """DuckDB does not take such JSON."""
    library.lists["collections"] = [{"id": 1, "name": "\ud800"}, {"id": 3, "name": "A"}]
    library.lists[PATH.format("3")] = [{"id": 903, "publication_id": 5, "note": "\ud800"}, *MEMBERS["3"][:1]]
    runner, _server = serve(library, NESTED)
    snapshot = runner.back_up("publications", "collections")
    staged = [row["publication_id"] for row in rows(snapshot, "collection_publications") if row["collection_id"] == 3]
    with runner.library() as backup:
        listing = snapshot_listing(backup.data, snapshot, "collections", tmp_path)
        lists = {record["id"]: record["publication_ids"] for record in listing.records()}
    assert (staged, lists) == ([5, 7], {1: [book["id"] for book in BOOKS[:120]], 3: [5, 7]})


@pytest.mark.long
def test_a_killed_backup_reads_no_list_twice(serve: Serve, library: Lists) -> None:
    """I9: with SIGKILL in the second page of a list, and again in another list."""
    runner, server = serve(library, f'{NESTED}\nresources = ["publications", "collections"]')
    for killed_at in ("collections/1/publications?2", "collections/3/publications?1"):
        with subprocess.Popen([*BOOKFERRY, "backup", "new"], cwd=runner.config.parent, env=environment()) as process:
            library.before = lambda name, at=killed_at, run=process: run.kill() if name == at else None
            assert process.wait(PATIENCE) == -signal.SIGKILL
    library.before = lambda _name: None
    outcome = run("backup", "new", "--json", folder=runner.config.parent)
    requests = [(request.path.removeprefix("/api/v3/"), request.query.get("page")) for request in server.received]
    assert [requests.count((PATH.format(key), "1")) for key in MEMBERS] == [1, 1, 2, 1]
    assert [requests.count((PATH.format("1"), page)) for page in ("2", "3")] == [2, 1]
    assert (outcome.status, outcome.document["complete"], outcome.document["counts"]["collection_publications"]) == (
        0,
        True,
        123,
    )


def test_a_list_that_changes_while_it_is_read_is_read_again(serve: Serve, library: Lists) -> None:
    path = PATH.format(1)

    def change(name: str) -> None:
        if name == f"{path}?2":
            library.lists[path] = [*BOOKS[70:], *BOOKS[:69]]
            library.before = lambda _name: None

    library.lists[path] = BOOKS[::-1][:60] + BOOKS[:60]  # no order of ids
    library.before = change
    runner, _server = serve(library, NESTED)
    snapshot = runner.back_up("publications", "collections")
    members = [row["publication_id"] for row in rows(snapshot, "collection_publications") if row["collection_id"] == 1]
    assert (snapshot.manifest.complete, members) == (True, [book["id"] for book in library.lists[path]])


@pytest.mark.parametrize(
    ("nested", "message"),
    [
        ('nested = ["shelves/loans"]', "shelves/loans: not a list of each record, such as collections/publications;"),
        ('nested = ["collections/a/b"]', "collections/a/b: not a list of each record"),
        ('nested = ["users/roles"]', "users/roles: its table would be called user_roles, and that is the name of"),
        ('nested = ["tasks/sub-tasks", "tasks/subTasks"]', "tasks/sub-tasks: its table would be called task_sub_tasks"),
        ('nested = ["collections/publications_history"]', "would be called collection_publications_history, and"),
        (f'{NESTED}\nresources = ["publications"]', "collections/publications, but not collections in resources"),
    ],
)
def test_an_unknown_list_is_refused(tmp_path: Path, nested: str, message: str) -> None:
    TwoVersionRunner.at(tmp_path, "https://library.example.org", nested)
    refused = run("backup", "new", folder=tmp_path)
    assert refused.status == 2
    assert message in " ".join(refused.err.split())

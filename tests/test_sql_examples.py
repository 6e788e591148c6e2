"""Each file in sql/examples answers the question in its first line correctly, and alike on DuckDB and Postgres.

The library is the sandbox's real one: as `old` over v2, with nights before the one that was backed up, and as `new` over v3, where some
of it has arrived. What is expected is counted in plain Python, from the records as they were received (tests/example_answers.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest

from cli.query import run_sql
from pipelines.analysis import library
from pipelines.backup.database import stage_again
from pipelines.examples import all_examples
from pipelines.inventory import default_resources
from pipelines.store.postgres.loading import Database
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.backup.other_resources.conftest import TwoVersionRunner
from tests.backup.other_resources.signing import sign_in
from tests.example_answers import ANSWERS, Night, Rows
from tests.postgres import database, postgres_server
from tests.sandbox.process import SandboxProcess
from tests.store.snapshot_factory import make_snapshot
from tests.test_docs_analysts import POSTGRES, blocks

CONFIG = """
data = "library-data"
tokens = "sign-ins"

[tenants.old]
base_url = "{old}"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
requests_per_minute = 100000

[tenants.new]
base_url = "{new}"
api = "v3"
client_id = "test"
client_auth = "none"
files = false
requests_per_minute = 100000
"""

EXAMPLES = all_examples()
Ask = Callable[[str], tuple[list[str], Rows]]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The libraries, backed up; `old` at several dates."""
    config = tmp_path_factory.mktemp("examples") / "bookferry.toml"
    with (
        SandboxProcess("--tenant=old=real", "--tenant=new=real:3000", "--requests-per-minute", "0") as sandbox,
        pytest.MonkeyPatch.context() as environment,
    ):
        config.write_text(CONFIG.format(old=sandbox.base_url("old"), new=sandbox.base_url("new")))
        environment.setenv("TEST_USER", sandbox.user)
        environment.setenv("TEST_PASSWORD", sandbox.password)
        sign_in(config, "new", sandbox, "new")
        runner = TwoVersionRunner(config)
        tonight = runner.back_up(tenant="old")
        assert runner.back_up(*default_resources("v3")).manifest.complete
    make_earlier_nights(DataFolder(config.parent / "library-data"), tonight)
    return config


def make_earlier_nights(data: DataFolder, tonight: Snapshot) -> None:
    """Snapshots of yesterday, without five records, with three that are gone now and with other values; and of two months before."""
    payloads: list[str] = pq.read_table(tonight.path / "raw" / "publications.parquet")["payload"].to_pylist()
    now = datetime.fromisoformat(tonight.manifest.started_at)
    yesterday = [json.loads(payload) for payload in payloads[5:]]
    for number, record in enumerate(yesterday[:4]):
        record["title"] = f"{record['title']} ({number})"
        record["authors"] = [{"name": "Somebody Else", "type": "person"}]
    yesterday[4]["doi"], yesterday[5]["categories"], yesterday[6]["published_on"] = (
        "10.1000/182",
        [{"id": 1, "name": "New"}],
        None,
    )
    gone = [{**record, "id": 900_000 + number} for number, record in enumerate(yesterday[:3])]
    for days, records in (
        (1, [*map(json.dumps, yesterday), *map(json.dumps, gone)]),
        (35, payloads[:5000]),
        (70, payloads[:4000]),
    ):
        make_snapshot(data, records, tenant="old", now=now - timedelta(days=days))


@pytest.fixture(scope="module")
def nights(config: Path) -> list[Night]:
    """Every snapshot with its records, read from the raw files."""
    return [
        Night(
            snapshot.manifest.tenant,
            snapshot.manifest.snapshot,
            snapshot.manifest.api,
            {
                resource: [json.loads(payload) for payload in pq.read_table(path)["payload"].to_pylist()]
                for resource in snapshot.manifest.resources
                for path in (snapshot.path / "raw" / f"{resource}.parquet",)
            },
        )
        for snapshot in DataFolder(config.parent / "library-data").snapshots()
    ]


@pytest.fixture(scope="module")
def duckdb_says(config: Path) -> Ask:
    """The result of the catalogue."""
    tables = library(config)
    sql = {one.name: one.sql for one in EXAMPLES}
    return lambda name: run_sql(tables.connection, sql[name])


@pytest.fixture(scope="module")
def session(config: Path) -> Iterator[psycopg.Connection]:
    """Postgres with every snapshot."""
    data = DataFolder(config.parent / "library-data")
    with postgres_server() as server, database(server) as address:
        for tenant in ("old", "new"):
            stage_again(Database(address, seconds=60), data, tenant, history=True)
        with psycopg.connect(address, autocommit=True) as connection:
            yield connection


@pytest.fixture
def postgres_says(session: psycopg.Connection) -> Iterator[Ask]:
    """The result of Postgres for an analyst."""
    session.execute("SET search_path = library")
    session.execute("SET ROLE bookferry_analyst")

    def ask(name: str) -> tuple[list[str], Rows]:
        answer = session.execute(next(one.sql for one in EXAMPLES if one.name == name).encode())
        return [column.name for column in answer.description or ()], answer.fetchall()

    yield ask
    session.execute("RESET ALL")
    session.execute("RESET ROLE")


@pytest.mark.long
def test_the_page_for_analysts_is_right_about_postgres(session: psycopg.Connection) -> None:
    """Its commands work; a person with the role reads everything that is not personal."""
    (block,) = blocks("sql", POSTGRES)
    session.execute("CREATE ROLE analyst IN ROLE bookferry_analyst")
    statements = [one for one in block.split(";\n") if one.strip()]
    session.execute("SET search_path = library")
    answers = [session.execute(one.encode()) for one in statements]
    assert [answer.fetchone() is not None for answer in answers if answer.description] == [True] * 3
    session.execute("SET ROLE analyst")
    assert session.execute("SELECT count(*) FROM users").fetchone() is not None
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute("SELECT email FROM new.users")
    session.execute("RESET ROLE")


@pytest.mark.parametrize("name", [one.name for one in EXAMPLES])
def test_an_example_is_correct_and_alike_on_both_engines(
    name: str, duckdb_says: Ask, postgres_says: Ask, nights: list[Night]
) -> None:
    """Equal value by value, in types and in order; and equal to the count from the records themselves."""
    columns, rows = duckdb_says(name)
    assert rows, "an example shows something"
    other_columns, other_rows = postgres_says(name)
    assert (other_columns, other_rows) == (columns, rows)
    assert {tuple(map(type, row)) for row in other_rows} == {tuple(map(type, row)) for row in rows}
    expected = [tuple(row) for row in ANSWERS[name](nights)]
    assert sorted(rows, key=repr) == sorted(expected, key=repr)

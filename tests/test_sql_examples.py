"""Each file in sql/examples answers the question in its first line correctly, and alike on DuckDB and Postgres.

The library is the sandbox's real one: as `old` over v2, with nights before the one that was backed up, and as `new` over v3, where some
of it has arrived. What is expected was once counted in plain Python, from the records as they were received.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest

from cli.query import ask
from pipelines.analysis import library
from pipelines.backup.database import stage_again
from pipelines.examples import all_examples
from pipelines.inventory import default_resources
from pipelines.store.postgres.loading import Database
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.backup.other_resources.conftest import TwoVersionRunner
from tests.backup.other_resources.signing import sign_in
from tests.postgres import database, postgres_server
from tests.sandbox.process import SandboxProcess
from tests.store.snapshot_factory import make_snapshot
from tests.test_docs_analysts import POSTGRES, blocks

pytestmark = pytest.mark.long

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
Ask = Callable[[str], tuple[list[str], Sequence[Sequence[object]]]]

ANSWERS: dict[str, tuple[int, Sequence[object], Sequence[object]]] = {
    "changed_since_yesterday": (
        19,
        ("old", "added", 1, "title", None, "The Doomsday Key (Sigma Force, #6)"),
        ("old", "deleted", 900002, "title", "Preparation and properties of Cu$_2$O/Cu photovoltaic cells (2)", None),
    ),
    "collection_by_decade": (30, ("new", "before 1900", 1, 41, 6, 0, 48), ("old", "no date", 118, 70, 32, 0, 220)),
    "fields_without_a_column": (
        3,
        ("new", "identifiers[1].type", 21, 21, 0, 0),
        ("old", "import_state", 5445, 2480, 1867, 1098),
    ),
    "files_missing": (
        223,
        ("new", 85, "A ConvNet for the 2020s", "asset", "minimal-document.pdf", 16978, "not_fetched", None),
        (
            "new",
            2966,
            "Crystal structure of (μ-N-allylthiourea-κ2S:S)bis[μ-bis(diph…",
            "asset",
            "pdflatex-image.pdf",
            74061,
            "not_fetched",
            None,
        ),
    ),
    "gaps_by_kind": (
        6,
        ("new", "Article", 1382, 65, 9, 157, 945, 1382, 1343),
        ("old", "Report", 1098, 32, 25, 184, 1027, 1098, 1055),
    ),
    "growth_by_month": (4, ("new", "2026-11", 3000, None), ("old", "2026-11", 5445, 445)),
    "hard_copies_by_location": (
        7,
        ("new", "Branch by the river", 175, 175, date(1995, 1, 1), date(2019, 1, 1)),
        ("new", "no location", 60, 40, date(1995, 1, 1), date(2015, 1, 1)),
    ),
    "holdings_by_kind_and_year": (684, ("new", "Article", 1677, 1), ("old", "Report", None, 32)),
    "identifiers_by_kind": (
        10,
        ("new", "doi", 1533, 530, 1000, 1, 2, 1518),
        ("old", "arxiv_id", 205, 144, 59, 0, 2, 202),
    ),
    "invalid_isbns_by_category": (
        41,
        ("new", "no category", 678, 24, 24),
        ("old", "Working class -- Bolivia.", 1, 1, 1),
    ),
    "most_frequent_authors": (40, ("new", 1, "National Bureau of Standards", 49), ("old", 20, "Jerry P. Jasinski", 11)),
    "most_used_categories": (
        40,
        ("new", 1, "Chemistry", 251),
        ("old", 20, "Electronic computers. Computer science", 17),
    ),
    "possible_duplicates": (
        51,
        (
            "new",
            "arxiv_id",
            "1405.1507",
            2,
            "1686, 2248",
            "Localization and Defects in Axial (In,Ga)N/GaN Nanowire Hete…",
        ),
        ("old", "pmid", "28288103", 2, "2241, 4818", "Reproducibility of computational workflows is automated usin…"),
    ),
    "publications_with_most_files": (
        10,
        ("new", 1, 2935, "Visualizing and Understanding Convolutional Networks", 4, 225648),
        ("old", 5, 4916, "Hector and the Search for Happiness", 4, 201790),
    ),
    "records_without_identifiers": (
        1370,
        ("new", 3, "Book", "2015-01-01", "The Dead Key", None),
        ("old", 5445, "Book", None, "Œuvres de Descartes", None),
    ),
    "repaired_identifiers": (
        111,
        ("new", "doi", "case", 967, "10.6028/NBS.BRPD-CRPL-D.57", "10.6028/nbs.brpd-crpl-d.57"),
        ("old", "pmid", "white_space+label", 1, "PMID: 8947047 ", "8947047"),
    ),
    "same_title_and_year": (
        68,
        (
            "new",
            1998,
            "Federal implementation guideline for electronic data interchange ",
            3,
            "1987, 2493, 2547",
            "Report, Report, Report",
        ),
        ("old", 2023, "Annual Report on the U.S. Manufacturing Economy: 2023 ", 2, "128, 3319", "Report, Report"),
    ),
    "v2_against_v3": (3, ("old", "Article", 2480, 1139, 234, 1107), ("old", "Report", 1098, 493, 107, 498)),
}
"""Example → number of rows, first and last row, as counted in plain Python from the records that the service sent."""


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
def duckdb_says(config: Path) -> Ask:
    """The result of the catalogue."""
    tables = library(config)
    sql = {example.name: example.sql for example in EXAMPLES}

    def answer(name: str) -> tuple[list[str], list[tuple[object, ...]]]:
        columns, batches = ask(tables.connection, sql[name])
        return columns, [row for rows in batches for row in rows]

    return answer


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

    def ask(name: str) -> tuple[list[str], Sequence[Sequence[object]]]:
        answer = session.execute(next(example.sql for example in EXAMPLES if example.name == name).encode())
        return [column.name for column in answer.description or ()], answer.fetchall()

    yield ask
    session.execute("RESET ALL")
    session.execute("RESET ROLE")


def test_the_page_for_analysts_is_right_about_postgres(session: psycopg.Connection) -> None:
    """Its commands work; a person with the role reads everything that is not personal."""
    (block,) = blocks("sql", POSTGRES)
    session.execute("CREATE ROLE analyst IN ROLE bookferry_analyst")
    statements = [statement for statement in block.split(";\n") if statement.strip()]
    session.execute("SET search_path = library")
    answers = [session.execute(statement.encode()) for statement in statements]
    assert [answer.fetchone() is not None for answer in answers if answer.description] == [True] * 3
    session.execute("SET ROLE analyst")
    assert session.execute("SELECT count(*) FROM users").fetchone() is not None
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        session.execute("SELECT email FROM new.users")
    session.execute("RESET ROLE")


@pytest.mark.parametrize("name", [example.name for example in EXAMPLES])
def test_an_example_is_correct_and_alike_on_both_engines(name: str, duckdb_says: Ask, postgres_says: Ask) -> None:
    """Equal value by value, in types and in order; and what the records themselves say."""
    columns, rows = duckdb_says(name)
    postgres_columns, postgres_rows = postgres_says(name)
    assert (postgres_columns, postgres_rows) == (columns, rows)
    assert {tuple(map(type, row)) for row in postgres_rows} == {tuple(map(type, row)) for row in rows}
    assert (len(rows), rows[0], rows[-1]) == ANSWERS[name]

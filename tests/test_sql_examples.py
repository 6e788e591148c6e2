"""Each file in sql/examples answers the question in its first line, on the catalogue of the real library."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest

from cli.demo import QUESTIONS
from cli.query import run_sql
from pipelines.store.catalogue import open_catalogue
from pipelines.store.snapshots import DataFolder
from tests.cli.command import ROOT, Home
from tests.sandbox.process import SandboxProcess

EXAMPLES = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "sql" / "examples").glob("*.sql")}
RECORDS = 5445

Rows = list[dict[str, Any]]
Ask = Callable[[str], Rows]


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The real library, backed up by the command."""
    folder = tmp_path_factory.mktemp("examples")
    with SandboxProcess("--tenant=library=real", "--requests-per-minute", "0") as sandbox:
        assert Home.make(folder, sandbox, "library").backup("--json").document["complete"] is True
    with open_catalogue(DataFolder(folder / "library-data")) as database:
        yield database


@pytest.fixture
def ask(catalogue: duckdb.DuckDBPyConnection) -> Ask:
    """The rows of an example, as dictionaries."""

    def answer(name: str) -> Rows:
        columns, rows = run_sql(catalogue, EXAMPLES[name])
        return [dict(zip(columns, row, strict=True)) for row in rows]

    return answer


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_asks_a_question_and_gets_an_answer(name: str, ask: Ask) -> None:
    assert re.match(r"-- [A-Z].*\?", EXAMPLES[name])
    rows = ask(name)
    assert rows
    assert rows == ask(name), "the same answer every time, in the same order"


def test_the_demonstration_asks_what_is_there() -> None:
    assert set(QUESTIONS) <= set(EXAMPLES)


def test_the_collection_by_decade_counts_every_record_once(ask: Ask) -> None:
    rows = ask("collection_by_decade")
    kinds = ("articles", "books", "reports", "others")
    assert sum(row["publications"] for row in rows) == RECORDS
    assert all(sum(row[kind] for kind in kinds) == row["publications"] for row in rows)
    decades = [row["published"] for row in rows]
    assert (decades[0], decades[-2:]) == ("before 1900", ["2020s", "no date"])
    assert decades[1:-1] == sorted(decades[1:-1])
    (nineties,) = [row for row in rows if row["published"] == "1990s"]
    assert (nineties["articles"], nineties["books"], nineties["reports"]) == (199, 179, 95)


def test_gaps_by_kind_are_counted_by_record(ask: Ask, catalogue: duckdb.DuckDBPyConnection) -> None:
    rows = ask("gaps_by_kind")
    assert {row["kind"]: row["records"] for row in rows} == {"Article": 2480, "Book": 1867, "Report": 1098}
    assert all(0 <= row[gap] <= row["records"] for row in rows for gap in row if gap.startswith("no_"))
    with_author = catalogue.execute("SELECT count(DISTINCT publication_id) FROM publication_authors").fetchall()
    assert sum(row["records"] - row["no_author"] for row in rows) == with_author[0][0]
    undated = catalogue.execute("SELECT count(*) FROM publications WHERE published_on IS NULL").fetchall()
    assert sum(row["no_date"] for row in rows) == undated[0][0] == 220


def test_possible_duplicates_share_their_identifier(ask: Ask, catalogue: duckdb.DuckDBPyConnection) -> None:
    """An ISBN on an article names the book it is in: no duplicate."""
    rows = ask("possible_duplicates")
    assert rows[0]["identifier"] == "10.1021/nl503556a"
    assert rows[0]["first_title"].startswith("Catalyst Orientation-Induced Growth")
    for row in rows:
        ids = row["ids"].split(", ")
        assert len(set(ids)) == row["records"] > 1
        holders = catalogue.execute(
            "SELECT p.id, p.publishable_type FROM publication_identifiers AS i JOIN publications AS p ON p.id = i.publication_id "
            "WHERE (i.type, i.value) = (?, ?)",
            [row["type"], row["identifier"]],
        ).fetchall()
        assert set(ids) <= {str(holder) for holder, _kind in holders}
        assert row["type"] == "doi" or {kind for holder, kind in holders if str(holder) in ids} == {"Book"}


def test_identifiers_by_kind_count_every_one_once(ask: Ask, catalogue: duckdb.DuckDBPyConnection) -> None:
    rows = ask("identifiers_by_kind")
    assert [row["type"] for row in rows] == ["doi", "isbn", "issn", "pmid", "arxiv_id"]
    assert all(row["filled"] == row["different"] + row["repeated"] for row in rows)
    assert (
        sum(row["filled"] for row in rows)
        == catalogue.execute("SELECT count(*) FROM publication_identifiers").fetchall()[0][0]
    )


def test_the_publications_with_most_files(ask: Ask) -> None:
    rows = ask("publications_with_most_files")
    assert len(rows) == 5
    assert [row["files"] for row in rows] == sorted((row["files"] for row in rows), reverse=True)
    assert all(row["bytes"] > 0 and row["title"] for row in rows)

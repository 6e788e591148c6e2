"""docs/analysts.md is true: each of its blocks is run as it is written, on the demonstration.

The SQL of its Postgres part runs where the examples do (tests/test_sql_examples.py).
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pipelines.analysis import library
from pipelines.errors import ConfigurationError
from pipelines.records.tables.registry import RAW_TABLES, TABLES
from pipelines.store.catalogue import SNAPSHOTS
from tests.cli.command import ROOT, environment, run

NOTEBOOK = ROOT / "docs" / "analysts.ipynb"
PAGE = (ROOT / "docs" / "analysts.md").read_text(encoding="utf-8")
HERE, _, AFTER = PAGE.partition("\n## Postgres\n")
POSTGRES, _, ICEBERG = AFTER.partition("\n## Iceberg\n")


def blocks(language: str, text: str = HERE) -> list[str]:
    """The blocks of a language, in the order of the page."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder after `make demo`."""
    folder = tmp_path_factory.mktemp("analyst")
    assert run("demo", "--backup-only", "--json", folder=folder).status == 0
    return folder


@pytest.mark.long
def test_the_commands_work_as_written(checkout: Path) -> None:
    """In the order of the page. What a shell does with `echo ... |` and `> file` is done here."""
    first, *lines = "".join(blocks("sh")).splitlines()
    name, _, value = first.removeprefix("export ").partition("=")
    form = re.compile(r"(?:echo \"(?P<typed>.*?)\" \| )?\.venv/bin/bookferry (?P<words>.*?)(?: > (?P<file>\S+))?")
    for line in lines:
        if line.startswith("cp "):
            _, example, target = shlex.split(line)
            shutil.copy(ROOT / example, checkout / target)
            continue
        written = form.fullmatch(line)
        assert written is not None, line
        outcome = run(
            *shlex.split(written["words"]), folder=checkout, variables={name: value}, typed=written["typed"] or ""
        )
        assert (outcome.status, outcome.err) == (0, ""), line
        assert outcome.out, line
        if written["file"]:
            (checkout / written["file"]).write_text(outcome.out, encoding="utf-8")
    assert len(lines) >= 10
    assert (checkout / "answer.parquet").stat().st_size > 0


def test_the_sql_works_as_written(checkout: Path) -> None:
    tables = library(checkout / "bookferry-demo" / "bookferry.toml")
    statements = [statement for block in blocks("sql") for statement in tables.connection.extract_statements(block)]
    assert len(statements) >= 7
    for statement in statements:
        answer = tables.connection.execute(statement)
        assert "publications_deleted" in statement.query or answer.fetchone() is not None, statement.query


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of DuckDB, for a time with its zone
def test_the_python_works_as_written(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout)
    monkeypatch.setenv("BOOKFERRY_CONFIG", "bookferry-demo/bookferry.toml")
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(compile(block, "docs/analysts.md", "exec"), names)
    assert (len(names["books"]), names["batch"].num_rows) == (1867, 445)
    assert {len(rows) for rows in names["evolved"].values()} == {5445}


def test_iceberg_works_as_written(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/store/iceberg/test_readers.py has Ray."""
    shutil.copytree(checkout, tmp_path, dirs_exist_ok=True)
    config = tmp_path / "bookferry-demo" / "bookferry.toml"
    config.write_text(f"{config.read_text()}\n[iceberg]\n")
    assert run("stage", "--config", str(config), folder=tmp_path).status == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    names: dict[str, Any] = {}
    for block in blocks("python", ICEBERG):
        exec(compile(block, "docs/analysts.md", "exec"), names)
    names["catalog"].close()
    assert names["rows"].num_rows == 5445


def test_tables_are_attributes(checkout: Path) -> None:
    """Completion offers them, too; the error for a table that does not exist names the one that was meant."""
    config = str(checkout / "bookferry-demo" / "bookferry.toml")
    tables = library(config)
    assert {*TABLES, *(table.name for table in RAW_TABLES), SNAPSHOTS.name, "publications_history"} <= set(dir(tables))
    assert "publications" in repr(tables)
    assert not hasattr(tables, "publication")
    with pytest.raises(AttributeError, match="did you mean 'publications'"):
        tables.publication  # noqa: B018
    with pytest.raises(ConfigurationError, match="There is no table"):
        tables.table("no table")
    assert library(config).publications.aggregate("count(*)").fetchall() == [(5445,)], "whoever lets go of it"
    assert [row[0] for row in tables.example("gaps_by_kind").fetchall()] == ["demo"] * 3


def shown(notebook: Path) -> list[tuple[str, list[dict[str, Any]]]]:
    """Each cell of code, and what it shows: texts and tables as they are, pictures by their kind."""
    cells = [cell for cell in json.loads(notebook.read_bytes())["cells"] if cell["cell_type"] == "code"]
    return [("".join(cell["source"]), [_output(output) for output in cell["outputs"]]) for cell in cells]


def _output(output: dict[str, Any]) -> dict[str, Any]:
    data = {kind: "a picture" if kind.startswith("image/") else value for kind, value in output.get("data", {}).items()}
    return {"kind": output["output_type"], "text": output.get("text"), **data}


@pytest.mark.long
def test_the_notebook_shows_what_a_run_shows(checkout: Path) -> None:
    """On the demonstration; what is stored in the file was made by a run, and is not stale."""
    (checkout / "docs").mkdir()
    process = subprocess.run(
        [sys.executable, "-m", "tests.notebook", NOTEBOOK, checkout / "run.ipynb", checkout / "docs"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    stored = shown(NOTEBOOK)
    assert shown(checkout / "run.ipynb") == stored, "docs/analysts.ipynb is stale: run `make docs`"
    pictures = [output for _, outputs in stored for output in outputs if "image/png" in output]
    assert len(pictures) == 2

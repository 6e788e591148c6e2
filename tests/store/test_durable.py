"""The error of any library on a failing disk becomes one helpful message."""

from __future__ import annotations

import errno
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipelines.errors import StorageError
from pipelines.records.tables.description import Column, Table
from pipelines.store.catalogue import damage_named, open_catalogue
from pipelines.store.durable import storage_error, storage_errors
from pipelines.store.findings import open_findings
from pipelines.store.parquet import table_writer
from pipelines.store.snapshots.snapshots import DataFolder, reading
from tests.store.snapshot_factory import make_snapshot


def disk_error() -> sqlite3.OperationalError:
    """SQLite's error where it can write neither its file nor its journal."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    return error


def test_an_io_error_on_a_disk_with_space_keeps_its_message(tmp_path: Path) -> None:
    message = str(storage_error(disk_error(), tmp_path / "state.db"))
    assert "disk I/O error" in message
    assert "full" not in message


def raise_of_sqlite(statement: str, *values: object) -> None:
    database = sqlite3.connect(":memory:")
    try:
        database.execute("CREATE TABLE t (n INTEGER NOT NULL)")
        database.execute(statement, values)
    finally:
        database.close()


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: pa.array(["x"]).cast(pa.int64()),
        lambda: pa.array([1, "x"]),
        lambda: pa.array([{}], pa.int64()),
        lambda: pa.table({"a": [1]}).column("b"),
        lambda: pc.take(pa.array(["x"]), pa.array([], pa.null())),
        lambda: raise_of_sqlite("INSERT INTO t VALUES (?)"),
        lambda: raise_of_sqlite("INSERT INTO t VALUES (?)", None),
        lambda: raise_of_sqlite("INSERT INTO t VALUES (?)", object()),
        lambda: raise_of_sqlite("SELECT missing FROM t"),
        lambda: duckdb.sql("SELECT missing FROM range(1)"),
        lambda: duckdb.sql("SELECT CAST('x' AS INTEGER)").fetchall(),
        lambda: duckdb.sql("SELEC 1"),
    ],
)
@pytest.mark.parametrize("path", ["none", "sound.parquet", ""])
def test_a_mistake_of_ours_is_no_fault_of_the_disk(tmp_path: Path, mistake: Callable[[], object], path: str) -> None:
    """There is nothing for a person to mend, and nothing goes on after it."""
    pq.write_table(pa.table({"a": [1]}), tmp_path / "sound.parquet")
    with pytest.raises(Exception) as caught, storage_errors(tmp_path / path):  # noqa: PT011  any kind
        mistake()
    assert not isinstance(caught.value, StorageError)


def test_values_that_do_not_fit_are_no_fault_of_a_file_that_is_written(tmp_path: Path) -> None:
    """Although the file is not complete yet."""
    table = Table("t", "A table.", ("n",), (Column("n", pa.int64(), "A number."),))
    with pytest.raises((ValueError, TypeError)), table_writer(tmp_path / "t.parquet", table) as writer:
        writer.write(pa.table({"n": ["x"]}))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-9]), "has "),
    "flipped": (
        lambda path: path.write_bytes(
            path.read_bytes()[:4] + bytes(x ^ 90 for x in path.read_bytes()[4:-8]) + path.read_bytes()[-8:]
        ),
        "was changed: its SHA-256 is",
    ),
    "empty": (lambda path: path.write_bytes(b""), "has 0 bytes"),
    "no Parquet": (lambda path: path.write_text("no Parquet" * 500), "has 5,000 bytes"),
    "folder": (lambda path: (path.unlink(), path.mkdir()), "is missing"),
    "deleted": (lambda path: path.unlink(), "is missing"),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["publications.parquet", "raw/publications.parquet"])
def test_a_damaged_file_of_a_snapshot_is_named(tmp_path: Path, damage: str, name: str) -> None:
    """Whatever reads it; what a person sees has the command that says more."""
    snapshot = make_snapshot(DataFolder(tmp_path / "data"))
    path = snapshot.path / name
    spoil, words = DAMAGE[damage]
    spoil(path)
    for read in (
        lambda: pq.ParquetFile(path).read(),
        lambda: duckdb.sql(f"SELECT * FROM read_parquet('{path}')").fetchall(),
    ):
        with pytest.raises(StorageError) as caught, reading(snapshot), storage_errors(tmp_path):
            read()
        assert str(caught.value).startswith(f"{path} {words}"), caught.value
        assert f"`bookferry snapshots verify {snapshot.name}`" in str(caught.value)


def test_a_sound_file_of_another_table_is_damage(tmp_path: Path) -> None:
    """Whoever reads it: Arrow and DuckDB take it as it is."""
    data = DataFolder(tmp_path / "data")
    snapshot = make_snapshot(data)
    facts = snapshot.manifest.tables["publications"]
    assert snapshot.sound_address_of(facts) == snapshot.address_of(facts)
    copyfile(snapshot.path / "publication_authors.parquet", snapshot.path / "publications.parquet")
    with pytest.raises(StorageError, match=r"publications\.parquet has .* bytes instead of .*snapshots verify"):
        snapshot.sound_address_of(facts)
    with pytest.raises(StorageError, match="is damaged"), data.open_table(snapshot, "publications"):
        pass
    with pytest.raises(StorageError, match="is damaged"), open_findings(data, snapshot, tmp_path):
        pass


def test_damage_is_named_in_a_store_of_each_kind(stored: DataFolder, tmp_path: Path) -> None:
    """By whoever reads it; the tables of other snapshots can be queried."""
    sound, snapshot = make_snapshot(stored, tenant="new"), make_snapshot(stored)
    facts = snapshot.manifest.tables["publications"]
    content = stored.objects.read(f"{snapshot.key}/{facts.path}")
    stored.objects.replace(f"{snapshot.key}/{facts.path}", content[:4] + bytes(len(content) - 12) + content[-8:])
    damage = re.escape(f"{snapshot.address_of(facts)} was changed") + ".*snapshots verify old/"
    with pytest.raises(StorageError, match=damage), stored.open_table(snapshot, "publications") as file:
        file.read()
    with pytest.raises(StorageError, match=damage), open_findings(stored, snapshot, tmp_path) as findings:
        findings.figures()
    with open_catalogue(stored) as database, pytest.raises(StorageError, match=damage), damage_named(stored):
        database.execute("SELECT title FROM publications").fetchall()
    with open_findings(stored, sound, tmp_path) as findings:
        assert findings.figures().publications == 3


def test_a_full_disk_is_no_damage(tmp_path: Path) -> None:
    """Beside a damaged file, too. Nor is a snapshot that was removed meanwhile."""
    snapshot = make_snapshot(DataFolder(tmp_path / "data"))
    (snapshot.path / "publications.parquet").unlink()
    for number in (errno.ENOSPC, errno.EACCES, errno.EIO):
        with pytest.raises(StorageError) as caught, storage_errors(tmp_path), reading(snapshot):
            raise OSError(number, "x")
        assert "snapshots verify" not in str(caught.value)
    (snapshot.path / "manifest.json").unlink()
    with pytest.raises(ValueError, match="x"), reading(snapshot):
        raise ValueError("x")

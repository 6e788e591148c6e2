"""The error of any library on a failing disk becomes one helpful message."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from pipelines.errors import StorageError
from pipelines.store.durable import storage_error, storage_errors


def disk_error() -> sqlite3.OperationalError:
    """SQLite's error where it can write neither its file nor its journal."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    return error


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk without a free byte; needs the superuser."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_an_io_error_on_a_full_disk_is_reported_as_a_full_disk(full_disk: Path) -> None:
    """With and without an existing file."""
    for path in (full_disk, full_disk / "not" / "yet" / "there.db"):
        assert "the disk is full. Free some space" in str(storage_error(disk_error(), path))


def test_an_io_error_on_a_disk_with_space_keeps_its_message(tmp_path: Path) -> None:
    message = str(storage_error(disk_error(), tmp_path / "state.db"))
    assert "disk I/O error" in message
    assert "full" not in message


@pytest.mark.parametrize("error", [sqlite3.OperationalError("no such table: x"), ValueError("disk I/O error")])
def test_other_errors_on_a_full_disk_keep_their_message(full_disk: Path, error: Exception) -> None:
    """A full disk does not explain every error on it."""
    assert "disk is full" not in str(storage_error(error, full_disk))


def test_a_statement_that_duckdb_does_not_understand_is_no_fault_of_the_disk(tmp_path: Path) -> None:
    """There is nothing for a person to mend: the error is reported as a mistake of ours."""
    with pytest.raises(duckdb.BinderException), storage_errors(tmp_path):
        duckdb.sql("SELECT missing FROM range(1)")
    with pytest.raises(StorageError), storage_errors(tmp_path):
        duckdb.sql(f"SELECT * FROM read_parquet('{tmp_path}/none.parquet')")

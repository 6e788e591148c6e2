"""Encrypted tables: any engine with Parquet's encryption reads them with the key, and no engine without."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from pipelines.errors import StorageError
from pipelines.records.tables.other_resources import USERS
from pipelines.store.parquet import open_in_duckdb, open_table, table_writer
from tests.store.snapshot_factory import KEY, OTHER

PEOPLE = pa.table(
    {
        "id": [1, 2],
        "email": ["ann@people.example", "bo@people.example"],
        "name": ["Ann Unmistakable", "Bo Unmistakable"],
        "residue": ['{"phone":"+43 1 5555"}', "{}"],
        "sha256": ["a" * 64, "b" * 64],
    },
    USERS.schema,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The users, encrypted."""
    path = tmp_path / "users.parquet"
    with table_writer(path, USERS, KEY) as writer:
        writer.write(PEOPLE)
    return path


def test_the_file_reveals_neither_a_person_nor_the_table(file: Path) -> None:
    content = file.read_bytes()
    assert content.startswith(b"PARE")  # Parquet's mark of an encrypted footer
    assert not [
        word for word in (b"people.example", b"Unmistakable", b"email", b"phone", KEY.secret) if word in content
    ]


@pytest.mark.long
def test_duckdb_alone_reads_it_with_the_key_only(file: Path) -> None:
    """With the SQL of docs/operating.md."""
    page = (Path(__file__).parents[2] / "docs" / "operating.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```sql\n(PRAGMA.*?)^```", page, re.MULTILINE | re.DOTALL)
    set_key, ask = block.replace("users.parquet", str(file)).replace("id = 7", "id = 2").splitlines()
    with duckdb.connect() as database:
        with pytest.raises(duckdb.Error, match="is encrypted"):
            database.execute(f"SELECT * FROM '{file}'")
        database.execute(set_key.replace("<the key in base64>", OTHER.text))
        with pytest.raises(duckdb.Error, match="right key"):
            database.execute(ask)
    with duckdb.connect() as database:
        database.execute(set_key.replace("<the key in base64>", KEY.text))
        assert database.execute(ask).fetchall() == [("bo@people.example",)]


def test_bookferry_reads_it_with_the_key_only(file: Path) -> None:
    with open_table(file, KEY) as table:
        assert table.read().equals(PEOPLE)
    with open_in_duckdb(file, KEY) as database:
        assert database.execute("SELECT count(email) FROM file").fetchall() == [(2,)]
    for key in (None, OTHER):
        with pytest.raises(StorageError), open_in_duckdb(file, key) as database:
            database.execute("SELECT * FROM file")


def test_duckdbs_spill_files_are_encrypted(file: Path) -> None:
    with open_in_duckdb(file, KEY) as database:
        assert database.execute("SELECT current_setting('temp_file_encryption')").fetchall() == [(True,)]

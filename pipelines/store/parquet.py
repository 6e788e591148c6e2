"""Parquet files of a capture or a snapshot: every one of ours is written and opened here, with the key where it is encrypted.

Encryption is Parquet's own (AES-GCM, one key for the footer and all columns), so that pyarrow, DuckDB and others read it with the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.parquet import encryption as _encryption

from pipelines.records.tables.description import Table
from pipelines.store.durable import storage_errors
from pipelines.store.encryption import PersonalKey

COMPRESSION_LEVEL = 1
"""zstd's fastest: half the size of snappy on abstracts, and still not the bottleneck."""

_ONE_PAGE = 1 << 30
"""Bytes and rows of a page at most, where a file is encrypted: every column of a row group is one page. DuckDB 2.0 loses count of encrypted
pages where there are several, and finds that they do not fit their places. A row group is one batch, so that its pages are small, too."""

encryption: Any = _encryption
"""The stubs are older than pyarrow 26, which takes a key of ours."""

_PROSE = frozenset({"payload", "abstract", "title", "residue"})
_NAMES = frozenset({"sha256", "content_key", "file_id", "filename", "cover_id", "value", "raw"})
_JSON = frozenset({"content", "fingerprint", "authors", "identifiers", "identifiers_sent", "files"})
_HARDLY_REPEATED = _PROSE | _NAMES | _JSON
"""Columns in which a dictionary would only cost time, and whose least and greatest value tell nothing."""


class TableWriter:
    """Writes one Parquet file, a row group for every batch; memory does not grow with the rows."""

    def __init__(self, writer: pq.ParquetWriter, path: Path) -> None:
        self._writer = writer
        self._path = path
        self.rows = 0

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append some rows of the table's schema."""
        if batch.num_rows == 0:
            return
        with storage_errors(self._path):
            self._writer.write(batch)
        self.rows += batch.num_rows


@contextmanager
def table_writer(path: Path, table: Table, key: PersonalKey | None = None) -> Iterator[TableWriter]:
    """A writer for one file, encrypted where there is a `key`; the file is whole when the block ends without an error."""
    schema = table.schema
    encrypted: dict[str, Any] = {}
    if key is not None:
        properties = encryption.create_encryption_properties(footer_key=key.secret)
        encrypted = {"encryption_properties": properties, "data_page_size": _ONE_PAGE, "max_rows_per_page": _ONE_PAGE}
    with storage_errors(path):
        writer = pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            compression_level=COMPRESSION_LEVEL,
            use_dictionary=[name for name in schema.names if name not in _HARDLY_REPEATED],  # type: ignore[arg-type] # the stubs know bool only
            write_statistics=[name for name in schema.names if name not in _HARDLY_REPEATED],
            **encrypted,
        )
    try:
        yield TableWriter(writer, path)
    except BaseException:
        with suppress(Exception):  # what went wrong first is what counts
            writer.close()
        raise
    with storage_errors(path):
        writer.close()


def open_table(source: Path | BinaryIO, key: PersonalKey | None = None) -> pq.ParquetFile:
    """One file, to be read in parts; to be closed."""
    decryption = encryption.create_decryption_properties(footer_key=key.secret) if key else None
    return pq.ParquetFile(source, decryption_properties=decryption)


def read_parquet(addresses: Sequence[str], fingerprint: str = "", options: str = "") -> str:
    """What DuckDB selects from, for some files, all of them encrypted with the key of that name, or none; see `lend`."""
    given = [f"[{', '.join(map(literal, addresses))}]", *([options] if options else [])]
    if not fingerprint:
        return f"read_parquet({', '.join(given)})"
    given.append(f"encryption_config = {{footer_key: {literal(fingerprint)}}}")
    # OFFSET 0 keeps filters out of the reader: DuckDB 2.0 skips what they do not need, and then decrypts the next page as another one
    return f"(SELECT * FROM read_parquet({', '.join(given)}) OFFSET 0)"  # noqa: S608  addresses of ours, quoted


def lend(database: duckdb.DuckDBPyConnection, key: PersonalKey | None) -> None:
    """Let a connection read what is encrypted with the key; what it spills to disk is then encrypted, too."""
    if key is None:
        return
    database.execute("SET temp_file_encryption = true")
    try:
        database.execute(f"PRAGMA add_parquet_key({literal(key.fingerprint)}, {literal(key.text)})")
    except duckdb.Error:  # its message may show the statement
        raise RuntimeError("DuckDB does not take the key for personal data") from None


@contextmanager
def reading(path: Path, key: PersonalKey | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A small DuckDB with the Parquet file at `path` as the view `file`; what it spills goes beside the file."""
    limits: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": "128MB",
        "threads": 1,
        "temp_directory": str(path.parent / ".spilled"),
    }
    with storage_errors(path), duckdb.connect(config=limits) as database:
        show(database, "file", exactly(path), key)
        yield database


def show(database: duckdb.DuckDBPyConnection, view: str, address: str, key: PersonalKey | None = None) -> None:
    """Make one file a view of a connection."""
    lend(database, key)
    source = read_parquet([address], key.fingerprint if key else "")
    database.execute(f"CREATE VIEW {view} AS SELECT * FROM {source}")  # noqa: S608  an address of ours, quoted


def row_batches(
    file: pq.ParquetFile, columns: Sequence[str] | None = None, rows: int | None = None
) -> Iterator[pa.RecordBatch]:
    """All rows, at most `rows` at a time. One row group after the other: `ParquetFile.iter_batches` keeps what it has read (Arrow 26)."""
    for group in range(file.num_row_groups):
        found = file.read_row_group(group, columns=None if columns is None else list(columns))
        yield from found.to_batches(max_chunksize=rows)


def exactly(address: Path | str) -> str:
    """A path or address that DuckDB takes as it stands, not as a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", str(address))


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def quoted(*names: str) -> str:
    """A name in SQL, or one in a schema."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)

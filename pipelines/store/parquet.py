"""Parquet files of captures and snapshots: all of them are written and opened here, with the key where they are encrypted.

The encryption is Parquet's own (AES-GCM, one key for the footer and all columns), so that pyarrow, DuckDB and others can read it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.parquet import encryption as _encryption

from pipelines.records.tables.description import Table
from pipelines.records.tables.field_ids import staged_schema
from pipelines.store.durable import storage_errors
from pipelines.store.encryption import PersonalKey

if TYPE_CHECKING:
    import duckdb

COMPRESSION_LEVEL = 1
"""zstd's fastest level: half the size of snappy on abstracts, and never the bottleneck."""

_ONE_PAGE = 1 << 30
"""Limit of a page, in bytes and rows, in an encrypted file: each column of a row group becomes one page. DuckDB 2.0 miscounts encrypted
pages where a column has several, and then fails to decrypt them. A row group is one batch, so that its pages stay small."""

encryption: Any = _encryption
"""pyarrow's stubs are older than pyarrow 26, which takes a key from the caller."""

_PROSE = frozenset({"payload", "abstract", "title", "residue"})
_NAMES = frozenset({"sha256", "content_key", "file_id", "filename", "cover_id", "value", "raw"})
_JSON = frozenset({"content", "fingerprint", "authors", "identifiers", "identifiers_sent", "files"})
_HARDLY_REPEATED = _PROSE | _NAMES | _JSON
"""Columns whose values hardly repeat: a dictionary would only cost time, and minimum and maximum would help no query."""

_WITHOUT_DICTIONARY = _HARDLY_REPEATED | {"id", "publication_id", "asset_id", "size"}
"""These, and numbers that hardly repeat: without a dictionary the files are smaller, too."""


class TableWriter:
    """Writes one Parquet file, a row group per batch; memory does not grow with the rows. `stamp`: see `table_writer`."""

    def __init__(self, writer: pq.ParquetWriter, path: Path, stamp: Mapping[str, str]) -> None:
        self._writer = writer
        self._path = path
        self._stamp = stamp
        self.rows = 0

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows of the table's schema."""
        if batch.num_rows == 0:
            return
        for name, value in self._stamp.items():
            values = pa.repeat(pa.scalar(value), batch.num_rows)
            batch = batch.append_column(pa.field(name, values.type, nullable=False), values)
        with storage_errors(self._path):
            self._writer.write(batch)
        self.rows += batch.num_rows


@contextmanager
def table_writer(
    path: Path, table: Table, key: PersonalKey | None = None, stamp: Mapping[str, str] | None = None
) -> Iterator[TableWriter]:
    """A writer for one file, encrypted where there is a `key`. The file is complete when the block ends without an error.

    `stamp`: the values of `tenant` and `snapshot`, for a staged table, whose file has these columns and field ids.
    """
    schema = table.schema if stamp is None else staged_schema(table)
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
            use_dictionary=[name for name in schema.names if name not in _WITHOUT_DICTIONARY],  # type: ignore[arg-type] # the stubs know bool only
            write_statistics=[name for name in schema.names if name not in _HARDLY_REPEATED],
            **encrypted,
        )
    try:
        yield TableWriter(writer, path, stamp or {})
    except BaseException:
        with suppress(Exception):  # the first error is the one to report
            writer.close()
        raise
    with storage_errors(path):
        writer.close()


def open_table(source: Path | BinaryIO, key: PersonalKey | None) -> pq.ParquetFile:
    """Open one file for reading in parts. The caller closes it. One that is no Parquet raises `OSError`, as a missing one does."""
    decryption = encryption.create_decryption_properties(footer_key=key.secret) if key else None
    try:
        return pq.ParquetFile(source, decryption_properties=decryption)
    except pa.ArrowInvalid as error:
        raise OSError(str(error)) from error


def read_parquet(addresses: Sequence[str], fingerprint: str = "", options: str = "") -> str:
    """The SQL source of some files, all of them encrypted with the key of this fingerprint, or none. See `register_key`."""
    arguments = [f"[{', '.join(map(literal, addresses))}]", *([options] if options else [])]
    if not fingerprint:
        return f"read_parquet({', '.join(arguments)})"
    arguments.append(f"encryption_config = {{footer_key: {literal(fingerprint)}}}")
    # OFFSET 0 keeps filters out of the reader: DuckDB 2.0 skips pages that a filter excludes, and then decrypts the next one as another
    return f"(SELECT * FROM read_parquet({', '.join(arguments)}) OFFSET 0)"  # noqa: S608  addresses of ours, quoted


def register_key(database: duckdb.DuckDBPyConnection, key: PersonalKey | None) -> None:
    """Let a connection read files encrypted with this key. Its spill files are encrypted, too."""
    if key is None:
        return
    import duckdb  # noqa: PLC0415  see `bounded_duckdb`

    database.execute("SET temp_file_encryption = true")
    try:
        database.execute(f"PRAGMA add_parquet_key({literal(key.fingerprint)}, {literal(key.text)})")
    except duckdb.Error:  # its message may show the statement
        raise RuntimeError("DuckDB does not accept the key for personal data") from None


def connect_duckdb(path: Path | None = None, *, read_only: bool = False, **limits: Any) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB, in memory without a path. It draws no progress bar: that would stand on standard output, within a command's JSON."""
    import duckdb  # noqa: PLC0415  commands that only list snapshots start without it

    database = duckdb.connect(str(path or ":memory:"), read_only=read_only, config=limits)
    database.execute("SET enable_progress_bar = false")
    return database


def bounded_duckdb(memory: str, threads: int, spilled: Path) -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory that spills to the folder `spilled` rather than use more than `memory`, such as 128MB."""
    return connect_duckdb(memory_limit=memory, threads=threads, temp_directory=str(spilled))


@contextmanager
def open_in_duckdb(path: Path, key: PersonalKey | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A small DuckDB with the Parquet file at `path` as the view `file`. It spills to a folder beside the file.

    `as_json(payload)` is a payload as DuckDB reads it: half a pair of surrogates and control characters, which it refuses, are replaced.
    """
    with storage_errors(path), bounded_duckdb("128MB", 1, path.parent / ".spilled") as database:
        create_view(database, "file", escaped(path), key)
        database.execute(_AS_JSON)
        yield database


_AS_JSON = r"""
CREATE TEMP MACRO with_plain_text(payload) AS
    regexp_replace(regexp_replace(payload, '\\u[dD][89a-fA-F][0-9a-fA-F]{2}', '\\ufffd', 'g'), '[\x00-\x1f]', ' ', 'g');
CREATE TEMP MACRO as_json(payload) AS
    CASE WHEN json_valid(payload) THEN payload WHEN json_valid(with_plain_text(payload)) THEN with_plain_text(payload) END
"""


def create_view(database: duckdb.DuckDBPyConnection, view: str, address: str, key: PersonalKey | None = None) -> None:
    """Create a view over one file. One that is no Parquet, or that this key does not open, raises `OSError`, as a missing one does."""
    import duckdb  # noqa: PLC0415  see `connect_duckdb`

    register_key(database, key)
    source = read_parquet([address], key.fingerprint if key else "")
    try:
        database.execute(f"CREATE VIEW {view} AS SELECT * FROM {source}")  # noqa: S608  an address of ours, quoted
    except duckdb.InvalidInputException as error:
        raise OSError(str(error).partition("\n")[0]) from error


def row_batches(
    file: pq.ParquetFile, columns: Sequence[str] | None = None, rows: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Yields all rows, at most `rows` per batch, a row group at a time: `ParquetFile.iter_batches` keeps what it has read (Arrow 26)."""
    for group in range(file.num_row_groups):
        group_rows = file.read_row_group(group, columns=None if columns is None else list(columns))
        yield from group_rows.to_batches(max_chunksize=rows)


def rows_among(rows: pa.RecordBatch, column: str, values: Collection[str]) -> pa.RecordBatch:
    """The rows with one of these values, before any of them is decoded; all rows without values."""
    if not values:
        return rows
    import pyarrow.compute as pc  # noqa: PLC0415  only plans choose rows, and its import takes long

    value_set = pa.array(list(map(str, values)), pa.string())
    return rows.filter(pc.is_in(rows.column(column), value_set=value_set))


def escaped(address: Path | str) -> str:
    """Escapes a path or address, so that DuckDB does not take it as a pattern."""
    return re.sub(r"([*?\[])", r"[\1]", str(address))


def literal(text: str) -> str:
    """A string literal in SQL."""
    return "'" + text.replace("'", "''") + "'"


def quoted(*names: str) -> str:
    """A quoted identifier in SQL, with its schema if there are two names."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)

"""A capture: the folder in which one snapshot grows until it is proved and published. No reader looks into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow.parquet as pq

from pipelines.errors import StorageError
from pipelines.records.tables.description import Table
from pipelines.records.tables.registry import PERSONAL_TABLES, raw_table
from pipelines.store.durable import storage_errors, write_atomically
from pipelines.store.encryption import PersonalKey, PersonalKeys
from pipelines.store.parquet import TableWriter, open_table, reading, table_writer
from pipelines.store.snapshots.page_log import PageLog


class ResourceFacts(msgspec.Struct, kw_only=True):
    """What reading one resource gave: a part of the manifest."""

    endpoint: str
    records: int
    distinct_ids: int
    without_id: int
    pages: int
    x_total: int | None
    requests: int
    seconds: float
    complete: bool
    problems: list[str]
    """What keeps the listing from being complete."""
    notes: list[str] = []
    """What a person should know of the proof although it holds."""
    added: int = 0
    deleted: int = 0
    """By how much X-Total grew and shrank while it was read; the affected pages were read again until they fitted together."""
    read_again: int = 0
    """Pages that were read again because of that."""
    walks: int = 1
    """How often the listing was begun because nobody could tell what had moved."""
    resumed: int = 0
    """Pages that an earlier run had read, which was broken off."""


class Unreadable(msgspec.Struct, kw_only=True):
    """A resource that the service does not let us read, or not in a way we understand: nothing of it is in the snapshot."""

    status: int | None
    """HTTP status of the refusal; none where the answer is no listing."""
    message: str
    """What was tried, what came back in the service's own words, and what to do."""
    missing_scopes: list[str] = []
    """What the token lacks, where the service says so."""
    partial: bool
    """Whether the snapshot is partial without it: it was asked for by name, is the publications, or has a form that is not understood."""
    requests: int


class TableFacts(msgspec.Struct):
    """One file of a snapshot: `path` is relative to the snapshot's folder."""

    path: str
    rows: int
    bytes: int
    sha256: str = ""
    encrypted: bool = False
    key: str = ""
    """Fingerprint of the key it is encrypted with."""


class FailedFile(msgspec.Struct):
    """One file whose content could not be had. Its name comes from outside."""

    publication_id: int | None
    kind: str
    asset_id: int | None
    name: str | None
    problem: str


class FileTotals(msgspec.Struct):
    """What became of the files that the records name."""

    count: int = 0
    """Files that the records name: rows of publication_files."""
    bytes: int = 0
    """Of the content that is kept, each content counted once."""
    new: int = 0
    """Contents that were fetched by this backup."""
    kept: int = 0
    failed: int = 0
    not_fetched: int = 0
    """Nobody asked for them: `files = false`, or --no-files."""
    failures: list[FailedFile] = []
    """The first of those that failed."""


class CaptureFacts(msgspec.Struct, kw_only=True):
    """What is known of a capture so far; kept in capture.json, so that any process can go on with it."""

    tenant: str
    snapshot: str
    base_url: str
    api: str
    started_at: str
    key: str = ""
    """Fingerprint of the key that personal data is encrypted with; empty where it is not."""
    tool: str
    """The version that began it; another one begins anew."""
    wanted: list[str]
    """The resources that its run reads, sorted."""
    walks: dict[str, int] = {}
    """Resource → which walk over it is under way, where it is not the first."""
    spent: dict[str, int] = {}
    """Resource → requests of the walks before."""
    resources: dict[str, ResourceFacts] = {}
    unreadable: dict[str, Unreadable] = {}
    tables: dict[str, TableFacts] = {}
    residue: dict[str, dict[str, int]] = {}
    """Resource → residue key → in how many records."""
    files: FileTotals | None = None
    """None until the files step has ended."""
    files_requests: int = 0
    """Requests to the library for files: on its own host, and for fresh addresses."""


class Capture:
    """One capture on disk. `facts` is read once and written by `save`.

    `key` encrypts what is written of people; without one, it is kept like all else.
    """

    FACTS = "capture.json"

    def __init__(self, path: Path, facts: CaptureFacts, key: PersonalKey | None = None) -> None:
        self.path = path
        self.facts = facts
        self.key = key

    @classmethod
    def create(cls, path: Path, facts: CaptureFacts, key: PersonalKey | None = None) -> Capture:
        """Make the folder and its first capture.json."""
        with storage_errors(path):
            (path / "raw").mkdir(parents=True)
        facts.key = key.fingerprint if key else ""
        capture = cls(path, facts, key)
        capture.save()
        return capture

    @classmethod
    def open(cls, path: Path, keys: PersonalKeys) -> Capture:
        """The capture in `path`; a `StorageError` where there is none, a `ConfigurationError` where its key is not among `keys`."""
        try:
            content = (path / cls.FACTS).read_bytes()
            facts = msgspec.json.decode(content, type=CaptureFacts)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            missing = isinstance(error, FileNotFoundError)
            raise StorageError(
                f"{path}: there is no capture in progress{'' if missing else f' that can be read ({error})'}. The staged tables are "
                "made from a listing of the same run: materialize the raw table together with them, or run `bookferry backup`."
            ) from None
        return cls(path, facts, keys.to_read(facts.key, f"What the unfinished backup in {path} holds of users"))

    def save(self) -> None:
        """Write capture.json."""
        with storage_errors(self.path):
            write_atomically(self.path / self.FACTS, msgspec.json.format(msgspec.json.encode(self.facts)))

    def page_log(self, resource: str) -> PageLog:
        """Keeps the pages of the walk over a resource until its raw table is made."""
        return PageLog(self._pages_path(resource), self.key_of(f"raw_{resource}"))

    def has_pages(self, resource: str) -> bool:
        """Whether any page of a resource was read."""
        path = self._pages_path(resource)
        return path.exists() and path.stat().st_size > 0

    def forget_pages(self, resource: str) -> None:
        """Remove the pages: the raw table holds their records."""
        with storage_errors(self.path):
            self._pages_path(resource).unlink(missing_ok=True)
            with suppress(OSError):
                (self.path / "pages").rmdir()  # once it is empty

    def tidy(self) -> None:
        """Remove what killed processes left beside the tables."""
        named = {self.FACTS, *(table.path for table in self.facts.tables.values())}
        with storage_errors(self.path):
            for path in sorted(self.path.rglob("*"), reverse=True):  # what is in a folder before the folder
                if path.is_dir():
                    with suppress(OSError):
                        path.rmdir()  # only where it is empty
                elif path.relative_to(self.path).as_posix() not in named:
                    path.unlink()

    def _pages_path(self, resource: str) -> Path:
        return self.path / "pages" / resource

    def raw_path(self, resource: str) -> Path:
        """Where the raw records of a resource are."""
        return self.path / "raw" / f"{resource}.parquet"

    def table_path(self, table: Table) -> Path:
        """Where a staged table is."""
        return self.path / f"{table.name}.parquet"

    def key_of(self, table: str) -> PersonalKey | None:
        """What all that is written of a table is encrypted or sealed with, if it is; `raw_users` for a listing on its way."""
        return self.key if table in PERSONAL_TABLES else None

    @contextmanager
    def writer(self, table: Table) -> Iterator[TableWriter]:
        """Writes one staged table."""
        with table_writer(self.table_path(table), table, self.key_of(table.name)) as writer:
            yield writer

    @contextmanager
    def raw_writer(self, resource: str) -> Iterator[TableWriter]:
        """Writes `raw/<resource>.parquet`."""
        with table_writer(self.raw_path(resource), raw_table(resource), self.key_of(f"raw_{resource}")) as writer:
            yield writer

    @contextmanager
    def open_file(self, name: str) -> Iterator[pq.ParquetFile]:
        """The finished file of a table, to be read in parts."""
        path = self.path / self.facts.tables[name].path
        with storage_errors(path), open_table(path, self.key_of(name)) as file:
            yield file

    def add_table(self, name: str, path: Path, rows: int) -> None:
        """Note a finished file; its checksum is taken when the capture is published."""
        key = self.key_of(name)
        self.facts.tables[name] = TableFacts(
            path.relative_to(self.path).as_posix(),
            rows,
            path.stat().st_size,
            encrypted=key is not None,
            key=key.fingerprint if key else "",
        )


class IdCounts(msgspec.Struct):
    """What the ids in a raw file say."""

    rows: int
    distinct: int
    without: int
    twice: list[int | str]
    """Up to ten ids that occur more than once."""
    texts: int = 0
    """Rows whose id is a text that is no whole number; 0 where such texts do not count as ids."""


TEXT_ID = """CASE WHEN id IS NULL AND json_valid(payload) AND json_type(payload, '$.id') = 'VARCHAR'
              THEN json_extract_string(payload, '$.id') END"""


def count_ids(raw_path: Path, key: PersonalKey | None = None, *, texts: bool = False) -> IdCounts:
    """Count ids in the file itself: the proof rests on what is on the disk, not on what we believe we wrote.

    DuckDB reads only the id column, and spills to disk rather than take more memory. `texts`: texts are ids too, so that where an id is
    no whole number the payloads are read as well.
    """
    with reading(raw_path, key) as database:
        counts = _count(database, "id")
        if texts and counts.without:
            others = _count(database, TEXT_ID)
            present = others.rows - others.without
            counts = IdCounts(
                counts.rows,
                counts.distinct + others.distinct,
                counts.without - present,
                [*counts.twice, *others.twice][:10],
                present,
            )
    return counts


KEYS_AT_ONCE = 100_000
"""Keys that are told apart at a time: what that takes does not grow with the library (I11), and reading them again is quick."""


def _count(database: duckdb.DuckDBPyConnection, key: str) -> IdCounts:
    """Rows, distinct values and empty rows of an SQL expression over the file."""
    keys = f"(SELECT {key} AS key FROM file)"  # noqa: S608  an expression of ours
    [(rows, present)] = database.execute(f"SELECT count(*), count(key) FROM {keys}").fetchall()  # noqa: S608
    parts = 1 + present // KEYS_AT_ONCE
    distinct, twice = 0, list[Any]()
    for part in range(parts):
        of_part = f"FROM {keys} WHERE key IS NOT NULL AND hash(key) % {parts} = {part}"
        [(found, different)] = database.execute(f"SELECT count(*), count(DISTINCT key) {of_part}").fetchall()
        distinct += different
        if found != different:
            repeated = f"SELECT key {of_part} GROUP BY key HAVING count(*) > 1 ORDER BY key LIMIT 10"
            twice += [row[0] for row in database.execute(repeated).fetchall()]
    return IdCounts(rows, distinct, rows - present, sorted(twice)[:10])


def count_nulls(capture: Capture, table: Table, columns: Sequence[str]) -> dict[str, int]:
    """Column → rows in which it is empty, from the file of a staged table itself."""
    counts = ", ".join(f'count(*) - count("{column}")' for column in columns)
    with reading(capture.table_path(table), capture.key_of(table.name)) as database:
        [row] = database.execute(f"SELECT {counts} FROM file").fetchall()  # noqa: S608  names of our own descriptions
    return dict(zip(columns, row, strict=True))

"""A capture: the folder in which a snapshot grows until it is proved and published. Readers never see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow.parquet as pq

from pipelines.errors import StorageError
from pipelines.records.tables.description import Table
from pipelines.records.tables.registry import is_personal, raw_table
from pipelines.store.durable import storage_errors, write_atomically
from pipelines.store.encryption import PersonalKey, PersonalKeys
from pipelines.store.parquet import TableWriter, open_in_duckdb, open_table, table_writer
from pipelines.store.snapshots.facts import CaptureFacts, TableFacts
from pipelines.store.snapshots.page_log import PageLog

if TYPE_CHECKING:
    import duckdb


class Capture:
    """One capture on disk. `facts` is read once, and written by `save`.

    `key` encrypts personal data; without it, personal data is stored in the clear.
    """

    FACTS = "capture.json"

    def __init__(self, path: Path, facts: CaptureFacts, key: PersonalKey | None = None) -> None:
        self.path = path
        self.facts = facts
        self.key = key

    @classmethod
    def create(cls, path: Path, facts: CaptureFacts, key: PersonalKey | None = None) -> Capture:
        """Create the folder and its first capture.json."""
        with storage_errors(path):
            (path / "raw").mkdir(parents=True)
        facts.key = key.fingerprint if key else ""
        capture = cls(path, facts, key)
        capture.save()
        return capture

    @classmethod
    def open(cls, path: Path, keys: PersonalKeys) -> Capture:
        """Opens the capture in `path`. Raises `StorageError` where there is none, `ConfigurationError` where its key is missing."""
        try:
            content = (path / cls.FACTS).read_bytes()
            facts = _CAPTURE_FACTS_DECODER.decode(content)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            missing = isinstance(error, FileNotFoundError)
            raise StorageError(
                f"{path}: there is no capture in progress{'' if missing else f' that can be read ({error})'}. The staged tables need a "
                "listing of the same run: materialize the raw table together with them, or run `bookferry backup`."
            ) from None
        return cls(path, facts, keys.to_read(facts.key, f"The personal data of the unfinished backup in {path}"))

    @property
    def run(self) -> str:
        """The run whose capture it is."""
        return self.path.name

    def save(self) -> None:
        """Write capture.json."""
        with storage_errors(self.path):
            write_atomically(self.path / self.FACTS, msgspec.json.format(msgspec.json.encode(self.facts)))

    def announce(self, announced: Mapping[str, str]) -> None:
        """Add what the service announced, and save it if that is new."""
        if announced.items() - self.facts.announced.items():
            self.facts.announced |= announced
            self.save()

    def begin(self, snapshot: str, now: datetime) -> None:
        """Name the snapshot by the time of its first record: a run may wait long for its first page."""
        self.facts.snapshot, self.facts.started_at = snapshot, now.isoformat(timespec="seconds")
        self.save()

    def page_log(self, resource: str, before_page: Callable[[], None] = lambda: None) -> PageLog:
        """The log of a resource's pages, from the first page until its raw table is written. `before_page` is called before each page."""
        return PageLog(self._pages_path(resource), self.key_of(f"raw_{resource}"), before_page)

    @property
    def is_begun(self) -> bool:
        """Whether anything of the library was read."""
        return bool(self.facts.resources) or any(map(self.has_pages, self.facts.wanted))

    def has_pages(self, resource: str) -> bool:
        """Whether a page of the resource was read."""
        path = self._pages_path(resource)
        return path.exists() and path.stat().st_size > 0

    def delete_pages(self, resource: str) -> None:
        """Delete the page log, once the raw table has its records."""
        with storage_errors(self.path):
            self._pages_path(resource).unlink(missing_ok=True)

    def _pages_path(self, resource: str) -> Path:
        return self.path / "pages" / resource

    def raw_path(self, resource: str) -> Path:
        """The file of a resource's raw records."""
        return self.path / "raw" / f"{resource}.parquet"

    def table_path(self, table: Table) -> Path:
        """The file of a staged table."""
        return self.path / f"{table.name}.parquet"

    def key_of(self, table: str) -> PersonalKey | None:
        """The key that encrypts or seals a table's data, if it is personal. For a listing in progress: `raw_users` and the like."""
        return self.key if is_personal(table) else None

    def writer(self, table: Table, path: Path | None = None) -> AbstractContextManager[TableWriter]:
        """A writer of a staged table, or of one that takes its place later, at `path`."""
        stamp = {"tenant": self.facts.tenant, "snapshot": self.facts.snapshot}
        return table_writer(path or self.table_path(table), table, self.key_of(table.name), stamp)

    def raw_writer(self, resource: str, path: Path | None = None) -> AbstractContextManager[TableWriter]:
        """A writer of `raw/<resource>.parquet`, or of a part of it at `path`."""
        return table_writer(path or self.raw_path(resource), raw_table(resource), self.key_of(f"raw_{resource}"))

    @contextmanager
    def open_file(self, name: str) -> Iterator[pq.ParquetFile]:
        """Opens the finished file of a table, to be read in parts."""
        path = self.path / self.facts.tables[name].path
        with storage_errors(path), open_table(path, self.key_of(name)) as file:
            yield file

    def add_table(self, name: str, path: Path, rows: int) -> None:
        """Record a finished file. `publish` adds its checksum."""
        key = self.key_of(name)
        self.facts.tables[name] = TableFacts(
            path.relative_to(self.path).as_posix(),
            rows,
            path.stat().st_size,
            encrypted=key is not None,
            key=key.fingerprint if key else "",
        )


class IdCounts(msgspec.Struct):
    """Counts of the ids in a raw file."""

    rows: int
    distinct: int
    without_id: int
    duplicates: list[int | str]
    """Up to ten ids that occur more than once."""
    text_ids: int = 0
    """Rows whose id is a text and not a whole number; 0 where such texts do not count as ids."""
    digest: int = 0
    """The same for the same ids, in any order."""


TEXT_ID = """CASE WHEN id IS NULL AND json_type(as_json(payload), '$.id') = 'VARCHAR'
              THEN json_extract_string(as_json(payload), '$.id') END"""


def count_ids(raw_path: Path, key: PersonalKey | None, *, text_ids: bool = False) -> IdCounts:
    """Counts the ids in the file itself: the proof rests on what is on the disk, not on what was meant to be written.

    DuckDB reads the id column alone, and spills to disk rather than use more memory. `text_ids`: texts count as ids, too. Where an id is
    not a whole number, the payloads are read as well.
    """
    with open_in_duckdb(raw_path, key) as database:
        counts = _count(database, "id")
        if text_ids and counts.without_id:
            texts = _count(database, TEXT_ID)
            present = texts.rows - texts.without_id
            counts = IdCounts(
                counts.rows,
                counts.distinct + texts.distinct,
                counts.without_id - present,
                [*counts.duplicates, *texts.duplicates][:10],
                present,
                counts.digest ^ texts.digest,
            )
    return counts


def _count(database: duckdb.DuckDBPyConnection, key: str) -> IdCounts:
    """Counts rows, distinct values and empty values of an SQL expression over the file."""
    groups = f"SELECT {key} AS key, count(*) AS rows FROM file GROUP BY ALL"  # noqa: S608  an expression of ours
    [(rows, distinct, without, duplicates, digest)] = database.execute(
        "SELECT coalesce(sum(rows), 0), count(key), coalesce(sum(rows) FILTER (key IS NULL), 0), "  # noqa: S608
        "coalesce(min(key, 10) FILTER (rows > 1), []), coalesce(bit_xor(hash(key)) FILTER (key IS NOT NULL), 0) "
        f"FROM ({groups})"
    ).fetchall()
    return IdCounts(rows, distinct, without, duplicates, digest=digest)


_CAPTURE_FACTS_DECODER = msgspec.json.Decoder(CaptureFacts)

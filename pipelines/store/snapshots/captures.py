"""A capture: the folder in which a snapshot grows until it is proved and published. Readers never see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from pipelines.errors import StorageError
from pipelines.records.shapes.observation import ObservedColumn, RecordShape
from pipelines.shapes.model import Description
from pipelines.store.durable import storage_errors, write_atomically
from pipelines.store.encryption import PersonalKey, PersonalKeys
from pipelines.store.snapshots.page_log import PageLog

if TYPE_CHECKING:
    import duckdb
    import pyarrow.parquet as pq

    from pipelines.records.tables.description import Table
    from pipelines.store.parquet import TableWriter


Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A number that a column of the catalogue holds; a manifest with another one is damaged."""


class ResourceFacts(msgspec.Struct, kw_only=True):
    """The result of reading one resource, as the manifest has it."""

    endpoint: str
    records: Count
    distinct_ids: int
    without_id: int
    pages: int
    x_total: int | None
    requests: int
    seconds: float
    complete: bool
    problems: list[str]
    """Why the listing is not complete."""
    notes: list[str] = []
    """Remarks on a proof that holds."""
    added: int = 0
    deleted: int = 0
    """Records that were added and deleted while it was read, as far as X-Total and the newest pages show that."""
    read_again: int = 0
    """Pages that were read again for that reason."""
    walks: int = 1
    """How often the listing was begun, because the moved records could not be found."""
    resumed: int = 0
    """Pages that an interrupted run had read already."""


class Unreadable(msgspec.Struct, kw_only=True):
    """A resource that the service refuses, or answers in an unknown form: the snapshot has none of its records."""

    status: int | None
    """HTTP status of the refusal; none where the response is not a listing."""
    message: str
    """What was tried, what came back, and what to do."""
    missing_scopes: list[str] = []
    """The scopes that the token lacks, where the service names them."""
    partial: bool
    """Whether the snapshot is partial without it: it was asked for by name, is the publications, or has an unknown form."""
    requests: int


class TableFacts(msgspec.Struct):
    """One file of a snapshot. `path` is relative to the snapshot's folder."""

    path: str
    rows: int
    bytes: int
    sha256: str = ""
    encrypted: bool = False
    key: str = ""
    """Fingerprint of its encryption key."""


class FailedFile(msgspec.Struct):
    """One file whose content could not be fetched. Its name comes from outside."""

    publication_id: int | None
    kind: str
    asset_id: int | None
    name: str | None
    problem: str


class FileTotals(msgspec.Struct):
    """Totals of the files that the records name."""

    count: int = 0
    """Rows of publication_files."""
    bytes: int = 0
    """Of the stored contents, each counted once."""
    contents: int = 0
    """Different contents among the stored files; 0 in manifests that do not have this count."""
    total_bytes: int = 0
    """Of all stored files."""
    new: int = 0
    """Contents that this backup fetched."""
    kept: int = 0
    packed: int = 0
    """Of the kept ones, those that are as the storage sends them: packed."""
    failed: int = 0
    not_fetched: int = 0
    """Left out by `files = false` or --no-files."""
    failures: list[FailedFile] = []
    """The first of the failed ones."""


class Announcement(msgspec.Struct, kw_only=True):
    """Something that the service announces as deprecated, by its name in `X-API-Deprecation` (service.md#deprecation)."""

    name: str
    day: str = ""
    """The day that the service names, such as `2026-12-31`; empty if it names none."""
    since: str
    """The day of the first snapshot with this announcement."""
    is_new: bool = False
    """Whether no earlier snapshot has it."""


class CaptureFacts(msgspec.Struct, kw_only=True):
    """The state of a capture, in capture.json, so that any process can continue it."""

    tenant: str
    snapshot: str
    base_url: str
    api: str
    started_at: str
    key: str = ""
    """Fingerprint of the key for personal data; empty where it is not encrypted."""
    tool: str
    """The Bookferry version that began it. Another version begins anew."""
    wanted: list[str]
    """The resources of its run, sorted."""
    walks: dict[str, int] = {}
    """Resource → the current walk over it, from the second on."""
    unsorted: list[str] = []
    """Resources whose list has no order of ids, as an earlier walk found."""
    spent: dict[str, int] = {}
    """Resource → requests of its earlier walks."""
    resources: dict[str, ResourceFacts] = {}
    unreadable: dict[str, Unreadable] = {}
    tables: dict[str, TableFacts] = {}
    residue: dict[str, dict[str, int]] = {}
    """Resource → residue key → number of records with it."""
    shapes: dict[str, RecordShape] = {}
    """Resource → the fields of its records."""
    observed: dict[str, list[ObservedColumn]] = {}
    """Resource → the columns of its table besides the described ones."""
    description: Description | None = None
    """The service's own description; None until it was asked for."""
    announced: dict[str, str] = {}
    """What the service announced in `X-API-Deprecation`: name → day, empty if it names none."""
    files: FileTotals | None = None
    """None until the files step has ended."""
    files_requests: int = 0
    """Requests to the library for files: on its own host, and for fresh addresses."""


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
            with suppress(OSError):
                (self.path / "pages").rmdir()  # once it is empty

    def remove_strays(self) -> None:
        """Delete the files that killed processes left beside the tables."""
        named = {self.FACTS, *(table.path for table in self.facts.tables.values())}
        with storage_errors(self.path):
            for path in sorted(self.path.rglob("*"), reverse=True):  # the content of a folder before the folder
                if path.is_dir():
                    with suppress(OSError):
                        path.rmdir()  # only where it is empty
                elif path.relative_to(self.path).as_posix() not in named:
                    path.unlink()

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
        from pipelines.records.tables.registry import PERSONAL_TABLES  # noqa: PLC0415  `status` reads manifests without Arrow

        return self.key if table in PERSONAL_TABLES else None

    def writer(self, table: Table, path: Path | None = None) -> AbstractContextManager[TableWriter]:
        """A writer of a staged table, or of one that takes its place later, at `path`."""
        from pipelines.store.parquet import table_writer  # noqa: PLC0415  `status` reads manifests without Arrow

        stamp = {"tenant": self.facts.tenant, "snapshot": self.facts.snapshot}
        return table_writer(path or self.table_path(table), table, self.key_of(table.name), stamp)

    def raw_writer(self, resource: str) -> AbstractContextManager[TableWriter]:
        """A writer of `raw/<resource>.parquet`."""
        from pipelines.records.tables.registry import raw_table  # noqa: PLC0415  `status` reads manifests without Arrow
        from pipelines.store.parquet import table_writer  # noqa: PLC0415

        return table_writer(self.raw_path(resource), raw_table(resource), self.key_of(f"raw_{resource}"))

    @contextmanager
    def open_file(self, name: str) -> Iterator[pq.ParquetFile]:
        """Opens the finished file of a table, to be read in parts."""
        from pipelines.store.parquet import open_table  # noqa: PLC0415  `status` reads manifests without Arrow

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


TEXT_ID = """CASE WHEN id IS NULL AND json_valid(payload) AND json_type(payload, '$.id') = 'VARCHAR'
              THEN json_extract_string(payload, '$.id') END"""


def count_ids(raw_path: Path, key: PersonalKey | None, *, text_ids: bool = False) -> IdCounts:
    """Counts the ids in the file itself: the proof rests on what is on the disk, not on what was meant to be written.

    DuckDB reads the id column alone, and spills to disk rather than use more memory. `text_ids`: texts count as ids, too. Where an id is
    not a whole number, the payloads are read as well.
    """
    from pipelines.store.parquet import open_in_duckdb  # noqa: PLC0415  `status` reads manifests without Arrow

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
            )
    return counts


KEYS_PER_PASS = 400_000
"""Keys that one pass compares: memory does not grow with the library (I11). They take some 10 MiB, and another pass 0.1 s of a million."""


def _count(database: duckdb.DuckDBPyConnection, key: str) -> IdCounts:
    """Counts rows, distinct values and empty values of an SQL expression over the file."""
    keys = f"(SELECT {key} AS key FROM file)"  # noqa: S608  an expression of ours
    [(rows, present)] = database.execute(f"SELECT count(*), count(key) FROM {keys}").fetchall()  # noqa: S608
    parts = 1 + present // KEYS_PER_PASS
    distinct, duplicates = 0, list[Any]()
    for part in range(parts):
        of_part = f"FROM {keys} WHERE key IS NOT NULL AND hash(key) % {parts} = {part}"
        [(found, different)] = database.execute(f"SELECT count(*), count(DISTINCT key) {of_part}").fetchall()
        distinct += different
        if found != different:
            repeated = f"SELECT key {of_part} GROUP BY key HAVING count(*) > 1 ORDER BY key LIMIT 10"
            duplicates += [row[0] for row in database.execute(repeated).fetchall()]
    return IdCounts(rows, distinct, rows - present, sorted(duplicates)[:10])


_CAPTURE_FACTS_DECODER = msgspec.json.Decoder(CaptureFacts)

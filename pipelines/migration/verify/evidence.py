"""Evidence of a verification, for the time when the old library is gone: a bag by the rules of BagIt (RFC 8493).

It has the plan, every write, the target's publications and the findings. Any BagIt tool, or `sha256sum`, checks that it is unchanged.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import ConfigurationError
from pipelines.migration.model.comparable import STEP
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import CONFLICTS, FACTS, HTML, ISSUES, PEOPLE, ROWS, WORKBOOK, Plan
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.verify.verdict import MigrationVerification
from pipelines.records.residue import record_json
from pipelines.records.tables.registry import raw_table
from pipelines.records.values import decode_record
from pipelines.store.durable import CHUNK_BYTES, storage_errors, sync_file, sync_folder
from pipelines.store.parquet import row_batches, table_writer
from pipelines.version import VERSION

PLAN_FILES = (FACTS, ROWS, PEOPLE, HTML, ISSUES, WORKBOOK, CONFLICTS)
"""The files of a plan that are evidence, where they exist."""

JOURNAL, TARGET, SOURCE = "journal.jsonl", "target-publications.parquet", "source-manifest.json"

_README = """Evidence of the migration {plan}

plan.*, issues.*, conflicts.tsv     the plan; its seal is {seal}
journal.jsonl                       every write with its result, one a line
target-publications.parquet         every publication of the target, as the library sent it at {verified_at}. Column payload: its JSON
                                    without the signed addresses of files, because anybody who has one can fetch the file. Column
                                    sha256: of the JSON as it was sent
people.parquet                      the plan's rows of users; encrypted where the plan says so
source-manifest.json                the manifest of the source's snapshot, with the SHA-256 of each of its tables
verification-*.json, *.tsv          the result of the verification: {verdict}

manifest-sha256.txt, one folder up, has the SHA-256 of each file: `sha256sum --check manifest-sha256.txt`.
"""


def check_free(folder: Path) -> None:
    """Raise `ConfigurationError` for a folder that is not empty: evidence overwrites nothing."""
    with storage_errors(folder):
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise ConfigurationError(
                f"{folder} is not empty, and evidence overwrites nothing. Name a folder that does not exist yet."
            )


def write_evidence(
    folder: Path,
    plan: Plan,
    verification: MigrationVerification,
    journal: Journal,
    *,
    target: Path,
    source: bytes | None,
    at: datetime,
) -> None:
    """Make the whole bag, or nothing. `target`: the raw table of its publications. `source`: the manifest of the source's snapshot."""
    with _unfinished_bag(folder) as bag:
        for name in (*PLAN_FILES, verification.table, verification.name):
            if plan.path(name).exists():
                bag.add(name, _pieces(plan.path(name)))
        bag.add(JOURNAL, (msgspec.json.encode(entry) + b"\n" for entry in journal.of_plan(plan.name)))
        with _without_signed_urls(target) as unsigned:
            bag.add(TARGET, _pieces(unsigned))
        if source is not None:
            bag.add(SOURCE, [source])
        verdict = (
            "equal"
            if verification.equal
            else f"{verification.missing} missing, {verification.differing} differing, {verification.duplicated} duplicated"
            + (f"; of those the plan could not send {number}" if (number := verification.lacking.total) else "")
        )
        verified_at = verification.verified_at
        facts = {"plan": plan.name, "seal": plan.facts.seal, "verified_at": verified_at, "verdict": verdict}
        bag.add("README.txt", [_README.format(**facts).encode()])
        bag.close(
            {
                "Source-Organization": plan.facts.target.base_url,
                "External-Description": f"Migration of {plan.facts.source.tenant} into {plan.facts.target.tenant}: {verdict}",
                "External-Identifier": plan.name,
                "Bagging-Date": f"{at.astimezone(UTC):%Y-%m-%d}",
                "Bag-Software-Agent": f"bookferry {VERSION}",
            }
        )


@contextmanager
def _without_signed_urls(raw: Path) -> Iterator[Path]:
    """The raw table of publications without signed addresses (I10), for the length of the block: a bag is handed on."""
    unsigned, table = raw.with_name("unsigned.parquet"), raw_table(PUBLICATIONS)
    with storage_errors(raw), pq.ParquetFile(raw) as file, table_writer(unsigned, table) as writer:
        place = table.schema.get_field_index("payload")
        for batch in row_batches(file, rows=STEP):
            payloads = cast("list[bytes]", batch.column("payload").cast(pa.binary()).to_pylist())
            texts = [record_json(decode_record(payload)) for payload in payloads]
            writer.write(batch.set_column(place, table.schema.field(place), pa.array(texts, table.schema.types[place])))
    try:
        yield unsigned
    finally:
        unsigned.unlink()


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(CHUNK_BYTES):
            yield piece


class _Bag:
    """A bag that is being written. Every file is hashed on its way in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._payload: dict[str, str] = {}
        self._tags: dict[str, str] = {}
        self._bytes = 0

    def add(self, name: str, pieces: Iterable[bytes]) -> None:
        """Add a payload file."""
        self._payload[f"data/{name}"], written = self._write(f"data/{name}", pieces)
        self._bytes += written

    def close(self, info: dict[str, str]) -> None:
        """Add the tag files: RFC 8493, 2.1 and 2.2."""
        info = {**info, "Payload-Oxum": f"{self._bytes}.{len(self._payload)}"}
        self._tag("bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
        self._tag("bag-info.txt", "".join(f"{name}: {value}\n" for name, value in info.items()))
        self._tag("manifest-sha256.txt", _manifest(self._payload))
        self._tag("tagmanifest-sha256.txt", _manifest(self._tags))

    def _tag(self, name: str, text: str) -> None:
        self._tags[name], _written = self._write(name, [text.encode()])

    def _write(self, name: str, pieces: Iterable[bytes]) -> tuple[str, int]:
        path, digest, written = self._folder / name, hashlib.sha256(), 0
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for piece in pieces:
                digest.update(piece)
                written += file.write(piece)
        sync_file(path)
        return digest.hexdigest(), written


def _manifest(hashes: dict[str, str]) -> str:
    return "".join(f"{digest}  {name}\n" for name, digest in hashes.items())


@contextmanager
def _unfinished_bag(folder: Path) -> Iterator[_Bag]:
    """A bag in a folder beside `folder`; it is moved there at the end of the block, or removed after an error."""
    growing = folder.with_name(f".{folder.name}.growing")
    with storage_errors(folder):
        check_free(folder)
        shutil.rmtree(growing, ignore_errors=True)
        growing.mkdir(parents=True)
        try:
            yield _Bag(growing)
            growing.replace(folder)
        except BaseException:
            shutil.rmtree(growing, ignore_errors=True)
            raise
        sync_folder(folder.parent)

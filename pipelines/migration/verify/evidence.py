"""Evidence of a verification, for the time when the old library is gone: a bag by the rules of BagIt (RFC 8493).

It has the plan, every write, the target's publications and the findings. Any BagIt tool, or `sha256sum`, checks that it is unchanged.
"""

from __future__ import annotations

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
from pipelines.migration.model.plan import CONFLICTS, FACTS, HTML, ISSUES, PEOPLE, ROWS, WORKBOOK
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.model.step import Step
from pipelines.migration.verify.verdict import MigrationVerification
from pipelines.records.residue import record_json
from pipelines.records.tables.registry import raw_table
from pipelines.records.values import decode_record
from pipelines.store.durable import sha256_of, storage_errors, sync_file, sync_folder, temporary_folder
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
    step: Step,
    verification: MigrationVerification,
    *,
    target: Path,
    source: bytes | None,
    at: datetime,
) -> None:
    """Make the whole bag, or nothing. `target`: the raw table of its publications. `source`: the manifest of the source's snapshot."""
    plan = step.plan
    with _unfinished_bag(folder) as bag:
        data = bag / "data"
        for name in (*PLAN_FILES, verification.table, verification.name):
            if plan.path(name).exists():
                shutil.copyfile(plan.path(name), data / name)
        with (data / JOURNAL).open("wb") as file:
            file.writelines(msgspec.json.encode(entry) + b"\n" for entry in step.journal.of_plan(plan.name))
        _write_unsigned(target, data / TARGET)
        if source is not None:
            (data / SOURCE).write_bytes(source)
        verdict = (
            "equal"
            if verification.equal
            else f"{verification.missing} missing, {verification.differing} differing, {verification.duplicated} duplicated"
            + (f"; of those the plan could not send {number}" if (number := verification.lacking.total) else "")
        )
        verified_at = verification.verified_at
        facts = {"plan": plan.name, "seal": plan.facts.seal, "verified_at": verified_at, "verdict": verdict}
        (data / "README.txt").write_bytes(_README.format(**facts).encode())
        _add_tags(
            bag,
            {
                "Source-Organization": plan.facts.target.base_url,
                "External-Description": f"Migration of {plan.facts.source.tenant} into {plan.facts.target.tenant}: {verdict}",
                "External-Identifier": plan.name,
                "Bagging-Date": f"{at.astimezone(UTC):%Y-%m-%d}",
                "Bag-Software-Agent": f"bookferry {VERSION}",
            },
        )


def _write_unsigned(raw: Path, unsigned: Path) -> None:
    """Write the raw table of publications without signed addresses (I10): a bag is handed on."""
    table = raw_table(PUBLICATIONS)
    place = table.schema.get_field_index("payload")
    with storage_errors(raw), pq.ParquetFile(raw) as file, table_writer(unsigned, table) as writer:
        for batch in row_batches(file, rows=STEP):
            payloads = cast("list[bytes]", batch.column("payload").cast(pa.binary()).to_pylist())
            texts = [record_json(decode_record(payload)) for payload in payloads]
            writer.write(batch.set_column(place, table.schema.field(place), pa.array(texts, table.schema.types[place])))


def _add_tags(bag: Path, tags: dict[str, str]) -> None:
    """Add the tag files of a bag whose payload is complete: RFC 8493, 2.1 and 2.2."""
    payload = [*(bag / "data").iterdir()]
    tags["Payload-Oxum"] = f"{sum(path.stat().st_size for path in payload)}.{len(payload)}"
    texts = {
        "bagit.txt": "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n",
        "bag-info.txt": "".join(f"{name}: {value}\n" for name, value in tags.items()),
        "manifest-sha256.txt": _manifest(bag, payload),
    }
    for name, text in texts.items():
        (bag / name).write_bytes(text.encode())
    (bag / "tagmanifest-sha256.txt").write_bytes(_manifest(bag, [bag / name for name in texts]).encode())


def _manifest(bag: Path, paths: Iterable[Path]) -> str:
    return "".join(f"{sha256_of(path)}  {path.relative_to(bag).as_posix()}\n" for path in paths)


@contextmanager
def _unfinished_bag(folder: Path) -> Iterator[Path]:
    """A bag in a folder beside `folder`; it is moved there at the end of the block, or removed after an error."""
    growing = folder.with_name(f".{folder.name}.growing")
    with storage_errors(folder):
        check_free(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with temporary_folder(growing):
            (growing / "data").mkdir()
            yield growing
            for path in growing.rglob("*"):
                sync_folder(path) if path.is_dir() else sync_file(path)
            growing.replace(folder)
        sync_folder(folder.parent)

"""Publishes a finished capture as a snapshot: all of it or nothing (I5)."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from http import HTTPStatus

from pipelines.errors import AccessDeniedError, BookferryError, StopError, StorageError
from pipelines.records.tables.publications import PUBLICATION_FILES
from pipelines.records.tables.registry import tables_of
from pipelines.store.durable import sha256_of, storage_errors, write_atomically
from pipelines.store.objects.objects import MANIFEST
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.facts import CaptureFacts
from pipelines.store.snapshots.manifest import compose_manifest, encode_manifest
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot, as_snapshot, snapshot_key

PARALLEL_CHECKSUMS = 2
"""Files whose checksums are computed in parallel: nothing else works then."""


def publish(data: DataFolder, capture: Capture, now: datetime) -> Snapshot:
    """Turn a finished capture into a snapshot: checksums first, the manifest last. Readers see all of it or nothing."""
    facts = capture.facts
    _check_finished(capture)
    with storage_errors(capture.path):
        paths = [capture.path / table.path for table in facts.tables.values()]
        with ThreadPoolExecutor(PARALLEL_CHECKSUMS) as pool:
            for table, path, sha256 in zip(facts.tables.values(), paths, pool.map(sha256_of, paths), strict=True):
                table.sha256, table.bytes = sha256, path.stat().st_size
        manifest = compose_manifest(facts, now, data.manifests_before(facts))
        manifest.run = capture.run
        write_atomically(capture.path / MANIFEST, encode_manifest(manifest))
        files = [*(table.path for table in facts.tables.values()), MANIFEST]
        if (published := _published(data, facts)) is not None:
            shutil.rmtree(capture.path)
            return published
        try:
            data.objects.publish(capture.path, snapshot_key(facts.tenant, facts.snapshot), files)
        except (OSError, BookferryError):
            capture.save()  # so that this step can be repeated
            raise
    return Snapshot(data.objects, manifest)


def _published(data: DataFolder, facts: CaptureFacts) -> Snapshot | None:
    """The snapshot that an earlier attempt published without learning of its success."""
    key = snapshot_key(facts.tenant, facts.snapshot)
    with suppress(FileNotFoundError, NotADirectoryError):
        snapshot = as_snapshot(data.objects, key, data.objects.read(f"{key}/{MANIFEST}"))
        if snapshot.manifest.tables == facts.tables:
            return snapshot
    return None


def _check_finished(capture: Capture) -> None:
    """Raises unless everything was read and staged to the end. A person may have repeated single steps."""
    facts = capture.facts
    if facts.unreadable and not facts.resources:
        refusals = facts.unreadable.values()
        is_denied = any(refusal.status == HTTPStatus.FORBIDDEN for refusal in refusals)
        raise (AccessDeniedError if is_denied else StopError)(
            f"Nothing could be read, so there is no snapshot. {' '.join(refusal.message for refusal in refusals)}"
        )
    table_names = [f"raw_{resource}" for resource in facts.resources]
    table_names += [table.name for resource in facts.resources for table in tables_of(resource)]
    missing = [name for name in table_names if name not in facts.tables]
    missing += ["files"] if PUBLICATION_FILES.name in facts.tables and facts.files is None else []
    if missing or not facts.resources:
        raise StorageError(
            f"{capture.path}: not published, because {', '.join(missing) or 'every table'} is still missing. "
            "Run the whole backup again: `bookferry backup`, or the job from its raw table on."
        )

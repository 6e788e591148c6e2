"""The checks of a bucket and of a catalogue.

In a bucket, objects can be written, listed, read and deleted, and a put replaces nothing, as every backup requires.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

from pipelines.doctor.findings import CheckResult, failed, ok, problem
from pipelines.errors import BookferryError
from pipelines.settings.settings import Settings
from pipelines.store.iceberg.catalogue import catalogue_settings, check_catalogue
from pipelines.store.objects.objects import Objects

NAME = "storage"
FOLDER = "doctor"
"""Folder of the one small object that the check writes and deletes."""


def bucket(objects: Objects) -> CheckResult:
    """Try every operation as a backup does."""
    try:
        return _try_operations(objects)
    except BookferryError as error:
        return failed(NAME, error)


def iceberg(settings: Settings, environ: Mapping[str, str]) -> list[CheckResult]:
    """Whether the configured catalogue of Iceberg tables answers."""
    if settings.iceberg is None:
        return []
    try:
        chosen = catalogue_settings(settings, environ)
        check_catalogue(chosen, settings.data)
    except BookferryError as error:
        return [failed("iceberg", error)]
    return [ok("iceberg", f"{chosen.place} can be used")]


def _try_operations(objects: Objects) -> CheckResult:
    key, content = f"{FOLDER}/{uuid4().hex}", b"Bookferry's doctor was here; this may be deleted."
    objects.put(key, content)
    try:
        replaced = objects.put(key, b"") or objects.read(key) != content
        listed = key in [entry.key for entry in objects.below(FOLDER)]
    finally:
        objects.delete(key)
    if replaced:
        return problem(
            NAME,
            f"{objects.address}: a second put replaced the object, so two runs could mix their snapshots (the store ignores "
            "If-None-Match)",
            "Update the store, or use one that refuses the second put, as Amazon's S3 does.",
        )
    if not listed or objects.size(key) is not None:
        return problem(
            NAME,
            f"{objects.address}: a {'deleted object is still there' if listed else 'new object is not listed'}",
            "A backup needs a store whose responses include earlier changes. Use another one.",
        )
    return ok(NAME, f"{objects.address}: objects can be written, listed, read and deleted, and a put replaces nothing")

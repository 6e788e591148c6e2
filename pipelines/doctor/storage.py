"""Checks the bucket: it can be written, listed, read and cleared, and a put replaces nothing. Every backup relies on that."""

from __future__ import annotations

from uuid import uuid4

from pipelines.doctor.findings import CheckResult, failed, ok, problem
from pipelines.errors import BookferryError
from pipelines.store.objects.objects import Objects

NAME = "storage"
FOLDER = "doctor"
"""The folder of the one small object, which is removed again."""


def bucket(objects: Objects) -> CheckResult:
    """Whether the operations of a backup work."""
    try:
        return _try_operations(objects)
    except BookferryError as error:
        return failed(NAME, error)


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
            f"{objects.address}: what was just {'deleted is still there' if listed else 'written is not listed'}",
            "A backup needs a store that shows every change at once. Use another one.",
        )
    return ok(NAME, f"{objects.address}: can be written, listed, read and cleared, and a put replaces nothing")

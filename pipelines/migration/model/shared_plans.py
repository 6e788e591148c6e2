"""Plans in the bucket, where several machines work on the data: planned on one, applied on another, verified on a third.

The folder of a plan on each machine is a working copy of what is below `plans/<name>/` in the bucket. Files of a plan are added and never
changed, so that each side gets what it lacks; `plan.json` comes last, and without it a plan is not there yet. Only `conflicts.tsv` is
edited, by people: a working copy remembers its checksum at the last comparison, so that it is known on which side.
"""

from __future__ import annotations

import shutil
import weakref
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from pipelines.errors import ConfigurationError
from pipelines.file_access import make_folder
from pipelines.migration.model.plan import CONFLICTS, FACTS
from pipelines.store.durable import digest_of, replacing, sha256_of, storage_errors, write_atomically
from pipelines.store.objects.objects import Objects, checked_key
from pipelines.store.snapshots.snapshots import DataFolder

PLANS = "plans"
_KNOWN = f".{CONFLICTS}.sha256"

_compared: weakref.WeakSet[DataFolder] = weakref.WeakSet()
"""The data whose plans were compared with the bucket by this process."""


def fetch_plans(data: DataFolder) -> None:
    """Compare the plans with those in the bucket, once for each data of this process. Does nothing where one machine works alone."""
    if data.is_shared and data not in _compared:
        _compared.add(data)
        compare_plans(data)


def share_plans(data: DataFolder, check_leases: Callable[[], object]) -> None:
    """Compare them again, if this process looked at plans: it may have changed some.

    `check_leases` raises where this run has lost one: then nothing is uploaded.
    """
    if data in _compared:
        check_leases()
        compare_plans(data)


def compare_plans(data: DataFolder) -> None:
    """Fetch what other machines added or decided, and upload what is new here.

    Raises `ConfigurationError` where people edited the decisions of one plan on two machines.
    """
    folder, shared = data.path / PLANS, defaultdict[str, set[str]](set)
    for entry in data.objects.below(PLANS):
        plan, _, name = checked_key(entry.key).removeprefix(f"{PLANS}/").partition("/")
        shared[plan].add(name)
    with storage_errors(folder):
        make_folder(folder)
        local = {path.parent.name for path in folder.glob(f"*/{FACTS}")}
    for plan in sorted(local | {plan for plan, names in shared.items() if FACTS in names}):
        _compare(data.objects, folder / plan, shared[plan])


def _compare(objects: Objects, folder: Path, shared: Collection[str]) -> None:
    local = {*_files(folder)}
    for name in sorted({*local, *shared}, key=lambda name: (name == FACTS, name)):
        path, key = folder / name, f"{PLANS}/{folder.name}/{name}"
        if name not in shared:
            objects.put(key, path)
        elif name not in local:
            _download(objects, key, path)
        elif name == CONFLICTS:
            _compare_decisions(objects, key, path)
        if name == CONFLICTS:
            with storage_errors(path):
                write_atomically(path.with_name(_KNOWN), sha256_of(path).encode())


def _compare_decisions(objects: Objects, key: str, path: Path) -> None:
    known = path.with_name(_KNOWN)
    with storage_errors(path), objects.open(key) as content:
        mine, (theirs, _size) = sha256_of(path), digest_of(content)
        before = known.read_text(encoding="ascii") if known.exists() else ""
    if theirs in (mine, before):
        if mine != theirs:
            objects.replace(key, path)
    elif mine == before:
        _download(objects, key, path)
    else:
        raise ConfigurationError(
            f"{path} was edited on this machine and on another one. Move it elsewhere, run the same command again to get that of the "
            "other machine, and copy into it what you want of yours."
        )


def _files(folder: Path) -> Iterator[str]:
    """The names of a plan's files, with folders. What is hidden, as the folders of a running command are, is left out."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") for part in parts):
            yield "/".join(parts)


def _download(objects: Objects, key: str, path: Path) -> None:
    """Copy an object into a file, whole or not at all."""
    with storage_errors(path):
        make_folder(path.parent)
        with objects.open(key) as content, replacing(path) as file:
            shutil.copyfileobj(content, file)

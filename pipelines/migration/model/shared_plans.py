"""Plans in the bucket, where several machines work on the data: planned on one, applied on another, verified on a third.

The folder of a plan on each machine is a working copy. The bucket has the files of a plan below `plans/<name>/`, and `plans/<name>.json`
with their checksums, which is written last: a plan without it is not there yet. A working copy remembers the checksums of the last
comparison, so that it is known on which side a file changed since. Files of a plan are added, and `conflicts.tsv` is edited by people.
What else changed on both sides is written by runs: that of the machine counts while it has the lease of the plan's target.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import msgspec

from pipelines.errors import ConfigurationError, StorageError
from pipelines.file_access import make_folder
from pipelines.migration.model.plan import CONFLICTS, FACTS, PlanFacts
from pipelines.store.durable import sha256_of, storage_errors, temporary_folder, write_atomically
from pipelines.store.objects.objects import Objects
from pipelines.store.snapshots.snapshots import DataFolder

PLANS = "plans"
_KNOWN = ".compared.json"
_SUFFIX = ".json"

_compared: weakref.WeakSet[DataFolder] = weakref.WeakSet()
"""The data whose plans were compared with the bucket by this process."""


class _Seen(msgspec.Struct):
    """A file of a working copy at the last comparison: checksum, size and time of change."""

    sha256: str
    size: int
    changed: int


def fetch_plans(data: DataFolder) -> None:
    """Compare the plans with those in the bucket, once for each data of this process. Does nothing where one machine works alone."""
    if data.is_shared and data not in _compared:
        _compared.add(data)
        compare_plans(data)


def share_plans(data: DataFolder, leases: Callable[[], Collection[str]]) -> None:
    """Compare them again, if this process looked at plans: it may have changed some.

    `leases` returns the tenants whose leases this run has, and raises where it has lost one: then nothing is uploaded.
    """
    if data in _compared:
        compare_plans(data, leases())


def compare_plans(data: DataFolder, leased: Collection[str] = ()) -> None:
    """Fetch what other machines changed, and upload what was changed here. `leased`: the targets that nobody else works on.

    Raises `ConfigurationError` where people edited the decisions of one plan on two machines.
    """
    folder = data.path / PLANS
    with storage_errors(folder):
        make_folder(folder)
        local = {path.parent.name for path in folder.glob(f"*/{FACTS}")}
    shared = {
        entry.key.removeprefix(f"{PLANS}/").removesuffix(_SUFFIX)
        for entry in data.objects.below(PLANS)
        if entry.key.count("/") == 1 and entry.key.endswith(_SUFFIX)
    }
    for name in sorted(local | shared):
        if name in local:
            _compare(data.objects, folder / name, leased)
        else:
            _fetch(data.objects, folder / name)


def _fetch(objects: Objects, folder: Path) -> None:
    """Make the working copy of a plan, whole or not at all."""
    files = _files_in_bucket(objects, folder.name)
    with temporary_folder(folder.with_name(f".{folder.name}")) as partly:
        for name, sha256 in files.items():
            _download(objects, f"{PLANS}/{folder.name}/{name}", partly / name, sha256)
        _remember(partly, files)
        with storage_errors(folder):
            partly.rename(folder)


def _compare(objects: Objects, folder: Path, leased: Collection[str]) -> None:
    last_seen, shared = _known(folder), _files_in_bucket(objects, folder.name)
    local = {name: _checksum(folder / name, last_seen.get(name)) for name in _files(folder)}
    updated = dict(shared)
    for name in sorted(local.keys() | shared.keys()):
        mine, theirs, before = local.get(name), shared.get(name), last_seen[name].sha256 if name in last_seen else None
        if mine == theirs:
            continue
        outdated = before not in (mine, theirs) and name != CONFLICTS and _target(folder) not in leased
        if theirs is not None and (mine in (before, None) or outdated):
            _download(objects, f"{PLANS}/{folder.name}/{name}", folder / name, theirs)
        elif mine is not None:
            if theirs not in (before, None) and name == CONFLICTS:
                raise ConfigurationError(
                    f"{folder / name} was edited on this machine and on another one. Move it elsewhere, run the same command again to get "
                    "that of the other machine, and copy into it what you want of yours."
                )
            objects.replace_file(f"{PLANS}/{folder.name}/{name}", folder / name)
            updated[name] = mine
    if updated != shared:
        objects.replace(f"{PLANS}/{folder.name}{_SUFFIX}", msgspec.json.encode(updated))
    if updated != {name: seen.sha256 for name, seen in last_seen.items()}:
        _remember(folder, updated)


def _target(folder: Path) -> str:
    """The tenant that a plan is for; empty where it cannot be read."""
    try:
        return _PLAN_FACTS_DECODER.decode((folder / FACTS).read_bytes()).target.tenant
    except (OSError, msgspec.MsgspecError):
        return ""


def _files(folder: Path) -> Iterator[str]:
    """The names of a plan's files, with folders. What is hidden, as the folders of a running command are, is left out."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") for part in parts):
            yield "/".join(parts)


def _files_in_bucket(objects: Objects, plan: str) -> dict[str, str]:
    """Name → checksum of the files that the bucket has of a plan; none where it does not have the plan yet."""
    content = next(iter(objects.read_all([f"{PLANS}/{plan}{_SUFFIX}"])))
    try:
        checksums = _TEXTS_DECODER.decode(content) if content is not None else {}
    except msgspec.MsgspecError as error:
        raise StorageError(f"{objects.address_of(f'{PLANS}/{plan}{_SUFFIX}')} is damaged ({error}).") from None
    if any(part in ("", ".", "..") for name in checksums for part in name.split("/")):
        raise StorageError(f"{objects.address_of(f'{PLANS}/{plan}{_SUFFIX}')} names a file outside of the plan.")
    return checksums


def _known(folder: Path) -> dict[str, _Seen]:
    try:
        return _SEEN_DECODER.decode((folder / _KNOWN).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return {}


def _checksum(path: Path, seen: _Seen | None) -> str:
    """The checksum of a file; it is not read again if size and time are those of the last comparison."""
    with storage_errors(path):
        stat = path.stat()
        if seen is not None and (seen.size, seen.changed) == (stat.st_size, stat.st_mtime_ns):
            return seen.sha256
        return sha256_of(path)


def _remember(folder: Path, files: dict[str, str]) -> None:
    seen = {}
    with storage_errors(folder):
        for name, sha256 in files.items():
            stat = (folder / name).stat()
            seen[name] = _Seen(sha256, stat.st_size, stat.st_mtime_ns)
        write_atomically(folder / _KNOWN, msgspec.json.encode(seen))


def _download(objects: Objects, key: str, path: Path, sha256: str) -> None:
    """Replace a file by an object of this checksum, whole or not at all."""
    partly = path.with_name(f".{path.name}.{os.getpid()}")
    with storage_errors(path), objects.open(key) as content:
        make_folder(path.parent)
        with partly.open("wb") as file:
            while block := content.read(1024 * 1024):
                file.write(block)
        if sha256_of(partly) != sha256:
            partly.unlink()
            raise StorageError(
                f"{objects.address_of(key)} is not as it was uploaded: another machine is changing this plan, or it is damaged. Run the "
                "same command again."
            )
        partly.replace(path)


_PLAN_FACTS_DECODER = msgspec.json.Decoder(PlanFacts)
_TEXTS_DECODER = msgspec.json.Decoder(dict[str, str])
_SEEN_DECODER = msgspec.json.Decoder(dict[str, _Seen])

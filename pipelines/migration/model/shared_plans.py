"""Plans in the bucket, where several machines work on the data: planned on one, applied on another, verified on a third.

The folder of a plan on each machine is a working copy. The bucket has the files of a plan below `plans/<name>/`, and `plans/<name>.json`
with their checksums, which is written last: a plan without it is not there yet. Files of a plan are added and never changed, except
`conflicts.tsv`, which people edit: a working copy remembers the checksums of the last comparison, so that it is known on which side.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from pipelines.errors import ConfigurationError, StorageError
from pipelines.file_access import make_folder
from pipelines.migration.model.plan import CONFLICTS, FACTS
from pipelines.store.durable import sha256_of, storage_errors, temporary_folder, write_atomically
from pipelines.store.objects.objects import Objects, read_if_there
from pipelines.store.snapshots.snapshots import DataFolder

PLANS = "plans"
_KNOWN = ".compared.json"
_SUFFIX = ".json"

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
            _compare(data.objects, folder / name)
        else:
            _fetch(data.objects, folder / name)


def _fetch(objects: Objects, folder: Path) -> None:
    """Make the working copy of a plan, whole or not at all."""
    files = _files_in_bucket(objects, folder.name)
    with temporary_folder(folder.with_name(f".{folder.name}")) as partly:
        for name, sha256 in files.items():
            _download(objects, f"{PLANS}/{folder.name}/{name}", partly / name, sha256)
        write_atomically(partly / _KNOWN, msgspec.json.encode(files))
        with storage_errors(folder):
            partly.rename(folder)


def _compare(objects: Objects, folder: Path) -> None:
    seen, shared = _known(folder), _files_in_bucket(objects, folder.name)
    updated = dict(shared)
    for name in sorted({*_files(folder), *shared}):
        path, key, theirs, before = folder / name, f"{PLANS}/{folder.name}/{name}", shared.get(name), seen.get(name)
        is_decisions, mine = name == CONFLICTS, None
        if path.is_file():
            mine = sha256_of(path) if is_decisions or before is None else before
        if mine == theirs:
            continue
        if mine is not None and (theirs is None or (is_decisions and theirs == before)):
            objects.replace(key, path)
            updated[name] = mine
        elif theirs is not None and is_decisions and mine not in (before, None):
            raise ConfigurationError(
                f"{path} was edited on this machine and on another one. Move it elsewhere, run the same command again to get that of the "
                "other machine, and copy into it what you want of yours."
            )
        elif theirs is not None:
            _download(objects, key, path, theirs)
    if updated != shared:
        objects.replace(f"{PLANS}/{folder.name}{_SUFFIX}", msgspec.json.encode(updated))
    if updated != seen:
        with storage_errors(folder):
            write_atomically(folder / _KNOWN, msgspec.json.encode(updated))


def _files(folder: Path) -> Iterator[str]:
    """The names of a plan's files, with folders. What is hidden, as the folders of a running command are, is left out."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") for part in parts):
            yield "/".join(parts)


def _files_in_bucket(objects: Objects, plan: str) -> dict[str, str]:
    """Name → checksum of the files that the bucket has of a plan; none where it does not have the plan yet."""
    content = read_if_there(objects, f"{PLANS}/{plan}{_SUFFIX}")
    try:
        checksums = _TEXTS_DECODER.decode(content) if content is not None else {}
    except msgspec.MsgspecError as error:
        raise StorageError(f"{objects.address_of(f'{PLANS}/{plan}{_SUFFIX}')} is damaged ({error}).") from None
    if any(part in ("", ".", "..") for name in checksums for part in name.split("/")):
        raise StorageError(f"{objects.address_of(f'{PLANS}/{plan}{_SUFFIX}')} names a file outside of the plan.")
    return checksums


def _known(folder: Path) -> dict[str, str]:
    try:
        return _TEXTS_DECODER.decode((folder / _KNOWN).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return {}


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


_TEXTS_DECODER = msgspec.json.Decoder(dict[str, str])

"""Publishing in a store without rename: a claim marks the objects that are being uploaded or removed, and the manifest completes them.

A claim is the object `unfinished/<key>` with the name of its owner. It is written before the first object and removed after the last one.
It can be created only once, so that two machines never write below one key. It also distinguishes half-done work from damage.

Each function takes `owner`, which says who works (a work folder, or all machines that share a state) and raises where that has lost its
lease. It is asked again before everything that would harm the next owner of the lease.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pipelines.errors import StorageError, TenantBusyError
from pipelines.store.objects.objects import MANIFEST, Objects, is_published

CLAIMS = "unfinished"


def publish(objects: Objects, owner: Callable[[], str], folder: Path, key: str, files: Sequence[str]) -> None:
    """Upload `files`, the manifest when all others are there in their size. Can be repeated after a kill at any point."""
    claim, name = f"{CLAIMS}/{key}", owner().encode()
    is_repeated = not objects.put(claim, name)
    if is_repeated and objects.read(claim) != name:
        raise TenantBusyError(
            f"{objects.address_of(key)} is being written by another machine, or by this one with another `work` folder. One library is "
            "backed up from one machine; end the other one, then run this again."
        )
    if is_published(objects, key):
        raise _collision(objects, key)
    if is_repeated:
        _remove_below(objects, key, owner)
    tables = [file for file in files if file != MANIFEST]
    for file in tables:
        if not objects.put(f"{key}/{file}", folder / file):
            raise _collision(objects, f"{key}/{file}")
    listed = {entry.key: entry.size for entry in objects.below(key)}
    if listed != {f"{key}/{file}": (folder / file).stat().st_size for file in tables}:
        raise StorageError(
            f"{objects.address_of(key)}: the store does not list what was uploaded to it. Nothing was published. Run the command again; if "
            "this happens again, the store is not reliable."
        )
    content = (folder / MANIFEST).read_bytes()
    owner()
    if not objects.put(f"{key}/{MANIFEST}", content):
        raise _collision(objects, key)
    objects.delete(claim)
    shutil.rmtree(folder)


def hide(objects: Objects, owner: Callable[[], str], key: str) -> None:
    """Claim a key, and remove its manifest."""
    objects.replace(f"{CLAIMS}/{key}", owner().encode())
    owner()
    objects.delete(f"{key}/{MANIFEST}")


def clear(objects: Objects, owner: Callable[[], str], folder: str) -> None:
    """Remove the unfinished work of this owner below a folder. Completed publications stay; only their claim goes."""
    name = owner().encode()
    for key in list(_claimed(objects, folder)):
        if objects.read(f"{CLAIMS}/{key}") == name:
            if not is_published(objects, key):
                _remove_below(objects, key, owner)
            owner()
            objects.delete(f"{CLAIMS}/{key}")


def unfinished(objects: Objects, folder: str) -> set[str]:
    """The keys below a folder that are claimed and lack their manifest."""
    return {key for key in _claimed(objects, folder) if not is_published(objects, key)}


def _claimed(objects: Objects, folder: str) -> Iterator[str]:
    return (entry.key.removeprefix(f"{CLAIMS}/") for entry in objects.below(f"{CLAIMS}/{folder}"))


def _remove_below(objects: Objects, key: str, owner: Callable[[], str]) -> None:
    for entry in list(objects.below(key)):
        owner()
        objects.delete(entry.key)


def _collision(objects: Objects, key: str) -> StorageError:
    return StorageError(
        f"{objects.address_of(key)} is there already, and this backup did not write it. Nothing was replaced. Find out what it is, and "
        "move it away."
    )

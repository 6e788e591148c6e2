"""Snapshots in a store without rename: an object of their own claims what is being uploaded or removed, and the last file counts.

A claim, `unfinished/<key>`, is put before the first object and goes after the last one. It can be put only once, so that two machines never
write below one key; and it tells what was left half done from what was damaged.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pipelines.errors import StorageError, TenantBusyError
from pipelines.store.objects.objects import Objects

CLAIMS = "unfinished"


class Claim(msgspec.Struct):
    """Who works on what is below a key, and the name of the object that makes it whole."""

    owner: str
    last: str


def publish(objects: Objects, owner: str, folder: Path, key: str, files: Sequence[str]) -> None:
    """Upload `files`, the last one only when all others are there in their size. Killed anywhere, it may be begun again."""
    last = files[-1]
    if _claim(objects, owner, key, last):
        _remove_below(objects, key)
    for name in files[:-1]:
        if not objects.put_file(f"{key}/{name}", folder / name):
            raise _in_the_way(objects, f"{key}/{name}")
    there = {entry.key: entry.size for entry in objects.below(key)}
    if there != {f"{key}/{name}": (folder / name).stat().st_size for name in files[:-1]}:
        raise StorageError(
            f"{objects.address_of(key)}: what the store lists is not what was uploaded to it. Nothing was published. Run the command "
            "again; if it stays so, the store does not do what it says."
        )
    content = (folder / last).read_bytes()
    if not objects.put(f"{key}/{last}", content) and objects.read(f"{key}/{last}") != content:
        raise _in_the_way(objects, f"{key}/{last}")
    objects.delete(_claim_of(key))
    shutil.rmtree(folder)


def hide(objects: Objects, owner: str, key: str, last: str) -> None:
    """Claim what is to be removed, and remove the object that makes it whole."""
    objects.replace(_claim_of(key), _content(owner, last))
    objects.delete(f"{key}/{last}")


def clear(objects: Objects, owner: str, folder: str) -> None:
    """Remove what this owner has left unfinished below a folder; but nothing that has its last object."""
    for key, claim in _claims(objects, folder):
        if claim.owner == owner:
            if objects.size(f"{key}/{claim.last}") is None:
                _remove_below(objects, key)
            objects.delete(_claim_of(key))


def unfinished(objects: Objects, folder: str) -> set[str]:
    """The keys below a folder that are claimed and have no last object."""
    return {key for key, claim in _claims(objects, folder) if objects.size(f"{key}/{claim.last}") is None}


def _claim(objects: Objects, owner: str, key: str, last: str) -> bool:
    """Whether what is below a key, which is ours from now on, had been claimed by us before."""
    ours = not objects.put(_claim_of(key), _content(owner, last))
    if ours and msgspec.json.decode(objects.read(_claim_of(key)), type=Claim).owner != owner:
        raise TenantBusyError(
            f"{objects.address_of(key)} is being written by another machine, or by this one with another `work` folder. One library is "
            "backed up from one machine; end the other one, then run this again."
        )
    if objects.size(f"{key}/{last}") is not None:
        raise _in_the_way(objects, f"{key}/{last}")
    return ours


def _claims(objects: Objects, folder: str) -> list[tuple[str, Claim]]:
    keys = [entry.key for entry in objects.below(f"{CLAIMS}/{folder}")]
    return [
        (key.removeprefix(f"{CLAIMS}/"), msgspec.json.decode(content, type=Claim))
        for key, content in zip(keys, objects.read_all(keys), strict=True)
        if content is not None
    ]


def _claim_of(key: str) -> str:
    return f"{CLAIMS}/{key}"


def _content(owner: str, last: str) -> bytes:
    return msgspec.json.encode(Claim(owner, last))


def _remove_below(objects: Objects, key: str) -> None:
    for entry in list(objects.below(key)):
        objects.delete(entry.key)


def _in_the_way(objects: Objects, key: str) -> StorageError:
    return StorageError(
        f"{objects.address_of(key)} is there already, and was not put there by this backup. Nothing was replaced. Look what it is, and "
        "move it away."
    )

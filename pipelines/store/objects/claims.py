"""Publishing in a store without rename: a claim marks the objects that are being uploaded or removed, and the last object completes them.

A claim is the object `unfinished/<key>`. It is written before the first object and removed after the last one. It can be created only once,
so that two machines never write below one key. It also distinguishes half-done work from damage.

Each function takes `owner`, which says who works and raises where that has lost its lease. It is asked again before everything that would
harm the next owner of the lease.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from pipelines.errors import StorageError, TenantBusyError
from pipelines.store.objects.objects import Objects

CLAIMS = "unfinished"


class Owner(NamedTuple):
    """Who publishes or removes: a work folder, or all machines that share a state. Of these, `fence` tells who has the lease now."""

    name: str
    fence: int = 0


class Claim(msgspec.Struct, omit_defaults=True):
    """The owner of an unfinished publication or removal, and the name of the object that completes it."""

    owner: str
    last: str
    fence: int = 0


def publish(objects: Objects, owner: Callable[[], Owner], folder: Path, key: str, files: Sequence[str]) -> None:
    """Upload `files`, the last one only when all others are there in their size. Can be repeated after a kill at any point."""
    last, publisher = files[-1], owner()
    if _take_claim(objects, publisher, key, last):
        _remove_below(objects, key, owner)
    for name in files[:-1]:
        if not objects.put_file(f"{key}/{name}", folder / name):
            raise _collision(objects, f"{key}/{name}")
    listed = {entry.key: entry.size for entry in objects.below(key)}
    if listed != {f"{key}/{name}": (folder / name).stat().st_size for name in files[:-1]}:
        raise StorageError(
            f"{objects.address_of(key)}: the store does not list what was uploaded to it. Nothing was published. Run the command again; if "
            "this happens again, the store is not reliable."
        )
    content = (folder / last).read_bytes()
    _check_claim(objects, publisher, key, last)
    owner()
    if not objects.put(f"{key}/{last}", content) and objects.read(f"{key}/{last}") != content:
        raise _collision(objects, f"{key}/{last}")
    objects.delete(_claim_key(key))
    shutil.rmtree(folder)


def hide(objects: Objects, owner: Callable[[], Owner], key: str, last: str) -> None:
    """Claim a key, and remove the object that completes it."""
    objects.replace(_claim_key(key), _content(owner(), last))
    owner()
    objects.delete(f"{key}/{last}")


def clear(objects: Objects, owner: Callable[[], Owner], folder: str) -> None:
    """Remove the unfinished work of this owner below a folder. Completed publications stay; only their claim goes."""
    name = owner().name
    for key, claim in _claims(objects, folder):
        if claim.owner == name:
            if objects.size(f"{key}/{claim.last}") is None:
                _remove_below(objects, key, owner)
            owner()
            objects.delete(_claim_key(key))


def unfinished(objects: Objects, folder: str) -> set[str]:
    """The keys below a folder that are claimed and lack their last object."""
    return {key for key, claim in _claims(objects, folder) if objects.size(f"{key}/{claim.last}") is None}


def _take_claim(objects: Objects, owner: Owner, key: str, last: str) -> bool:
    """Claim a key. Returns whether this owner had claimed it before."""
    claimed_before = not objects.put(_claim_key(key), _content(owner, last))
    if claimed_before:
        claim = _CLAIM_DECODER.decode(objects.read(_claim_key(key)))
        if claim.owner != owner.name:
            raise TenantBusyError(
                f"{objects.address_of(key)} is being written by another machine, or by this one with another `work` folder. One library is "
                "backed up from one machine; end the other one, then run this again."
            )
        if claim.fence > owner.fence:
            raise _taken_over(objects, key)
        objects.replace(_claim_key(key), _content(owner, last))
    if objects.size(f"{key}/{last}") is not None:
        raise _collision(objects, f"{key}/{last}")
    return claimed_before


def _check_claim(objects: Objects, owner: Owner, key: str, last: str) -> None:
    """Raises where the next owner of the lease has taken the claim over."""
    if owner.fence and next(iter(objects.read_all([_claim_key(key)]))) != _content(owner, last):
        raise _taken_over(objects, key)


def _taken_over(objects: Objects, key: str) -> TenantBusyError:
    return TenantBusyError(
        f"{objects.address_of(key)}: this run lost its lease, and another machine has taken over its work. Nothing further was written."
    )


def _claims(objects: Objects, folder: str) -> list[tuple[str, Claim]]:
    keys = [entry.key for entry in objects.below(f"{CLAIMS}/{folder}")]
    return [
        (key.removeprefix(f"{CLAIMS}/"), _CLAIM_DECODER.decode(content))
        for key, content in zip(keys, objects.read_all(keys), strict=True)
        if content is not None
    ]


def _claim_key(key: str) -> str:
    return f"{CLAIMS}/{key}"


def _content(owner: Owner, last: str) -> bytes:
    return msgspec.json.encode(Claim(owner.name, last, owner.fence))


def _remove_below(objects: Objects, key: str, owner: Callable[[], Owner]) -> None:
    for entry in list(objects.below(key)):
        owner()
        objects.delete(entry.key)


def _collision(objects: Objects, key: str) -> StorageError:
    return StorageError(
        f"{objects.address_of(key)} is there already, and this backup did not write it. Nothing was replaced. Find out what it is, and "
        "move it away."
    )


_CLAIM_DECODER = msgspec.json.Decoder(Claim)

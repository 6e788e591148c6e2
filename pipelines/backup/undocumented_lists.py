"""Lists of version 2 that the service does not document (service.md#v2): hard copies, collections, users and the like.

Where v2's description names such a list, or one GET a month answers with a list, the nightly backup reads it like all others. What was
found stands in `lists/TENANT.json`, in the data folder of one machine or in the bucket of several.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import date, timedelta
from http import HTTPStatus

import msgspec

from pipelines.errors import BookferryError
from pipelines.inventory import LIST_PATHS, RESOURCES, default_resources
from pipelines.service.probe import Probe
from pipelines.shapes.model import Description
from pipelines.store.snapshots.snapshots import DataFolder

ASKED_AGAIN_AFTER = timedelta(days=30)
"""How long an answer counts: one careful GET a month."""


class AskedList(msgspec.Struct, omit_defaults=True):
    """One list: what the service answered, and when."""

    asked_on: str
    status: int | None = None
    """HTTP status of the answer; none where the answer could not be read."""
    is_list: bool = False
    described: bool = False
    """Whether the description of the service names it."""


class AskedLists(msgspec.Struct):
    """All such lists of a library."""

    base_url: str
    lists: dict[str, AskedList] = {}


def undocumented(api: str) -> tuple[str, ...]:
    """The resources whose lists this version does not document."""
    return tuple(resource for resource in RESOURCES if resource not in default_resources(api))


def asked_lists(data: DataFolder, tenant: str, base_url: str) -> AskedLists:
    """What is known of the lists of a tenant; nothing where its library changed or the file is damaged."""
    content = next(iter(data.common.read_all([_key(tenant)])))
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        found = _ASKED_LISTS_DECODER.decode(content or b"")
        if found.base_url == base_url:
            return found
    return AskedLists(base_url)


def found_lists(data: DataFolder, tenant: str, base_url: str) -> tuple[str, ...]:
    """The resources that a tenant lists although nothing documents it."""
    known = asked_lists(data, tenant, base_url).lists
    return tuple(resource for resource in RESOURCES if resource in known and known[resource].is_list)


def ask_for_lists(
    probe: Probe,
    data: DataFolder,
    tenant: str,
    base_url: str,
    description: Description,
    *,
    read: Iterable[str],
    today: date,
) -> None:
    """Ask for each list that the answer of this month is missing for. `read`: resources that this backup has read anyway."""
    known = asked_lists(data, tenant, base_url)
    api = probe.api_url.rpartition("/")[2]
    for resource in undocumented(api):
        path = LIST_PATHS[resource]
        described = f"GET /{path}" in description.operations
        before = known.lists.get(resource)
        if resource in read:
            known.lists[resource] = AskedList(f"{today}", HTTPStatus.OK, is_list=True, described=described)
        elif before is not None and before.is_list:
            continue  # the backup itself says if it is gone
        elif before is None or before.described != described or today - _day(before) >= ASKED_AGAIN_AFTER:
            known.lists[resource] = _asked(probe, path, described=described, today=today)
    data.common.replace(_key(tenant), msgspec.json.format(msgspec.json.encode(known)))


def _asked(probe: Probe, path: str, *, described: bool, today: date) -> AskedList:
    try:
        answer = probe.ask(path, page=1, per_page=1)
    except BookferryError:  # what cannot be read is not there for a backup
        answer = None
    status = answer.status if answer is not None else None
    return AskedList(f"{today}", status, is_list=answer is not None and answer.records is not None, described=described)


def _day(asked: AskedList) -> date:
    try:
        return date.fromisoformat(asked.asked_on)
    except ValueError:
        return date.min


def _key(tenant: str) -> str:
    return f"lists/{tenant}.json"


_ASKED_LISTS_DECODER = msgspec.json.Decoder(AskedLists)

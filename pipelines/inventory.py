"""The resources of a library, and which of them each version of the API lists."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date
from urllib.parse import quote

RESOURCES = ("publications", "users", "hard_copies", "locations", "collections", "authorities", "tasks")
"""Every resource that can be listed, in the order in which backups read them."""

LIST_PATHS = {resource: "hard_copies/locations" if resource == "locations" else resource for resource in RESOURCES}
"""Resource → the path of its list (service.md#other-resources)."""

NESTED = {"collections/publications": "collection_publications"}
"""List of each record of a resource, as `nested` of a tenant names it → the resource that a snapshot has of it, and its table."""

LAST_DAY_OF_V2 = date(2026, 12, 31)
"""The service shuts v2 down at the end of 2026 (service.md#shutdown)."""

DAYS_OF_WARNING = 60
"""Days before its end from which on each backup of v2 says how many are left."""

NOT_LISTED = {
    ("v2", "users"): "version 2 of the API has no list of users. Read them with a tenant of the same library that has "
    'api = "v3" and the scope users:read'
}
"""API version and resource → why it cannot be listed: v2 has POST, PATCH and DELETE of users only (service.md#users)."""

_SINGULAR = {"hard_copies": "hard copy", "authorities": "authority"}


def days_left_of(api: str, today: date) -> int | None:
    """Returns the days until the end of this version of the API, negative after it; `None` if they are many, or no end is known."""
    days_left = (LAST_DAY_OF_V2 - today).days
    return days_left if api == "v2" and days_left <= DAYS_OF_WARNING else None


def default_resources(api: str) -> tuple[str, ...]:
    """Returns the resources of a backup without an explicit choice: all of v3, and of v2 the documented list."""
    return RESOURCES if api == "v3" else ("publications",)


def resource_problem(api: str, names: Iterable[str]) -> str | None:
    """Returns what is wrong with the resources that a person chose; `None` if nothing is."""
    resources = list(names)
    unknown = [name for name in resources if name not in RESOURCES]
    if unknown:
        return f"{', '.join(unknown)}: not a resource; those are {', '.join(RESOURCES)}"
    for name in resources:
        if reason := NOT_LISTED.get((api, name)):
            return f"{name}: {reason}"
    return None


def nested_problem(read: Iterable[str], names: Iterable[str]) -> str | None:
    """Returns what is wrong with the lists that a person chose, where these resources are read; `None` if nothing is."""
    chosen = list(names)
    if unknown := [name for name in chosen if name not in NESTED]:
        return (
            f"{', '.join(unknown)}: not a list of each record that can be read; those are {', '.join(NESTED)}. What the description of a "
            "library has besides is named by each of its backups (Not read)"
        )
    lacking = sorted({name.partition("/")[0] for name in chosen}.difference(read))
    return f"{', '.join(chosen)}, but not {', '.join(lacking)} in resources" if lacking else None


def nested_address(name: str) -> str:
    """The address of such a list: `/collections/:id/publications`."""
    parent, _, below = name.partition("/")
    return f"/{LIST_PATHS[parent]}/:id/{below}"


def nested_remedy(addresses: Collection[str], table: str = "its table") -> str:
    """How the lists at these addresses that `nested` can name are read; empty if it can name none of them."""
    names = ", ".join(f'"{name}"' for name in NESTED if nested_address(name) in addresses)
    return f"To read {names}, write nested = [{names}] in {table}." if names else ""


def record_path(resource: str, record_id: object) -> str:
    """The path of a record: below the list of its resource."""
    return f"{LIST_PATHS[resource]}/{quote(str(record_id), safe='')}"


def noun(resource: str) -> str:
    """The word for one record of a resource."""
    return _SINGULAR.get(resource, resource.removesuffix("s").replace("_", " "))


def plural(resource: str) -> str:
    """The word for records of a resource."""
    return resource.replace("_", " ")


def records_in_words(resource: str, count: int) -> str:
    """A number of records of a resource: `1 hard copy`, `1,090 users`."""
    return f"{count:,} {noun(resource) if count == 1 else plural(resource)}"

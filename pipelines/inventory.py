"""The resources of a library, and which of them each version of the API lists."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import date
from urllib.parse import quote

from pipelines.humanize import counted

RESOURCES = ("publications", "users", "hard_copies", "locations", "collections", "authorities", "tasks")
"""Every resource that can be listed, in the order in which backups read them."""

LIST_PATHS = {resource: "hard_copies/locations" if resource == "locations" else resource for resource in RESOURCES}
"""Resource → the path of its list (service.md#other-resources)."""

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

_TABLES_OF_RECORDS = (
    *("publication_authors", "publication_categories", "publication_files", "publication_identifiers"),
    *("user_roles", "authority_variants"),
)
"""Tables of lists that the records themselves have."""

_BESIDE_TABLE = re.compile("_(history|rows|past)$")
"""Matches what follows the name of a table in those of its views and relations."""

_LIST_NAME = re.compile("[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)*")
_LONGEST_LIST_NAME = 32


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
    tables = [*_TABLES_OF_RECORDS, *(nested_resource(name) for name in chosen)]
    for name in chosen:
        resource, _, below = name.partition("/")
        if resource not in RESOURCES or not _LIST_NAME.fullmatch(below) or len(below) > _LONGEST_LIST_NAME:
            return f"{name}: not a list of each record, such as collections/publications; the resources are {', '.join(RESOURCES)}"
        table = nested_resource(name)
        if tables.count(table) > 1 or _BESIDE_TABLE.sub("", table) in {*tables, "collection_publications"} - {table}:
            return f"{name}: its table would be called {table}, and that is the name of another one"
    lacking = sorted({name.partition("/")[0] for name in chosen}.difference(read))
    return f"{', '.join(chosen)}, but not {', '.join(lacking)} in resources" if lacking else None


def nested_resource(name: str) -> str:
    """The resource that a snapshot has of such a list, and its table: `collection_publications` of `collections/publications`."""
    parent, _, below = name.partition("/")
    return f"{nested_prefix(parent)}{re.sub('(?<=[a-z0-9])(?=[A-Z])|-', '_', below).lower()}"


def parent_of(resource: str) -> str | None:
    """The resource whose records have the lists that this resource of a snapshot is; `None` if it is no such one."""
    return next((parent for parent in RESOURCES if resource.startswith(nested_prefix(parent))), None)


def nested_of(parents: Collection[str], resources: Iterable[str]) -> list[str]:
    """Those resources of a snapshot that are lists of the records of these others."""
    return [resource for resource in resources if parent_of(resource) in parents]


def nested_prefix(parent: str) -> str:
    """How the name of the table of such a list begins: with the word for the record that has it."""
    return f"{noun(parent).replace(' ', '_')}_"


def nested_address(name: str) -> str:
    """The address of such a list: `/collections/:id/publications`."""
    parent, _, below = name.partition("/")
    return f"/{LIST_PATHS[parent]}/:id/{below}"


def nested_remedy(addresses: Collection[str], table: str = "its table") -> str:
    """How the lists at these addresses that `nested` can name are read; empty if it can name none of them."""
    parents = {f"/{path}": resource for resource, path in LIST_PATHS.items()}
    parts = (address.partition("/:id/") for address in addresses)
    named = [f"{parents[root]}/{below}" for root, _, below in parts if root in parents]
    names = ", ".join(f'"{name}"' for name in named if nested_problem(RESOURCES, [name]) is None)
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
    return counted(count, noun(resource), plural(resource))

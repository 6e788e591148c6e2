"""What a library has: the names of its resources, which of them each version of the API lists, and what a publication holds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

RESOURCES = ("publications", "users", "hard_copies", "locations", "collections", "authorities", "tasks")
"""Every resource that can be listed; the order in which they are read."""

IDENTIFIER_FIELDS = ("doi", "isbn", "issn", "arxiv_id", "pmid")
"""v2's flat identifier fields, in the order in which they are staged (service-api.md: "doi, isbn, pmid, ..."; trap A18)."""

IDENTIFIER_LIST = "identifiers"
"""v3's typed list (service-api.md: "array of objects, each: type, value")."""

PUBLICATION_KEYS = frozenset(
    {
        "id",
        "title",
        "publishable_type",
        "published_on",
        "abstract",
        "authors",
        "categories",
        "cover",
        "assets",
        "contributor",
        "organization",
    }
)
"""Fields that service-api.md shows of publications of both versions."""

LAST_DAY_OF_V2 = date(2026, 12, 31)
"""service-api.md, Versioning 2: "v2 stays unchanged until shut down at the end of 2026"."""

NOT_LISTED = {
    ("v2", "users"): "version 2 of the API has no list of users. Read them with a tenant of the same library that has "
    'api = "v3" and the scope users:read'
}
"""service-api.md, Users (v2): POST, PATCH and DELETE only, so asking would be in vain."""


def default_resources(api: str) -> tuple[str, ...]:
    """What is backed up where nobody names anything: all of v3, and of v2 what the document says it lists."""
    return RESOURCES if api == "v3" else ("publications",)


def resource_problem(api: str, names: Iterable[str]) -> str | None:
    """What is wrong with resources that a person names, if anything is."""
    wanted = list(names)
    unknown = [name for name in wanted if name not in RESOURCES]
    if unknown:
        return f"{', '.join(unknown)}: not a resource; those are {', '.join(RESOURCES)}"
    for name in wanted:
        if reason := NOT_LISTED.get((api, name)):
            return f"{name}: {reason}"
    return None

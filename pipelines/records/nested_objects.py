"""The objects inside a publication: their members, described once.

`fast_staging` decodes JSON into these classes. `general_staging` and `forms` take the names of the members from them: any other member is
residue or is reported as not sent.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Exact(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An object with these members and no others. It cannot be part of a cycle, so the garbage collector ignores it."""


class Addressed(Exact):
    """An object with addresses of files, which change in every response; `residue.ADDRESSES` has the same names."""

    url: Any = None
    thumb_url: Any = None
    preview_url: Any = None


class Author(Exact):
    """An entry of `authors`."""

    name: str | None = None
    type: str | None = None


class Category(Exact):
    """An entry of `categories`."""

    id: Int64 | None = None
    name: str | None = None


class ListedIdentifier(Exact):
    """An entry of version 3's `identifiers` (service.md#identifiers)."""

    type: str | None = None
    value: str | None = None


class Reference(Exact):
    """A record that the publication names: its contributor or organization (service.md#references)."""

    id: Int64 | None = None
    name: str | None = None


class Metadata(Exact):
    """`metadata` of a stored file."""

    size: Int64 | None = None
    filename: str | None = None
    mime_type: str | None = None


class StoredFile(Addressed):
    """The cover, or the `file` of an asset (service.md#covers)."""

    id: str | None = None
    storage: str | None = None
    metadata: Metadata | None = None


class Asset(Addressed):
    """An entry of `assets` (service.md#assets)."""

    id: Int64 | None = None
    publication_id: Int64 | None = None
    name: str | None = None
    content_type: str | None = None
    file: StoredFile | None = None


def _members(kind: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(kind.__struct_fields__)


AUTHOR_KEYS = _members(Author)
CATEGORY_KEYS = _members(Category)
IDENTIFIER_KEYS = _members(ListedIdentifier)
REFERENCE_KEYS = _members(Reference)
METADATA_KEYS = _members(Metadata)
STORED_KEYS = _members(StoredFile)
ASSET_KEYS = _members(Asset)

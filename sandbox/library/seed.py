"""Loads the real library into an empty tenant.

Each record becomes the publication with the number of its line. A year becomes 1 January, a month its first day; other dates are
dropped. Identifiers are stored verbatim, errors included.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import date
from importlib.resources import files
from itertools import cycle, islice
from pathlib import PurePosixPath
from typing import Any

from sandbox.state.blobs import LIBRARY, StoredFile, add_file
from sandbox.state.drafts import Author, Draft, Identifier, add_asset, add_publications, set_cover

IDENTIFIER_TYPES = ("doi", "isbn", "issn", "arxiv_id", "pmid")
_IMPORT_STATE = "imported"
_PRECISIONS = (
    (re.compile(r"\d{4}"), "-01-01"),
    (re.compile(r"\d{4}-\d{2}"), "-01"),
    (re.compile(r"\d{4}-\d{2}-\d{2}"), ""),
)


def seed(connection: sqlite3.Connection, tenant: int, limit: int | None = None) -> None:
    """Stores the records and files; ``limit`` takes the first n records, and repeats them if there are fewer."""
    lines = gzip.decompress(_data("publications.jsonl.gz")).splitlines()
    count = len(lines) if limit is None else limit
    records = [json.loads(line) for line in lines[:count]]
    new = [_draft(record) for record in islice(cycle(records), count)]
    keys = add_publications(connection, tenant, new)
    _attach(connection, tenant, keys)


def service_date(text: str | None) -> str | None:
    """Returns ``YYYY-MM-DD``, the only form of the service, or None."""
    for form, rest in _PRECISIONS:
        if text and form.fullmatch(text):
            return _existing(text + rest)
    return None


def _existing(day: str) -> str | None:
    try:
        return date.fromisoformat(day).isoformat()
    except ValueError:
        return None


def _draft(record: Mapping[str, Any]) -> Draft:
    return Draft(
        title=record["title"],
        publishable_type=record["publishable_type"],
        published_on=service_date(record["published_on"]),
        abstract=record["abstract"],
        authors=tuple(Author(each["name"], each["type"]) for each in record["authors"]),
        identifiers=tuple(Identifier(kind, record[kind]) for kind in IDENTIFIER_TYPES if record[kind] is not None),
        categories=tuple(record["categories"]),
        import_state=_IMPORT_STATE,
    )


def _attach(connection: sqlite3.Connection, tenant: int, keys: Sequence[int]) -> None:
    stored_files = {file["filename"]: file for file in json.loads(_data("files.json"))}
    attachments = [each for each in json.loads(_data("attachments.json")) if each["line"] <= len(keys)]
    for attachment in attachments:
        line = attachment["line"]
        publication = keys[line - 1]
        for position, name in enumerate(attachment["assets"]):
            file = _stored(stored_files[name], f"{line}/assets/{position}")
            key = add_file(connection, tenant, f"{LIBRARY}{name}", file)
            content_type = stored_files[name]["content_type"]
            title = PurePosixPath(name).stem
            add_asset(connection, tenant, publication, name=title, content_type=content_type, file=key)
        if cover := attachment["cover"]:
            file = _stored(stored_files[cover], f"{line}/cover")
            set_cover(connection, publication, add_file(connection, tenant, f"{LIBRARY}{cover}", file))


def _stored(file: Mapping[str, Any], place: str) -> StoredFile:
    """Returns the file under a storage key of its own, like an upload."""
    filename = file["filename"]
    digest = hashlib.sha256(f"{place}/{filename}".encode()).hexdigest()[:32]
    return StoredFile(digest + PurePosixPath(filename).suffix.lower(), filename, file["mime_type"], file["size"])


def _data(name: str) -> bytes:
    return files("sandbox.library").joinpath(name).read_bytes()

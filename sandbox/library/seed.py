"""Loads the real library into an empty tenant.

Each record becomes the publication with the number of its line. A year becomes 1 January, a month its first day; other dates are
dropped. Identifiers are stored verbatim, errors included.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import date
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

from sandbox.state.blobs import LIBRARY, StoredFile, file_document
from sandbox.state.publications import Publications, new_publication
from sandbox.state.records import Document, Records

IDENTIFIER_TYPES = ("doi", "isbn", "issn", "arxiv_id", "pmid")
_IMPORT_STATE = "imported"
_PRECISIONS = (
    (re.compile(r"\d{4}"), "-01-01"),
    (re.compile(r"\d{4}-\d{2}"), "-01"),
    (re.compile(r"\d{4}-\d{2}-\d{2}"), ""),
)


def seed(publications: Publications, limit: int | None = None) -> None:
    """Stores the records and files, or the first ones."""
    new = [_document(json.loads(line)) for line in gzip.decompress(_data("publications.jsonl.gz")).splitlines()[:limit]]
    assets = list(_attach(publications.of("files"), new))
    ids = publications.add_publications(new)
    publications.of("assets").add([{"publication_id": ids[place], **asset} for place, asset in assets])


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


def _document(record: Mapping[str, Any]) -> Document:
    return new_publication(
        **{name: record[name] for name in ("title", "publishable_type", "abstract", "authors")},
        published_on=service_date(record["published_on"]),
        identifiers=[{"type": kind, "value": record[kind]} for kind in IDENTIFIER_TYPES if record[kind] is not None],
        categories=[{"name": name} for name in record["categories"]],
        import_state=_IMPORT_STATE,
    )


def _attach(stored_in: Records, new: list[Document]) -> Iterator[tuple[int, Document]]:
    """Adds the files, sets the covers of publications, and yields their assets with the place of the publication."""
    stored_files = {file["filename"]: file for file in json.loads(_data("files.json"))}
    for attachment in json.loads(_data("attachments.json")):
        line = attachment["line"]
        if line > len(new):
            continue
        for position, name in enumerate(attachment["assets"]):
            file = _add_file(stored_in, stored_files[name], f"{line}/assets/{position}")
            content_type = stored_files[name]["content_type"]
            yield line - 1, {"name": PurePosixPath(name).stem, "content_type": content_type, "file": file}
        if cover := attachment["cover"]:
            new[line - 1]["cover"] = _add_file(stored_in, stored_files[cover], f"{line}/cover")


def _add_file(stored_in: Records, file: Mapping[str, Any], place: str) -> StoredFile:
    """Adds a file under a storage key of its own, like an upload."""
    filename = file["filename"]
    digest = hashlib.sha256(f"{place}/{filename}".encode()).hexdigest()[:32]
    stored = {name: file[name] for name in ("filename", "mime_type", "size")}
    stored["id"] = digest + PurePosixPath(filename).suffix.lower()
    stored_in.add([file_document(f"{LIBRARY}{filename}", stored)])
    return stored


def _data(name: str) -> bytes:
    return files("sandbox.library").joinpath(name).read_bytes()

"""Builds this folder's data from a folder of collected records and files.

    python -m sandbox.library.build COLLECTED

COLLECTED contains ``publications.jsonl.gz``, ``files.json`` and ``files/``. The same input always gives the same output.
Identifiers, titles and dates stay unchanged; ``seed.py`` converts them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from sandbox.library.attribution import SOURCES, attribution

Record = dict[str, Any]

_FIELDS = (
    "title", "publishable_type", "published_on", "abstract", "authors",
    "doi", "isbn", "issn", "arxiv_id", "pmid", "categories",
)  # fmt: skip
_SOURCE_FIELDS = ("repo", "path", "key", "licence")

# The media type that a browser derives from the name; in this library the content is sometimes another
_CONTENT_TYPES = {
    ".epub": "application/epub+zip",
    ".jpg": "image/jpeg",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".ris": "application/x-research-info-systems",
    ".txt": "text/plain",
}

# Every n-th record of a type has files: books texts and pictures, reports texts and citations
_EVERY = {"Book": 30, "Report": 25, "Article": 35}
_SUFFIXES = {
    "Book": (".epub", ".txt", ".jpg"),
    "Report": (".pdf", ".ris", ".txt"),
    "Article": (".pdf", ".png"),
}
_ASSETS_PER_RECORD = (1, 2, 1, 3)
_COVERS = {"Book": (".jpg",), "Report": (".png",), "Article": ()}


def main() -> None:
    """Builds everything beside this file."""
    parser = argparse.ArgumentParser(description="Make the sandbox's real library from collected records and files.")
    parser.add_argument("collected", type=Path, help="folder with publications.jsonl.gz, files.json and files/")
    build(parser.parse_args().collected, Path(__file__).parent)


def build(collected: Path, target: Path) -> None:
    """Writes the data files of the library into ``target``."""
    records = [_shipped(record) for record in _read_lines(collected / "publications.jsonl.gz")]
    files = [_described(file) for file in json.loads((collected / "files.json").read_text("utf-8"))]
    _write_lines(target / "publications.jsonl.gz", records)
    _write_json(target / "files.json", files)
    _write_json(target / "attachments.json", list(_attachments(records, files)))
    (target / "files").mkdir(exist_ok=True)
    for file in files:
        shutil.copyfile(collected / "files" / file["filename"], target / "files" / file["filename"])
    (target / "ATTRIBUTION.md").write_text(attribution(records, files), "utf-8")


def _shipped(record: Mapping[str, Any]) -> Record:
    """Returns a record without fields that the seed does not need, and without abstracts that the licence does not cover."""
    source = record["_source"]
    shipped = {name: record[name] for name in _FIELDS}
    if not SOURCES[source["repo"]].abstracts:
        shipped["abstract"] = None
    shipped["_source"] = {name: source[name] for name in _SOURCE_FIELDS}
    return shipped


def _described(file: Mapping[str, Any]) -> Record:
    described = dict(file)
    del described["encoding"]
    described["content_type"] = _CONTENT_TYPES[_suffix(file)]
    return described


def _suffix(file: Mapping[str, Any]) -> str:
    return Path(file["filename"]).suffix.lower()


def _attachments(records: list[Record], files: list[Record]) -> Iterator[Record]:
    """Yields which record (by its line, from 1) gets which files. Files take turns, so that each one is used about equally."""
    turns = {kind: cycle(_named(files, suffixes)) for kind, suffixes in _SUFFIXES.items()}
    covers = {kind: cycle(_named(files, suffixes) or [None]) for kind, suffixes in _COVERS.items()}
    counts = {kind: cycle(_ASSETS_PER_RECORD) for kind in _EVERY}
    seen = dict.fromkeys(_EVERY, 0)
    for line, record in enumerate(records, start=1):
        kind = record["publishable_type"]
        seen[kind] += 1
        if seen[kind] % _EVERY[kind] == 0:
            assets = list(islice(turns[kind], next(counts[kind])))
            yield {"line": line, "cover": next(covers[kind]), "assets": assets}


def _named(files: list[Record], suffixes: tuple[str, ...]) -> list[str]:
    return [file["filename"] for file in files if _suffix(file) in suffixes]


def _read_lines(path: Path) -> Iterator[Record]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _write_lines(path: Path, records: list[Record]) -> None:
    text = "".join(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

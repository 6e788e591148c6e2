"""Links to the pages of records in the library's own web interface.

The service's document does not say where these pages are. A person writes it into bookferry.toml (`record_url`); otherwise it is learned
from addresses in the records themselves, and called a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from pipelines.records.tables.publications import PUBLICATIONS
from pipelines.service.redaction import outside_text
from pipelines.store.durable import storage_errors
from pipelines.store.parquet import bounded_duckdb, escaped, literal, read_parquet
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

PLACE = "{id}"
"""Where the number of a record goes in an address."""

FIELDS = ("html_url", "web_url", "permalink", "links.html", "links.web", "url", "links.self", "self")
"""Members of a record that may have the address of its page; the plainest names come first."""

SAMPLE = 1000
"""Records that are looked at."""

ENOUGH = 2
"""Records whose addresses have to agree: of one alone, a number could be in it by chance."""

LONGEST = 500
"""Most characters of an address."""


class RecordLinks(NamedTuple):
    """How the address of a record's page is made. `template` is empty where it is unknown."""

    template: str = ""
    learned_from: str = ""
    """The field of the records from which it was learned; empty where a person configured it."""

    def to(self, record: int | None) -> str:
        """The address of the page of a record, or an empty text."""
        return self.template.replace(PLACE, str(record)) if self and record is not None else ""

    def __bool__(self) -> bool:
        """Whether there are links: the template may come from a file (I13)."""
        return self.template.startswith(("https://", "http://"))


def links_of(data: DataFolder, snapshot: Snapshot, configured: str | None, workdir: Path) -> RecordLinks:
    """The links to the publications of a snapshot: as `configured`, else as learned from the first records, else none.

    `workdir`: a folder for spill files.
    """
    if configured:
        return RecordLinks(configured)
    facts = snapshot.manifest.tables.get(f"raw_{PUBLICATIONS.name}")
    if facts is None or facts.encrypted:
        return RecordLinks()
    query = addresses_in(read_parquet([escaped(snapshot.address_of(facts))]))
    with storage_errors(snapshot.address), bounded_duckdb("128MB", 1, workdir) as database:
        data.objects.attach(database)
        return learned_links(database.execute(query).fetchall(), snapshot.manifest.base_url)


def addresses_in(raw: str) -> str:
    """SQL: the number of each of the first records of a raw table, and what it has in `FIELDS`. `raw`: its SQL source."""
    paths = ", ".join(literal("$." + field) for field in FIELDS)
    return f"SELECT id, TRY(json_extract_string(payload, [{paths}])) FROM {raw} WHERE id IS NOT NULL LIMIT {SAMPLE}"  # noqa: S608  names of ours


def learned_links(rows: Sequence[tuple[int, Sequence[str | None] | None]], base_url: str) -> RecordLinks:
    """The links that such records show."""
    for place, field in enumerate(FIELDS):
        found = [(record, address) for record, values in rows if values and (address := values[place])]
        if template := learned(found, base_url):
            return RecordLinks(template, field)
    return RecordLinks()


def learned(found: Iterable[tuple[int, str]], base_url: str) -> str:
    """The address on which all records agree, with `{id}` for their number; an empty text where they do not, or are too few.

    `found`: the number of each record, and the address in it.
    """
    templates, records = set[str](), set[int]()
    for record, address in found:
        templates.add(_template(record, address, base_url))
        records.add(record)
        if len(templates) > 1 or "" in templates:
            return ""
    return templates.pop() if len(records) >= ENOUGH else ""


def _template(record: int, address: str, base_url: str) -> str:
    """The template of one address; empty for one that is not certainly the page of this record in this library.

    It is on the library's own origin, ends with the record's number, is not the API's, and has no query: a file's address often has one.
    """
    if len(address) > LONGEST or outside_text(address, LONGEST) != address or set("{}?#@\\ ") & set(address):
        return ""
    try:
        parts, base = urlsplit(address), urlsplit(base_url)
        same = _origin(parts) == _origin(base)
    except ValueError:
        return ""
    before, _, last = parts.path.rstrip("/").rpartition("/")
    steps = before.removeprefix(base.path).split("/")
    outside = not before.startswith(f"{base.path}/") or "api" in steps
    if not same or outside or last != str(record) or str(record) in steps:
        return ""
    ending = "/" if parts.path.endswith("/") else ""
    return f"{parts.scheme}://{parts.netloc}{before}/{PLACE}{ending}"


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)

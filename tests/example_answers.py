"""What the queries in sql/examples have to answer, counted in plain Python from the records as they were received.

No table and no SQL is used here. Which identifiers a record holds is said by `identify`, which has tests of its own.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from pipelines.records.identifiers.verdicts import GOOD, Identifier
from tests.records.identifiers.identified import identify

Record = dict[str, Any]
Rows = Sequence[Sequence[object]]


@dataclass(frozen=True)
class Night:
    """A snapshot: resource → its records."""

    tenant: str
    snapshot: str
    api: str
    records: dict[str, list[Record]]

    @property
    def publications(self) -> list[Record]:
        """Those of the library."""
        return self.records["publications"]


def newest(nights: Iterable[Night]) -> list[Night]:
    """The newest of each library."""
    return list({night.tenant: night for night in sorted(nights, key=lambda one: one.snapshot)}.values())


def publications(nights: Iterable[Night]) -> Iterator[tuple[str, Record]]:
    """Tenant and record."""
    for night in newest(nights):
        for record in night.publications:
            yield night.tenant, record


def day(record: Record) -> date | None:
    text = record["published_on"] or ""
    return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else None


def year(record: Record) -> int | None:
    text = record["published_on"] or ""
    return int(text[:4]) if day(record) or re.fullmatch(r"(?!0000)\d{4}(-(0[1-9]|1[0-2]))?", text) else None


def kind(record: Record) -> str:
    return record["publishable_type"] or "no kind"


def good(record: Record) -> list[Identifier]:
    return [one for one in identify(record) if one.verdict in GOOD]


def identifying(record: Record) -> set[tuple[str, str]]:
    """What tells a publication from others: an ISBN only on a book, an ISSN never (service.md#identifiers)."""
    wanted = {"doi", "pmid", "arxiv_id", *(["isbn"] if record["publishable_type"] == "Book" else [])}
    return {(one.type, one.value) for one in good(record) if one.type in wanted}


def cut(text: Any, most: int = 80) -> Any:
    """A text of at most `most` characters, with an ellipsis if there were more."""
    return text if text is None or len(text) <= most else f"{text[:most]}…"


def spoken(record: Record) -> str:
    """A title without what makes no difference."""
    return re.sub(r"[ .,:;!?\"()/'-]+", " ", (record["title"] or "").lower()).strip()


def files(record: Record) -> Iterator[tuple[str, str | None, Record]]:
    """Kind, name and metadata of each file."""
    if record.get("cover"):
        yield "cover", None, record["cover"]["metadata"]
    for asset in record.get("assets") or ():
        yield "asset", asset["name"], asset["file"]["metadata"]


def counted(found: Counter[Any]) -> Rows:
    return [(*key, number) for key, number in found.items()]


def collection_by_decade(nights: list[Night]) -> Rows:
    decades: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for tenant, record in publications(nights):
        found = year(record)
        decade = "no date" if found is None else "before 1900" if found < 1900 else f"{found // 10}0s"
        decades[tenant, decade][kind(record)] += 1
    three = ("Article", "Book", "Report")
    return [
        (*key, *(kinds[one] for one in three), sum(kinds[one] for one in kinds if one not in three), kinds.total())
        for key, kinds in decades.items()
    ]


def holdings_by_kind_and_year(nights: list[Night]) -> Rows:
    return counted(Counter((tenant, kind(record), year(record)) for tenant, record in publications(nights)))


def gaps_by_kind(nights: list[Night]) -> Rows:
    gaps: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * 7)
    for tenant, record in publications(nights):
        there = (
            year(record),
            record["authors"],
            good(record),
            record["categories"],
            record["abstract"],
            [*files(record)],
        )
        line = gaps[tenant, kind(record)]
        for place, missing in enumerate([True, *(not one for one in there)]):
            line[place] += missing
    return [(*key, *line) for key, line in gaps.items()]


def records_without_identifiers(nights: list[Night]) -> Rows:
    return [
        (
            tenant,
            record["id"],
            record["publishable_type"],
            record["published_on"],
            cut(record["title"]),
            " | ".join(f"{one.type} {one.raw}" for one in identify(record)) or None,
        )
        for tenant, record in publications(nights)
        if not good(record)
    ]


def possible_duplicates(nights: list[Night]) -> Rows:
    holders: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for tenant, record in publications(nights):
        for one in identifying(record):
            holders[tenant, *one].append(record)
    return [
        (*key, len(records), joined(records), cut(min(record["title"] for record in records), 60))
        for key, records in holders.items()
        if len(records) > 1
    ]


def joined(records: list[Record]) -> str:
    return ", ".join(str(record["id"]) for record in sorted(records, key=lambda one: one["id"]))


def same_title_and_year(nights: list[Night]) -> Rows:
    alike: dict[tuple[str, int, str], list[Record]] = defaultdict(list)
    for tenant, record in publications(nights):
        if (found := year(record)) is not None and spoken(record):
            alike[tenant, found, spoken(record)].append(record)
    return [
        (tenant, found, cut(min(one["title"] for one in records)), len(records), joined(records), kinds_of(records))
        for (tenant, found, _), records in alike.items()
        if len(records) > 1
    ]


def kinds_of(records: list[Record]) -> str:
    return ", ".join(kind(record) for record in sorted(records, key=lambda one: one["id"]))


def identifiers_by_kind(nights: list[Night]) -> Rows:
    found: dict[tuple[str, str], list[Identifier]] = defaultdict(list)
    for tenant, record in publications(nights):
        for one in identify(record):
            found[tenant, one.type].append(one)
    verdicts = ("valid", "repaired", "invalid", "unrecognised")
    return [
        (
            *key,
            len(ones),
            *(sum(one.verdict == verdict for one in ones) for verdict in verdicts),
            len({one.value for one in ones if one.verdict in GOOD}),
        )
        for key, ones in found.items()
    ]


def repaired_identifiers(nights: list[Night]) -> Rows:
    found: dict[tuple[str, str, str], list[tuple[int, int, Identifier]]] = defaultdict(list)
    for tenant, record in publications(nights):
        for one in identify(record):
            if one.verdict == "repaired":
                found[tenant, one.type, one.rule].append((record["id"], one.position, one))
    return [(*key, len(ones), min(ones)[2].raw, min(ones)[2].value) for key, ones in found.items()]


def invalid_isbns_by_category(nights: list[Night]) -> Rows:
    isbns: dict[tuple[str, str], list[tuple[int, bool]]] = defaultdict(list)
    for tenant, record in publications(nights):
        for one in identify(record):
            for category in record["categories"] or [{"name": "no category"}]:
                if one.type == "isbn":
                    isbns[tenant, category["name"]].append((record["id"], one.verdict not in GOOD))
    return [
        (*key, len(ones), sum(wrong for _, wrong in ones), len({number for number, wrong in ones if wrong}))
        for key, ones in isbns.items()
        if any(wrong for _, wrong in ones)
    ]


def files_missing(nights: list[Night]) -> Rows:
    """The files of `old` were fetched, those of `new` were not."""
    return [
        (
            tenant,
            record["id"],
            cut(record["title"], 60),
            sort,
            data["filename"] or name,
            data["size"],
            "not_fetched",
            None,
        )
        for tenant, record in publications(nights)
        for sort, name, data in files(record)
        if tenant == "new"
    ]


def growth_by_month(nights: list[Night]) -> Rows:
    last = {(night.tenant, night.snapshot[:6]): night for night in sorted(nights, key=lambda one: one.snapshot)}
    rows, before = [], dict[str, int]()
    for (tenant, month), night in last.items():
        count = len(night.publications)
        growth = count - before[tenant] if tenant in before else None
        rows.append((tenant, f"{month[:4]}-{month[4:]}", count, growth))
        before[tenant] = count
    return rows


def changed_since_yesterday(nights: list[Night]) -> Rows:
    rows: list[Sequence[object]] = []
    for tenant in {night.tenant for night in nights}:
        last = sorted((night for night in nights if night.tenant == tenant), key=lambda one: one.snapshot)[-2:]
        if len(last) < 2:
            continue
        before, now = ({record["id"]: record for record in night.publications} for night in last)
        rows += [(tenant, "added", one, "title", None, cut(now[one]["title"])) for one in now.keys() - before.keys()]
        rows += [
            (tenant, "deleted", one, "title", cut(before[one]["title"]), None) for one in before.keys() - now.keys()
        ]
        for one in now.keys() & before.keys():
            old, new = fields(before[one]), fields(now[one])
            rows += [
                (tenant, "changed", one, field, cut(old[field]), cut(new[field]))
                for field in old
                if old[field] != new[field]
            ]
    return rows


def fields(record: Record) -> dict[str, str | None]:
    return {
        "title": record["title"],
        "kind": record["publishable_type"],
        "published on": record["published_on"],
        "abstract": record["abstract"],
        "identifiers": " | ".join(f"{one.type} {one.raw}" for one in identify(record)) or None,
        "authors": " | ".join(one["name"] for one in record["authors"]) or None,
        "categories": " | ".join(one["name"] for one in record["categories"]) or None,
        "files": " | ".join(
            data["filename"] or name or "?" for _, name, data in sorted(files(record), key=lambda one: one[0])
        )
        or None,
    }


def v2_against_v3(nights: list[Night]) -> Rows:
    here = {night.tenant: night.api for night in newest(nights)}
    arrived = [record for tenant, record in publications(nights) if here[tenant] == "v3"]
    known = set().union(*map(identifying, arrived))
    titles = {(kind(record), spoken(record), year(record)) for record in arrived if year(record) and spoken(record)}
    found: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * 4)
    for tenant, record in publications(nights):
        if here[tenant] == "v2":
            by_identifier = bool(identifying(record) & known)
            by_title = (kind(record), spoken(record), year(record)) in titles
            line = (True, by_identifier, by_title and not by_identifier, not by_title and not by_identifier)
            found[tenant, kind(record)] = [a + b for a, b in zip(found[tenant, kind(record)], line, strict=True)]
    return [(*key, *line) for key, line in found.items()]


def most_used_categories(nights: list[Night]) -> Rows:
    return most_frequent(nights, "categories")


def most_frequent_authors(nights: list[Night]) -> Rows:
    return most_frequent(nights, "authors")


def most_frequent(nights: list[Night], field: str) -> Rows:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for tenant, record in publications(nights):
        found[tenant].update({one["name"] for one in record[field]})
    return [
        (tenant, place, name, -number)
        for tenant, names in found.items()
        for place, (number, name) in enumerate(sorted((-count, one) for one, count in names.items())[:20], start=1)
    ]


TAKEN = {
    "id", "title", "publishable_type", "published_on", "abstract", "authors", "categories", "cover", "assets", "identifiers",
    "doi", "isbn", "issn", "arxiv_id", "pmid", "contributor", "organization", "url", "thumb_url", "preview_url",
}  # fmt: skip
"""Fields with a column of their own, and addresses that expire."""


def fields_without_a_column(nights: list[Night]) -> Rows:
    found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for tenant, record in publications(nights):
        for field in [*(record.keys() - TAKEN), *types_left_behind(record)]:
            found[tenant, field][kind(record)] += 1
    return [
        (*key, kinds.total(), *(kinds[one] for one in ("Article", "Book", "Report"))) for key, kinds in found.items()
    ]


def types_left_behind(record: Record) -> list[str]:
    """Where an entry of v3's list names another type than its value is certainly of."""
    return [
        f"identifiers[{place}].type"
        for place, entry in enumerate(record.get("identifiers") or ())
        if any(one.type != entry["type"] for one in identify({"identifiers": [entry]}))
    ]


def hard_copies_by_location(nights: list[Night]) -> Rows:
    rows: list[Sequence[object]] = []
    for night in newest(nights):
        names = {record["id"]: record["name"] for record in night.records.get("locations", ())}
        places: dict[str, list[Record]] = defaultdict(list)
        for record in night.records.get("hard_copies", ()):
            places[names.get(record["location_id"], "no location")].append(record)
        for name, copies in places.items():
            days = [date.fromisoformat(one["acquired_on"]) for one in copies if one.get("acquired_on")]
            held = {one["publication_id"] for one in copies}
            rows.append((night.tenant, name, len(copies), len(held), min(days, default=None), max(days, default=None)))
    return rows


def publications_with_most_files(nights: list[Night]) -> Rows:
    rows: list[Sequence[object]] = []
    for night in newest(nights):
        sizes = [(record, [data["size"] for _, _, data in files(record)]) for record in night.publications]
        most = sorted((one for one in sizes if one[1]), key=lambda one: (-len(one[1]), -sum(one[1]), one[0]["id"]))[:5]
        rows += [
            (night.tenant, place, record["id"], cut(record["title"], 60), len(found), sum(found))
            for place, (record, found) in enumerate(most, start=1)
        ]
    return rows


ANSWERS: dict[str, Callable[[list[Night]], Rows]] = {
    answer.__name__: answer
    for answer in (
        changed_since_yesterday,
        collection_by_decade,
        fields_without_a_column,
        files_missing,
        gaps_by_kind,
        growth_by_month,
        hard_copies_by_location,
        holdings_by_kind_and_year,
        identifiers_by_kind,
        invalid_isbns_by_category,
        most_frequent_authors,
        most_used_categories,
        possible_duplicates,
        publications_with_most_files,
        records_without_identifiers,
        repaired_identifiers,
        same_title_and_year,
        v2_against_v3,
    )
}
"""Example → its answer."""

"""The numbers of a report, against the same counted from the records in plain Python, without DuckDB."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any

import pytest

from pipelines.records.advice import field_name
from pipelines.records.identifiers.rules import SPELLING
from pipelines.records.identifiers.verdicts import GOOD, Identifier
from pipelines.report.pages import Report
from tests.records.identifiers.identified import identify
from tests.report.library import lines_of, real_records


@cache
def identifiers() -> list[tuple[dict[str, Any], Identifier]]:
    """Those of all records."""
    return [(record, identifier) for record in real_records() for identifier in identify(record)]


def is_repaired_date(record: Mapping[str, str]) -> bool:
    """Whether a date in another order has one reading."""
    text = record["published_on"] or ""
    readings = set()
    for order in ("%d %m %Y", "%m %d %Y", "%Y %b %d"):
        with suppress(ValueError):
            readings.add(datetime.strptime(re.sub("[./-]", " ", text), order))  # noqa: DTZ007
    return len(readings) == 1


def groups(pairs: Iterable[tuple[object, int]]) -> dict[object, set[int]]:
    """What more than one record has."""
    numbers_by_key: dict[object, set[int]] = defaultdict(set)
    for key, number in pairs:
        numbers_by_key[key].add(number)
    return {key: numbers for key, numbers in numbers_by_key.items() if len(numbers) > 1}


def shared() -> dict[object, set[int]]:
    """I8: an ISSN names a journal, an ISBN of an article the book around it."""
    return groups(
        ((identifier.type, identifier.value), record["id"])
        for record, identifier in identifiers()
        if identifier.verdict in GOOD
        and identifier.type != "issn"
        and not (identifier.type == "isbn" and record["publishable_type"] == "Article")
    )


def same_titles() -> dict[object, set[int]]:
    def plain(title: str) -> str:
        letters = (
            letter for letter in unicodedata.normalize("NFD", title.lower()) if not unicodedata.combining(letter)
        )
        return " ".join(re.findall(r"[^\W_]+", "".join(letters)))

    def year(record: Mapping[str, str]) -> str:
        text = (record["published_on"] or "").strip()
        return text[:4] if re.match(r"\d{4}(?!\d)", text) else text[-4:] if is_repaired_date(record) else ""

    return groups(((plain(record["title"]), year(record)), record["id"]) for record in real_records() if year(record))


def test_publications_without_identifiers(real: Report) -> None:
    identified = {record["id"] for record, identifier in identifiers() if identifier.verdict in GOOD}
    kinds = Counter(record["publishable_type"] for record in real_records())
    without = Counter(record["publishable_type"] for record in real_records() if record["id"] not in identified)
    figures = real.figures
    assert (figures.publications, figures.identifiers) == (len(real_records()), len(identifiers()))
    assert figures.without_identifier == len(real_records()) - len(identified)
    assert {kind: (holding.publications, holding.without_identifier) for kind, holding in figures.holdings.items()} == {
        kind: (count, without[kind]) for kind, count in kinds.items()
    }
    assert figures.without_date == sum(record["published_on"] is None for record in real_records())


@pytest.mark.long
def test_every_issue_is_a_line_and_every_line_an_issue(real: Report) -> None:
    """A line for each bad value, for each record of a group, for each date that is none; then one for each field that was repaired."""
    bad = [
        (record["id"], field_name(identifier.source_field))
        for record, identifier in identifiers()
        if identifier.verdict not in GOOD
    ]
    in_groups = [(number, field_name(key[0])) for key, numbers in shared().items() for number in numbers]  # type: ignore[index]
    titles = [(number, "title") for numbers in same_titles().values() for number in numbers]
    undated = [
        (record["id"], "date")
        for record in real_records()
        if record["published_on"]
        and not re.fullmatch(r"\d{4}(-(0[1-9]|1[0-2])(-\d\d)?)?", record["published_on"].strip())
        and not is_repaired_date(record)
    ]
    repaired = {
        (record["id"], field_name(identifier.source_field))
        for record, identifier in identifiers()
        if identifier.verdict == "repaired" and not set(identifier.rule.split("+")) <= {*SPELLING}
    } | {(record["id"], "date") for record in real_records() if is_repaired_date(record)}
    lines = [(int(line["record"]), line["field"]) for line in lines_of(real)]
    to_do = bad + in_groups + titles + undated
    assert Counter(lines[: real.to_do]) == Counter(to_do)
    assert Counter(lines[real.to_do :]) == Counter(repaired)
    assert (real.to_do, real.repaired, sum(real.counts.values())) == (len(to_do), len(repaired), len(to_do))

"""Snapshots for reports: the sandbox's real library, and a hostile library."""

from __future__ import annotations

import csv
import gzip
import json
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pipelines.report.build import make_report
from pipelines.report.pages import Report
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot
from tests.store.snapshot_factory import make_snapshot

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1+1",
    "\r\n=cmd|' /C calc'!A0",
    "＝1+1",
    'a "quoted" word; and\ta tab',
    "two\nlines",
    "null\x00byte",
    "\u202egnp.exe\u202c",
    "שלום עולם",
    "$x^2$ \\frac{1}{2}",
    "| a | b |",
    "`code` ``more``",
    "{{ 7 * 7 }} {% raw %}",
    "librarian@example.org wrote this",
    "https://store.example.org/f?X-Amz-Signature=0123456789abcdef0123456789abcdef",
)
"""Texts that some programs do not read as text."""


@cache
def real_records() -> list[dict[str, Any]]:
    """All 5,445 records, numbered."""
    text = gzip.decompress(files("sandbox.library").joinpath("publications.jsonl.gz").read_bytes())
    return [{"id": number, **json.loads(line)} for number, line in enumerate(text.splitlines(), start=1)]


def hostile_records() -> list[dict[str, Any]]:
    """Every hostile text in every place that a report includes, and a title of a megabyte."""
    records: list[dict[str, Any]] = [
        {
            "id": number,
            "title": text,
            "publishable_type": text,
            "published_on": text if number % 2 else "1984",
            "isbn": text,
            "identifiers": [{"type": text, "value": text}],
            "authors": [{"name": text, "type": "person", text: text}],
            "contributor": {"id": 1, "name": "Cora Contributor", "email": "cora@example.org"},
            "assets": [
                {"id": number, "name": text, "file": {"id": text, "metadata": {"filename": text}}, "url": HOSTILE[-1]}
            ],
            text: text,
        }
        for number, text in enumerate(HOSTILE, start=1)
    ]
    records += [{**record, "id": record["id"] + 1000} for record in records]
    return [*records, {"id": 5000, "title": "<b>" + "long " * 200_000, "doi": "x" * 1_000_000, "published_on": "1984"}]


def snapshot_of(data: DataFolder, records: list[dict[str, Any]], **options: Any) -> Snapshot:
    """A snapshot of some records, made by the steps of a backup."""
    return make_snapshot(data, [json.dumps(record) for record in records], **options)


def report_of(data: DataFolder, records: list[dict[str, Any]], **options: Any) -> Report:
    """The report of such a snapshot."""
    return make_report(data, snapshot_of(data, records, **options), now=NOW)


def lines_of(report: Report) -> list[dict[str, str]]:
    """issues.tsv as a spreadsheet reads it."""
    with Path(report.paths.issues).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, dialect="excel-tab", strict=True))

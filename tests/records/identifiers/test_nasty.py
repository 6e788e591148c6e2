"""Nasty values, each with what the standards say of it, written by hand: nasty.tsv.

Its columns: field, text (escaped as in JSON), expected (verdict, type and value of each identifier, with & between them), reason.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import NamedTuple

from pipelines.records.identifiers.kinds import STANDARD_KINDS


class Nasty(NamedTuple):
    """A row of the file."""

    field: str
    text: str
    expected: str
    reason: str


def rows() -> list[Nasty]:
    path = Path(__file__).with_name("nasty.tsv")
    with path.open(encoding="utf-8", newline="") as lines:
        _head, *entries = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return [Nasty(field, _unescaped(text), _unescaped(expected), reason) for field, text, expected, reason in entries]


def _unescaped(text: str) -> str:
    unescaped: str = json.loads(f'"{text}"')
    return unescaped


NASTY = rows()


def test_each_nasty_value_is_read_as_the_standards_say() -> None:
    for row in NASTY:
        identifiers = STANDARD_KINDS.read(row.field, row.text)
        written = " & ".join(f"{identifier.verdict} {identifier.type} {identifier.value}" for identifier in identifiers)
        assert written == row.expected, (row.field, row.text, row.reason)

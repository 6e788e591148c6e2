"""The 5,445 real records of the sandbox's library: what has to come out valid, and what cannot."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

import pytest
from stdnum import isbn as stdnum_isbn

from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.identifiers.verdicts import GOOD
from tests.records.identifiers.identified import entries_of, identify
from tests.records.identifiers.texts import FIELDS


@cache
def library() -> list[dict[str, Any]]:
    text = gzip.decompress(files("sandbox.library").joinpath("publications.jsonl.gz").read_bytes())
    return [json.loads(line) for line in text.splitlines()]


def texts_of(field: str) -> list[str]:
    return [record[field] for record in library() if record[field] is not None]


def holds_an_isbn(text: str) -> bool:
    """Whether python-stdnum finds an ISBN in a text, or one without its first zeros: written without our rules."""
    words = re.findall(r"[0-9][0-9-]*[0-9Xx]", re.sub(r"\([^)]*\)|10\.\S*", " ", text))
    padded = [word.zfill(10) for word in words if word.isalnum() and len(word) in range(7, 10) and word[0] != "0"]
    return "e+" not in text and any(stdnum_isbn.is_valid(word) for word in [*words, *padded] if len(word) > 9)


def test_every_isbn_that_is_there_is_found() -> None:
    """At least 95 % of the fields that hold a valid or certainly repairable ISBN are asked for; it is all of them."""
    holding = [text for text in texts_of("isbn") if holds_an_isbn(text)]
    assert len(holding) > 1600
    for text in holding:
        assert any(
            identifier.verdict in GOOD and identifier.type == "isbn" for identifier in STANDARD_KINDS.read("isbn", text)
        ), text


@pytest.mark.long
def test_nothing_is_lost_and_what_was_read_is_read_again() -> None:
    """I6, I7: each text is in the rows as it is; again changes nothing."""
    for record in library():
        flat = {field: record[field] for field in FIELDS}
        identifiers = identify(flat)
        assert {(identifier.source_field, identifier.raw) for identifier in identifiers} == {
            pair for pair in flat.items() if pair[1] is not None
        }
        entries = entries_of(identifiers)
        assert identify({"identifiers": entries}) == [
            (entry["type"], entry["value"], entry["value"], "identifiers", position, "valid", "")
            for position, entry in enumerate(entries)
        ]

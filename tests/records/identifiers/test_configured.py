"""Types that only the configuration knows: each described by a table (service.md#identifiers)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.records.identifiers.configured import kinds_of
from pipelines.records.identifiers.verdicts import GOOD
from pipelines.settings.identifier_types import IdentifierSettings
from tests.records.identifiers import texts

PMCID = {"pattern": "PMC[1-9][0-9]{0,7}", "fields": ("pmcid", "pmc"), "case": "upper"}
HANDLE = {"pattern": r"[0-9.]+/[^\s;]+"}
KINDS = kinds_of(
    {
        name: IdentifierSettings.model_validate(table).model_dump()
        for name, table in (("pmcid", PMCID), ("handle", HANDLE))
    }
)


def read(kind: str, text: str) -> list[tuple[str, ...]]:
    return [tuple(identifier) for identifier in KINDS.read(kind, text)]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("pmcid", "PMC2657264", [("pmcid", "PMC2657264", "valid", "")]),
        ("pmcid", "pmc2657264 ", [("pmcid", "PMC2657264", "repaired", "white_space+case")]),
        ("pmcid", "PMC1; PMC2", [("pmcid", "PMC1; PMC2", "invalid", "form")]),
        ("pmcid", "2657264", [("pmcid", "2657264", "invalid", "form")]),
        ("pmcid", "10.1000/182", [("doi", "10.1000/182", "repaired", "other_type")]),
        ("pmid", "PMC2657264", [("pmid", "PMC2657264", "unrecognised", "text")]),
        ("handle", "1721.1/26698", [("handle", "1721.1/26698", "valid", "")]),
        ("handle", r"1721.1/a\_b", [("handle", r"1721.1/a\_b", "valid", "")]),
        (
            "urn",
            "urn:nbn:de:101:1-201102033592",
            [("urn", "urn:nbn:de:101:1-201102033592", "unrecognised", "unknown_type")],
        ),
        ("", "7", [("", "7", "unrecognised", "type_missing")]),
    ],
)
def test_a_configured_type(kind: str, text: str, expected: list[tuple[str, ...]]) -> None:
    assert read(kind, text) == expected


@pytest.mark.long
@given(st.sampled_from(["pmcid", "handle", "urn"]), texts.hostile | st.just("PMC12"))
def test_what_came_out_comes_out_again(kind: str, text: str) -> None:
    """I7 holds for every type."""
    for identifier in KINDS.read(kind, text):
        readings = KINDS.read(identifier.type, identifier.value)
        assert [(reading.type, reading.value, reading.verdict in GOOD) for reading in readings] == [
            (identifier.type, identifier.value, identifier.verdict in GOOD)
        ]

"""What holds for every text (I7): nothing raises, what comes out stays as it is, nothing valid is broken, nothing is valid that is not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdnum import isbn as stdnum_isbn
from stdnum import issn as stdnum_issn

from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.identifiers.rules import Rule, Sort
from pipelines.records.identifiers.verdicts import GOOD, REPAIRED, VALID, VERDICTS
from tests.records.identifiers import texts
from tests.records.identifiers.identified import identify

fields = st.sampled_from(texts.FIELDS)


@pytest.mark.long
@given(fields, texts.hostile)
def test_any_text_has_a_verdict_with_known_rules(field: str, text: str) -> None:
    identifiers = STANDARD_KINDS.read(field, text)
    assert identifiers
    for identifier in identifiers:
        assert identifier.verdict in VERDICTS
        names = set(identifier.rule.split("+")) if identifier.rule else set()
        if identifier.verdict in GOOD:
            assert (identifier.verdict == VALID) == (not names)
            assert identifier.verdict == REPAIRED or (identifier.type, identifier.value) == (field, text)
            assert {Rule(name).sort for name in names} <= {Sort.SPELLING, Sort.REPAIR}
        else:
            assert [Rule(name).sort.name.lower() for name in names] == [identifier.verdict]


@pytest.mark.long
@given(fields, texts.hostile)
def test_what_came_out_comes_out_again(field: str, text: str) -> None:
    """I7, idempotent: each value, put into the field of its type, is found again alone, with the same verdict.

    But a number that may have lost its zeros is believed when it stands alone.
    """
    for identifier in STANDARD_KINDS.read(field, text):
        if identifier.rule == "zeros_unproved":
            continue
        readings = STANDARD_KINDS.read(identifier.type, identifier.value)
        verdict = VALID if identifier.verdict == REPAIRED else identifier.verdict
        assert [(reading.type, reading.value, reading.verdict) for reading in readings] == [
            (identifier.type, identifier.value, verdict)
        ]


FORMS = {
    "doi": re.compile(r"10\.[1-9][0-9]{3,8}(\.[0-9]+)*/\S+|10/[a-z0-9]+"),
    "isbn": re.compile(r"97[89][0-9]{10}"),
    "issn": re.compile(r"[0-9]{4}-[0-9]{3}[0-9X]"),
    "arxiv_id": re.compile(r"[0-9]{4}\.[0-9]{4,5}|[a-z-]+/[0-9]{7}"),
    "pmid": re.compile(r"[1-9][0-9]{0,7}"),
}


@pytest.mark.long
@given(fields, texts.hostile)
def test_nothing_is_valid_that_is_not(field: str, text: str) -> None:
    """What is called valid has its standard's form and, by python-stdnum, its check digit."""
    for identifier in STANDARD_KINDS.read(field, text):
        if identifier.verdict in GOOD:
            assert FORMS[identifier.type].fullmatch(identifier.value)
            assert identifier.type != "isbn" or (
                stdnum_isbn.is_valid(identifier.value) and not identifier.value.startswith("9790")
            )
            assert identifier.type != "issn" or stdnum_issn.is_valid(identifier.value)
            assert identifier.type != "doi" or texts.lower(identifier.value) == identifier.value


@pytest.mark.long
@given(texts.valid)
def test_a_valid_value_stays_as_it_is(valid: tuple[str, str]) -> None:
    kind, value = valid
    assert STANDARD_KINDS.read(kind, value) == [(kind, value, VALID, "")]


@pytest.mark.long
@given(texts.dois_in_any_case)
def test_a_doi_is_never_split(text: str) -> None:
    """DOI Handbook: the suffix may hold any visible character; a SICI holds `;`, `<` and `>`."""
    identifiers = STANDARD_KINDS.read("doi", text)
    assert [(identifier.type, identifier.value) for identifier in identifiers] == [("doi", texts.lower(text))]
    assert identifiers[0].verdict in GOOD


@pytest.mark.long
@given(
    fields.flatmap(
        lambda kind: st.tuples(st.just(kind), st.lists(texts.VALID[kind], min_size=2, max_size=5, unique=True))
    ),
    st.sampled_from(["; ", ";", " | ", ", "]),
)
def test_several_values_are_all_found(values: tuple[str, list[str]], separator: str) -> None:
    kind, parts = values
    identifiers = STANDARD_KINDS.read(kind, separator.join(parts))
    assert [(identifier.type, identifier.value, identifier.verdict, identifier.rule) for identifier in identifiers] == [
        (kind, part, REPAIRED, "split") for part in parts
    ]


@pytest.mark.long
@given(texts.isbns_10 | texts.isbns_13, st.sampled_from([" ", "-"]), st.data())
def test_hyphens_never_break_an_isbn(number: str, separator: str, data: st.DataObject) -> None:
    """Wherever the hyphens stand, in any number of places, it is one ISBN."""
    places = data.draw(st.lists(st.integers(1, len(number) - 1), unique=True, max_size=4))
    written = "".join(separator * (place in places) + character for place, character in enumerate(number))
    assert [identifier.value for identifier in STANDARD_KINDS.read("isbn", written)] == [stdnum_isbn.to_isbn13(number)]


@given(texts.isbns_10, st.sampled_from([" ", "; ", " (pbk.); ", "/"]))
def test_both_forms_of_an_isbn_are_one_identifier(number: str, between: str) -> None:
    longer = stdnum_isbn.to_isbn13(number)
    for text in (f"{number}{between}{longer}", f"{longer}{between}{number}"):
        (identifier,) = STANDARD_KINDS.read("isbn", text)
        assert (identifier.value, identifier.verdict) == (longer, REPAIRED)
        assert "repeated" in identifier.rule


values = (
    texts.hostile
    | st.none()
    | st.sampled_from([7, 9.78e12, True, [], ["0306406152", None], {"a": 1}, float("nan"), 10**30])
)
flat_records = st.dictionaries(fields, values | fields.flatmap(texts.VALID.__getitem__))


@pytest.mark.long
@given(
    flat_records,
    st.lists(st.fixed_dictionaries({}, optional={"type": fields | values, "value": values}) | values, max_size=4),
)
def test_every_raw_value_is_found_in_the_rows(record: dict[str, object], entries: list[object]) -> None:
    """I6: of each filled field there is a row with its text untouched, and rows are numbered through."""
    identifiers = identify({**record, "identifiers": entries})
    assert [identifier.position for identifier in identifiers] == list(range(len(identifiers)))
    for field, value in record.items():
        if isinstance(value, str) and value:
            valid_text = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            assert {identifier.raw for identifier in identifiers if identifier.source_field == field} in (
                {value},
                {valid_text},
            )
    assert len([identifier for identifier in identifiers if identifier.source_field == "identifiers"]) >= len(entries)

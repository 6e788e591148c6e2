"""Nothing is invented: what is called an identifier stands in the text, or its digits do, in the real records and in mutations of them."""

from __future__ import annotations

import html
import re
import string
import unicodedata
from collections.abc import Callable
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.identifiers.verdicts import GOOD
from tests.records.identifiers.test_real_library import texts_of
from tests.records.identifiers.texts import FIELDS

BETWEEN = r"[\s.\-+'{}]*"
"""Signs between the digits of one number; a separator, a bracket or a letter ends it."""

CHECKED = {"isbn": slice(3, 12), "issn": slice(0, 7)}
"""The digits of a number that no rule computes: of an ISBN without its prefix and check digit, of an ISSN without its check digit."""

ADDED = {"doi": re.compile("^10/"), "arxiv_id": re.compile(".*/")}
"""What the address of a short DOI lacks, and the archive, which may stand behind the number."""


def plain(text: str) -> str:
    """A text with ASCII digits and dashes, without entities, encodings, LaTeX and invisible characters: without our rules."""
    before = None
    while before != text:
        before, text = text, unquote(html.unescape(text))
    text = text.replace("{\\textless}", "<").replace("{\\textgreater}", ">").replace("$<$", "<").replace("$>$", ">")
    text = "".join(
        str(unicodedata.decimal(character))
        if character.isdecimal()
        else "-"
        if unicodedata.category(character) == "Pd" or character == "\u2212"
        else unicodedata.normalize("NFKC", character)
        for character in text
        if unicodedata.category(character) != "Cf"
    )
    return re.sub(r"\\|[{}](?=_)|(?<=_)[{}]", "", text)


def stands_in(kind: str, value: str, text: str) -> bool:
    """Whether a value, or the digits that make it one, stand together in a text."""
    if kind in CHECKED:
        digits = value.replace("-", "")[CHECKED[kind]].lstrip("0")
        return re.search(BETWEEN.join(digits), text) is not None
    return ADDED.get(kind, re.compile("^$")).sub("", value).lower() in text.lower()


def assert_nothing_is_invented(field: str, text: str) -> None:
    for identifier in STANDARD_KINDS.read(field, text):
        if identifier.verdict in GOOD and identifier.value not in text:
            assert stands_in(identifier.type, identifier.value, plain(text)), (field, text, identifier)


def test_in_the_real_records() -> None:
    for field in FIELDS:
        for text in texts_of(field):
            assert_nothing_is_invented(field, text)


WORDS = [
    "kart.",
    "平装",
    "(rústica)",
    "br.",
    "Bd. 2",
    "v. 1",
    "в пер.",
    "مجلد",
    "see",
    "1. Auflage",
    "[doi]",
    "[pmid]",
    "S1234-5678(05)00012-3 [pii]",
]
PRICES = [
    ": CNY59.00",
    ": DM 24.80",
    ": EUR 19,95",
    ": £12.50 (pbk.)",
    "Rs. 1,250.00",
    ": 1500円",
    "51995",
    ": 45 F",
    ": 2049-3630 Ft",
    ", sfr 23.50",
]
BEFORE = ["ISBN ", "urn:issn:", "PMID- ", "https://doi.org/", "https://portal.issn.org/resource/ISSN/", "10.978."]  # fmt: skip
SCRIPTS = ["٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹", "०१२३४५६७८९", "０１２３４５６７８９"]

real = st.sampled_from([(field, text) for field in FIELDS for text in texts_of(field) if len(text) < 200])
mutations = st.one_of(
    st.sampled_from(WORDS + PRICES).map(lambda words: lambda text, _at: f"{text} {words}"),
    st.sampled_from(WORDS + PRICES).map(lambda words: lambda text, at: f"{text[:at]} {words} {text[at:]}"),
    st.sampled_from(BEFORE).map(lambda name: lambda text, _at: name + text),
    st.sampled_from(SCRIPTS).map(lambda digits: lambda text, _at: text.translate(str.maketrans(string.digits, digits))),
    st.sampled_from([*" -;,/.:|()[]xX0123456789", ""]).map(
        lambda sign: lambda text, at: text[:at] + sign + text[at + 1 :]
    ),
    st.sampled_from([*" -;,/.:|()[]", " : ", ". - "]).map(lambda sign: lambda text, at: text[:at] + sign + text[at:]),
    real.map(lambda pair: lambda text, _at: f"{text} {pair[1]}"),
)


@settings(max_examples=400)
@given(real, st.sampled_from(FIELDS), st.lists(st.tuples(mutations, st.integers(0, 60)), min_size=1, max_size=4))
def test_in_mutations_of_them(
    record: tuple[str, str], second_field: str, changes: list[tuple[Callable[[str, int], str], int]]
) -> None:
    field, text = record
    for change, at in changes:
        text = change(text, at)
    for name in {field, second_field}:
        assert_nothing_is_invented(name, text)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("isbn", "9780306406157", "0306 : 406152"),
        ("pmid", "18243976", "1824 3976"),
        ("doi", "10.1000/182", "10.1000/1812"),
    ],
)
def test_the_measure_sees_an_invention(field: str, value: str, text: str) -> None:
    assert not stands_in(field, value, text)

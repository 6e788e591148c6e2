"""Our check digits, which are on the hot path, are python-stdnum's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from stdnum import ean, isbn, issn

from pipelines.records.identifiers.check_digits import isbn_10_holds, isbn_13_holds, isbn_13_of, issn_holds, issn_of


@given(st.from_regex(r"[0-9]{9}[0-9X]", fullmatch=True))
def test_isbn_10_as_python_stdnum_has_it(number: str) -> None:
    assert isbn_10_holds(number) == isbn.is_valid(number)


@given(st.from_regex(r"97[89][0-9]{10}", fullmatch=True))
def test_isbn_13_as_python_stdnum_has_it(number: str) -> None:
    assert isbn_13_holds(number) == isbn.is_valid(number) == ean.is_valid(number)


@given(st.from_regex(r"[0-9]{7}[0-9X]", fullmatch=True))
def test_issn_as_python_stdnum_has_it(number: str) -> None:
    assert issn_holds(number) == issn.is_valid(number)


@given(st.from_regex(r"[0-9]{9}", fullmatch=True))
def test_the_check_digits_that_we_set_are_python_stdnums(nine: str) -> None:
    """ISBN Users' Manual: an ISBN-10 becomes an ISBN-13 by 978 and a new check digit. ISO 3297: the check digit of an ISSN."""
    number = nine + isbn._calc_isbn10_check_digit(nine)
    assert isbn_10_holds(number)
    assert isbn_13_of(number) == isbn.to_isbn13(number)
    assert issn_of(nine[:7]) == f"{nine[:4]}-{nine[4:7]}{issn.calc_check_digit(nine[:7])}"

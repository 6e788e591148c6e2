"""Texts as they come into identifier fields: valid identifiers, other spellings of them, what stands around them, and anything at all."""

from __future__ import annotations

import re
import string

from hypothesis import strategies as st
from stdnum import ean, isbn, issn

from pipelines.records.identifiers.arxiv import ARCHIVES

FIELDS = ("doi", "isbn", "issn", "arxiv_id", "pmid")

_TOUCHED = re.compile(r"%[0-9a-f]{2}|&#?\w*(?:;|$)|[\\${}]|[;,|].*10\.[1-9]", re.IGNORECASE)
"""In a DOI: percent-encoding, entities, LaTeX, and another DOI behind a separator. Each is taken for what it looks like."""


def _digits(count: int) -> st.SearchStrategy[str]:
    return st.text(string.digits, min_size=count, max_size=count)


def _unlike_made_up(number: str) -> bool:
    return len(set(number)) > 3 and "234567" not in number


isbns_10 = _digits(9).filter(_unlike_made_up).map(lambda nine: nine + isbn._calc_isbn10_check_digit(nine))
isbns_13 = (
    st.tuples(st.sampled_from(["978", "9791", "9798"]), _digits(9).filter(_unlike_made_up))
    .map(lambda parts: "".join(parts)[:12])
    .map(lambda twelve: twelve + ean.calc_check_digit(twelve))
)
issns = _digits(7).filter(_unlike_made_up).map(lambda seven: f"{seven[:4]}-{seven[4:]}{issn.calc_check_digit(seven)}")
pmids = st.integers(1, 99_999_999).map(str)
arxiv_ids = st.one_of(
    st.builds("{:02}{:02}.{:05}".format, st.integers(15, 49), st.integers(1, 12), st.integers(1, 99_999)),
    st.builds("{:02}{:02}.{:04}".format, st.integers(8, 14), st.integers(1, 12), st.integers(1, 9_999)),
    st.builds(
        "{}/{:02}{:02}{:03}".format,
        st.sampled_from(sorted(ARCHIVES)),
        st.sampled_from([*range(91, 100), *range(7)]),
        st.integers(1, 12),
        st.integers(1, 999),
    ),
)
sicis = st.builds(
    "10.1002/(sici){}({}){}:{}<{}::aid-{}>3.0.co;2-{}".format,
    issns.map(str.lower),
    st.integers(190_001, 200_012),
    st.integers(1, 99),
    st.integers(1, 20),
    st.integers(1, 9999),
    st.from_regex(r"[a-z]{2,5}[0-9]{1,4}", fullmatch=True),
    st.sampled_from(string.digits + string.ascii_lowercase + "#"),
)
_suffixes = st.text(
    st.sampled_from(string.ascii_letters + string.digits + string.punctuation + "éßλя中"), min_size=1, max_size=25
)
dois_in_any_case = sicis | st.builds(
    "10.{}/{}".format,
    st.integers(1000, 99_999) | st.just("1000.10"),
    _suffixes.filter(lambda text: not _TOUCHED.search(text)),
)


def lower(text: str) -> str:
    """In lower case as DOIs understand it: of ASCII only."""
    return re.sub("[A-Z]+", lambda letters: letters[0].lower(), text)


dois = dois_in_any_case.map(lower)

VALID = {"doi": dois, "isbn": isbns_13, "issn": issns, "arxiv_id": arxiv_ids, "pmid": pmids}
"""Type → its identifiers in canonical form."""

valid = st.sampled_from(FIELDS).flatmap(lambda kind: st.tuples(st.just(kind), VALID[kind]))

_around = st.sampled_from(
    [
        *[
            "",
            " ",
            ";",
            "; ",
            ", ",
            "|",
            " | ",
            "/",
            " and ",
            "-",
            ".",
            ":",
            " :",
            "(pbk.)",
            " (print)",
            "[cs.CL]",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
        ],
        *[
            "<",
            ">",
            '"',
            "ISBN ",
            "isbn-13: ",
            "ISSN",
            "e-ISSN: ",
            "DOI: ",
            "doi:",
            "https://doi.org/",
            "http://dx.doi.org/",
            "PMID: ",
            "arXiv:",
        ],
        *[
            "https://arxiv.org/abs/",
            "https://pubmed.ncbi.nlm.nih.gov/",
            "v2",
            "v. 1",
            ".pdf",
            "X",
            "x",
            "0",
            "978",
            "10.",
            "/",
            "10/",
        ],
        *[
            "%2F",
            "%3B",
            "%25",
            "%26",
            "&lt;",
            "&amp;",
            "lt;",
            "#38;",
            "\\_",
            "\\url{",
            "\\href{",
            "}{",
            "{\\textless}",
            "$<$",
            "\\textbackslash{}r",
        ],
        *[
            "\u00a0",
            "\u200b",
            "\u00ad",
            "\u2013",
            "\uff11",
            "\t",
            "\n",
            "e+12",
            ".0",
            "n/a",
            "Х",
            "?a=b",
            "#",
            "\x00",
            "\ud800",
        ],
    ]
)
hostile = st.lists(
    _around
    | st.text(string.digits + "-xX ", max_size=14)
    | st.text(st.characters(exclude_categories=()), max_size=4)
    | isbns_10
    | st.sampled_from(FIELDS).flatmap(VALID.__getitem__),
    max_size=9,
).map("".join)
"""Valid identifiers, pieces of their surroundings and any characters in any order."""

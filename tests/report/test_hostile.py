"""Records that mean harm (I10, I13): the table in a spreadsheet, the page in a browser, the Markdown where it is rendered."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import duckdb
import msgspec
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.report import _redacted, document
from pipelines.report.issues import LONGEST, safe_text
from pipelines.report.pages import Report
from pipelines.report.rendering import commands_as_code
from pipelines.report.tables import COLUMNS, cell
from tests.report.library import HOSTILE, lines_of

FORMULA = re.compile(r"\s*[=+\-@＝＋－＠](?!\d+([.,]\d+)?$)")
"""The beginning of a formula. A number with a sign before it is none."""


def files_of(report: Report) -> list[str]:
    paths = (report.paths.issues, report.paths.html)
    return [Path(path).read_text("utf-8") for path in paths]


def answer_of(report: Report) -> str:
    """What the command answers with --json."""
    return msgspec.json.encode(document(report)).decode()


def test_no_secret_and_nobody_is_in_it(hostile: Report) -> None:
    """No signed address, no contributor, no e-mail address; no control character, and no sign that turns text round."""
    for text in (*files_of(hostile), answer_of(hostile)):
        assert len(text) < 200_000, "a megabyte is cut"
        for secret in ("0123456789abcdef", "Cora", "cora@", "librarian@"):
            assert secret not in text
        assert re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("of cora@example.org", "of [redacted]"),
        ("a/cora@localhost", "a/[redacted]"),
        ("o:owner/@id", "o:owner/@id"),
        ("dcterms:title/@value", "dcterms:title/@value"),
    ],
)
def test_an_e_mail_address_is_not_shown_and_the_name_of_a_field_is(text: str, shown: str) -> None:
    assert safe_text(text) == shown


def test_names_that_are_redacted_alike_have_the_sum_of_their_numbers() -> None:
    names = ("cora@example.org", "ida@example.org")
    assert _redacted({"publications": dict(zip(names, (3, 5), strict=True))}) == {"publications": {"[redacted]": 8}}
    verdicts = {name: {"valid": 2, "invalid": 1} for name in names}
    assert _redacted(verdicts) == {"[redacted]": {"valid": 4, "invalid": 2}}


def test_no_cell_is_a_formula_and_every_line_has_its_columns(hostile: Report) -> None:
    """As Python's reader for Excel's dialect, pandas and DuckDB open it; and as `cut` and `sort` see it, line by line."""
    lines = lines_of(hostile)
    assert len(lines) == hostile.to_do + hostile.repaired > 100
    path = Path(hostile.paths.issues)
    assert path.read_bytes().startswith(b"\xef\xbb\xbf" + "\t".join(COLUMNS).encode() + b"\n")
    assert [line.count("\t") for line in path.read_text("utf-8").splitlines()] == [len(COLUMNS) - 1] * (len(lines) + 1)
    for line in lines:
        assert not any(FORMULA.match(text) or len(text) > 2 * LONGEST for text in line.values())
    table = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False)
    assert table.to_dict("records") == lines
    read = duckdb.sql(f"FROM read_csv('{path}', delim='\t', header=true, all_varchar=true, hive_partitioning=false)")
    assert read.columns == list(COLUMNS)
    assert len(read.fetchall()) == len(lines)


@pytest.mark.long
@given(
    st.text()
    | st.sampled_from(HOSTILE)
    | st.from_regex(r"[0-9]{7,13}(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
)
def test_any_text_is_one_cell_of_text(text: str) -> None:
    """No formula, no second cell or line; plain words and numbers stay as they are: an apostrophe would get into the records."""
    written = cell(safe_text(text))
    inside = written[1:-1].replace('""', '"') if written.startswith('"') else written
    assert not FORMULA.match(inside)
    assert not re.match(r"'[0-9]", inside)
    assert "\t" not in written
    assert len(written.splitlines()) <= 1
    for plain in (
        "A history of printing; with plates",
        "9780306406157",
        "0306406152",
        "978-0-306-40615-7",
        "-1",
        "1984-06",
    ):
        assert cell(plain) == plain


class _Tags(HTMLParser):
    """The elements of a page, and their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _value in attrs}


def test_the_page_holds_no_element_of_a_record(hostile: Report, real: Report) -> None:
    """What is in the page of a harmless library, and no more."""
    harmless, page = _Tags(files_of(real)[1]), _Tags(files_of(hostile)[1])
    assert page.tags - harmless.tags <= {"br"}
    assert page.attributes <= harmless.attributes | {"role"}
    assert not page.tags & {"script", "img", "iframe", "link", "object", "form"}
    assert "49" not in re.findall(r"\{\{ 7 \* 7 \}\}|49", files_of(hostile)[1]), "what a record says is no template"


@given(
    st.text() | st.sampled_from(HOSTILE) | st.lists(st.sampled_from(["`", "<b>", "</code>", "run", "&"])).map("".join)
)
def test_a_command_in_a_message_is_code_and_nothing_else_is_an_element(text: str) -> None:
    page = str(commands_as_code(text))
    assert _Tags(page).tags <= {"code"}
    assert unescape(re.sub("</?code>", "", page)) == re.sub("`([^`]+)`", r"\1", text)
    assert commands_as_code("run `bookferry report <demo>`.") == "run <code>bookferry report &lt;demo&gt;</code>."

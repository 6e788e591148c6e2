"""RFC 8288, section 3: every form of a `Link` header, held against the parser of another library, and hostile ones (I13)."""

from __future__ import annotations

import time

import httplink
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.service.http.link_header import parse_links


def read(*lines: str) -> list[tuple[str, list[str]]]:
    """Returns target and relations of each link."""
    return [(link.target, link.relations) for link in parse_links(lines).links]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('<a>; rel="first\tprev  last"', [("a", ["first", "prev", "last"])]),
        ("<a>; crossorigin; rel=next; preload", [("a", ["next"])]),
        ("<a>; rel=; rel=next", [("a", [])]),
        ("<a>; rev=next", [("a", [])]),
        ("<a>; rel*=UTF-8''next", [("a", [])]),
        ("<a>; rel=https://relations.example/next?a=b", [("a", ["https://relations.example/next?a=b"])]),
    ],
)
def test_every_form_of_a_link(header: str, expected: list[tuple[str, list[str]]]) -> None:
    """RFC 8288, 3 to 3.3: relations, and parameters without a value; the other forms are held against another parser below."""
    assert read(header) == expected
    assert not parse_links([header]).garbled


def test_several_header_lines_are_one_list() -> None:
    """RFC 9110, 5.3: lines of one name are one list. A mistake in one line does not reach into the next one."""
    assert read("<a>; rel=first", '<b>; rel="next', "<c>; rel=last") == [("a", ["first"]), ("b", []), ("c", ["last"])]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("oops, <a>; rel=next", [("a", ["next"])]),
        ('"<x>; rel=next, <y>", <a>; rel=next', [("a", ["next"])]),
        ("<x; rel=next, <a>; rel=last", [("a", ["last"])]),
        ('<x>; rel="next', [("x", [])]),
        ('<x>; title="t" junk; rel=next, <a>; rel=last', [("x", []), ("a", ["last"])]),
        ('<x>; title=t"u, <y>; rel=next"; rel=last, <a>; rel=prev', [("x", []), ("a", ["prev"])]),
        ("next", []),
    ],
)
def test_what_is_no_link_is_left_out_and_reported(header: str, expected: list[tuple[str, list[str]]]) -> None:
    """I4: whoever reads the header learns that it may have lost a link."""
    assert read(header) == expected
    assert parse_links([header]).garbled


_TOKEN = st.text(st.sampled_from("relnxtaRELNXT-*"), min_size=1, max_size=6)
_BLANK = st.text(st.sampled_from(" \t"), max_size=2)
_QUOTED = st.lists(
    st.sampled_from(["a", " ", "<", ">", ";", ",", "=", "rel=next", "<b>;rel=next", r"\"", r"\\", r"\a"]), max_size=8
).map(lambda parts: f'"{"".join(parts)}"')
_NAME = st.sampled_from(["title", "Rel", "rel", "anchor", "rev", "media", "x"])


@st.composite
def _links(draw: st.DrawFn) -> str:
    """A header as the grammar of RFC 8288, 3 makes it. httplink wants a value for each parameter, and a `rel` in each link."""
    values = []
    for _ in range(draw(st.integers(1, 4))):
        target = draw(st.text(st.sampled_from("ab,;=?&\"'#/ "), max_size=8)).strip()
        named = draw(st.lists(st.tuples(_NAME, st.one_of(_TOKEN, _QUOTED)), max_size=4))
        named.insert(draw(st.integers(0, len(named))), ("rel", draw(st.one_of(_TOKEN, _QUOTED))))
        blanks = (draw(_BLANK), draw(_BLANK), draw(_BLANK))
        parameters = (f"{blanks[0]};{blanks[1]}{name}{blanks[2]}={blanks[0]}{value}" for name, value in named)
        values.append(f"<{target}>{''.join(parameters)}")
    return draw(st.sampled_from([",", ", ", " , ,"])).join(values)


@pytest.mark.long
@given(_links())
def test_another_library_reads_the_same(header: str) -> None:
    """RFC 8288: targets and parameters as httplink has them, which implements the grammar and nothing else."""
    expected = [
        (link.target, [(name.lower(), value) for name, value in link.attributes])
        for link in httplink.parse_link_header(header).links
    ]
    parsed_header = parse_links([header])
    assert [(link.target, list(link.parameters)) for link in parsed_header.links] == expected
    assert not parsed_header.garbled


@pytest.mark.parametrize(
    "piece",
    [
        '"',
        "<",
        "<a>;",
        '<a>;x="',
        r"\"",
        '"\\',
        ",",
        " ",
        ";",
        "<a> ",
        '<a>;x=" ',
        'x"\\',
        '<a>;x=y"',
        '<a>;x="\\',
        "<a>; rel=next, ",
    ],
)
def test_a_hostile_header_takes_time_in_proportion_to_its_length(piece: str) -> None:
    """I13: four times the length takes about four times as long. A quadratic parser would need minutes for a megabyte."""

    def seconds(length: int) -> float:
        header = piece * (length // len(piece))
        best = float("inf")
        for _ in range(3):
            started = time.process_time()
            parse_links([header])
            best = min(best, time.process_time() - started)
        return best

    seconds(1_000)
    assert seconds(400_000) <= 12 * seconds(100_000) + 0.05

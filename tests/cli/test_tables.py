"""Tables on terminals of several widths and in a pipe: nothing is cropped, and what is an id or a number is in one piece."""

from __future__ import annotations

import pytest

from tests.cli.conftest import LARGE, BackedUp
from tests.cli.terminal import printed

WIDTHS = (60, 120)


@pytest.mark.long
@pytest.mark.parametrize("columns", WIDTHS)
def test_a_list_of_snapshots_is_whole(library: BackedUp, columns: int) -> None:
    """At 80 columns a line would have to crop its numbers; its values are below each other then."""
    (snapshot,) = library.run("snapshots", "list", "--json").document["snapshots"]
    printed_lines = printed("snapshots", "list", folder=library.folder, columns=columns)
    lines = [line for line in printed_lines if not line.startswith("Not read")]
    assert max(map(len, lines)) <= columns
    words = {word for line in lines for word in line.split()}
    assert words >= {f"library/{snapshot['snapshot']}", f"{LARGE:,}", f"{snapshot['requests']:,}", "complete", "never"}
    assert ("row 1" in lines) == (columns < 120)


@pytest.mark.long
@pytest.mark.parametrize("columns", WIDTHS)
def test_what_a_query_finds_can_be_copied(library: BackedUp, columns: int) -> None:
    """A DOI is never broken over two lines, also where it is longer than the terminal is wide: the terminal itself breaks it then."""
    doi = f"10.1000/{'x' * 30}"
    long = f"10.1000/{'y' * 150}"
    sql = f"SELECT '{doi}' AS doi, repeat('word ', 60) AS title, 1234567 AS number"
    lines = printed("query", sql, folder=library.folder, columns=columns)
    assert any(doi in line.split() for line in lines)
    assert max(map(len, lines)) <= columns
    lines = printed("query", f"SELECT '{long}' AS doi, 'a title' AS title", folder=library.folder, columns=columns)
    assert f"doi    {long}" in lines

"""Texts of a library on a terminal: whatever a title has, the terminal shows it and does nothing else."""

from __future__ import annotations

import io
import json
import sys

import pytest
from rich.table import Table
from rich.text import Text

from cli.output import ReadableTable, plain_console, warning, write_json
from cli.query_results import write_rows_as_json

HOSTILE = "\x1b[2J\x1b]0;x\x07 \x9b31m \u202egnp.exe \u2066 \u2028 [red]x[/red]"


@pytest.mark.parametrize("way", ["line", "text", "table", "warning"])
def test_control_characters_are_shown(way: str) -> None:
    """ESC, OSC, C1, direction marks and separators of lines become visible escapes; markup is not interpreted."""
    stream = io.StringIO()
    console = plain_console(stream, width=200)
    if way == "line":
        console.print(HOSTILE)
    elif way == "text":
        console.print(Text(HOSTILE))
    elif way == "warning":
        console.print(warning(HOSTILE))
    else:
        console.print(ReadableTable(["title"], [[HOSTILE]]))
        table = Table("title")
        table.add_row(Text(HOSTILE))
        console.print(table)
    printed = stream.getvalue()
    assert not [char for char in printed if not char.isprintable() and char != "\n"]
    assert "\\x1b[2J" in printed
    assert "\\u202egnp.exe" in printed
    assert "[red]x[/red]" in printed


def hidden(printed: str) -> list[str]:
    return [char for char in printed if not char.isprintable() and char not in "\r\n"]


def test_json_escapes_them_and_means_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers get every character as it is; a terminal gets none that it obeys."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    write_json({"title": HOSTILE + "\U000e0041"})
    assert json.loads(stream.getvalue()) == {"title": HOSTILE + "\U000e0041"}
    assert not hidden(stream.getvalue())
    stream.truncate(0), stream.seek(0)
    write_rows_as_json(["title"], iter([[(HOSTILE,)]]), not_read={})
    assert json.loads(stream.getvalue())["rows"] == [{"title": HOSTILE}]
    assert not hidden(stream.getvalue())

"""Texts of a library on a terminal: whatever a title has, the terminal shows it and does nothing else."""

from __future__ import annotations

import io

import pytest
from rich.table import Table
from rich.text import Text

from cli.output import plain_console, print_table, print_warning

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
        print_warning(console, HOSTILE)
    else:
        print_table(console, ["title"], [[HOSTILE]])
        table = Table("title")
        table.add_row(Text(HOSTILE))
        console.print(table)
    printed = stream.getvalue()
    assert not [char for char in printed if not char.isprintable() and char != "\n"]
    assert "\\x1b[2J" in printed
    assert "\\u202egnp.exe" in printed
    assert "[red]x[/red]" in printed

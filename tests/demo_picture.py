"""Draws docs/images/demo.svg: what `bookferry demo` prints in a terminal. Run it with `.venv/bin/python -m tests.demo_picture`.

The picture holds lines of a real run, in their order. `…` marks lines that are left out.
"""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "demo.svg"
COLUMNS = 112

KEPT = (
    r"\$ bookferry (backup|query --example collection_by_decade|migrate (plan|apply|verify))",
    r"How has the collection grown",
    r"tenant ┃ published",
    r"━━━━━━━╇",
    r"demo +│ (1990s|2000s|2010s|2020s|no date)",
    r"\d+ files stored",
    r"Complete: ",
    r"[\d,]+ publications will be created",
    r"[\d,]+ files will be uploaded",
    r"[\d,]+ requests, ",
    r"Complete as planned: ",
    r"Equal as planned: ",
    r"Plan .* is empty",
)
"""Beginnings of the lines that the picture shows; of several tables, the first."""


WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Rich names fonts on the web; the picture does without, and uses the reader's own monospaced font."""


def main() -> None:
    """Run the demonstration in a terminal of its own, and draw what it printed on standard output."""
    lines = _shortened(_printed())
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "green"), ("bookferry demo", "bold")))
    for line in lines:
        console.print(Text.from_ansi(line))
    svg = console.export_svg(title="bookferry demo", unique_id="demo")
    PICTURE.write_text(WEB_FONT.sub("", svg), encoding="utf-8")


def _printed() -> list[str]:
    screen, terminal = pty.openpty()
    os.set_blocking(screen, True)
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            ["bookferry", "demo"],
            cwd=folder,
            stdout=terminal,
            stderr=subprocess.DEVNULL,
            env={
                **os.environ,
                "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
                "COLUMNS": str(COLUMNS),
                "TERM": "xterm-256color",
            },
        )
        os.close(terminal)
        printed = b""
        try:
            while part := os.read(screen, 65_536):
                printed += part
        except OSError:  # how Linux says that the other end was closed
            pass
        if process.wait():
            raise SystemExit(f"bookferry demo failed with exit status {process.returncode}")
    return printed.decode().replace("\r\n", "\n").split("\n")


def _shortened(lines: list[str]) -> list[str]:
    """The lines that the picture keeps, with `…` in the place of those between them."""
    shown: list[str] = []
    tables, left_out = 0, False
    for line in lines:
        plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
        tables += plain.startswith("tenant ┃")
        if not re.match("|".join(KEPT), plain) or (tables > 1 and re.search("[┃╇│]", plain)):
            left_out = left_out or bool(plain.strip())
            continue
        if left_out and shown:
            shown.append("\x1b[2m…\x1b[0m")
        shown.append(line)
        left_out = False
    return shown


if __name__ == "__main__":
    main()

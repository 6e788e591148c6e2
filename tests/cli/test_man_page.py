"""docs/bookferry.1, the manual page, is made from the help, and man(1) reads it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cli.man_page import man_page
from tests.cli.command import ROOT
from tests.cli.test_usage import COMMANDS

PAGE = ROOT / "docs" / "bookferry.1"


def test_the_page_is_made_from_the_help() -> None:
    """Else: make docs."""
    assert PAGE.read_text(encoding="utf-8") == man_page()


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed here")
def test_man_reads_the_page_and_it_has_every_command(tmp_path: Path) -> None:
    """Without a warning of the typesetter; each command with its options."""
    done = subprocess.run(
        ["man", "--warnings", "-E", "UTF-8", "-l", PAGE],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert [one for one in COMMANDS if not any(line.startswith(f"{one} [OPTIONS]") for line in lines)] == []
    assert {"--base-url ADDRESS", "--no-files", "snapshots show [OPTIONS] SNAPSHOT"} <= set(lines)

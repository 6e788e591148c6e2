"""The documentation as a site: it is built without a warning, and every link works on it as it does on GitHub."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ROOT


def build(config: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """What `make site` does, into a folder."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", config, "--site-dir", folder]
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site."""
    folder = tmp_path_factory.mktemp("site")
    process = build(ROOT / "mkdocs.yml", folder)
    assert (process.returncode, "WARNING" in process.stderr) == (0, False), process.stderr
    return folder


@pytest.mark.long
def test_it_has_every_page_and_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in (ROOT / "docs").glob("*.md"):
        built = site / ("" if page.stem == "README" else page.stem) / "index.html"
        text = built.read_text(encoding="utf-8")
        assert re.findall(r'src="(https?://[^"]+)|rel="stylesheet" href="(https?://[^"]+)', text) == [], page.name


def test_it_has_a_page_of_all_commands(site: Path) -> None:
    text = (site / "commands" / "index.html").read_text(encoding="utf-8")
    assert all(f"<code>bookferry {command}</code>" in text for command in ("init", "snapshots prune", "migrate undo"))

"""Hooks of MkDocs: the site has a page of all commands, and links from docs/ to other files of the repository lead to them on GitHub."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]


def on_files(files: Any, config: Any) -> Any:
    """Returns the files of the site with the page of commands, which Typer makes from their help."""
    command = [sys.executable, "-m", "typer", "cli.app", "utils", "docs", "--name", "bookferry", "--title", "Commands"]
    page = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout
    files.append(File.generated(config, "commands.md", content=page))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_options: Any) -> str:
    """Returns the page with absolute links where relative ones leave docs/. A file that is not there raises FileNotFoundError."""
    folder = ROOT / "docs" / Path(page.file.src_uri).parent

    def absolute(link: re.Match[str]) -> str:
        path = (folder / link[1]).resolve(strict=True)
        kind = "tree" if path.is_dir() else "blob"
        return f"]({config.repo_url}/{kind}/main/{path.relative_to(ROOT).as_posix()}"

    return re.sub(r"\]\((\.\./[^)#]+)", absolute, markdown)

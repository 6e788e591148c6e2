"""What the documents for readers link to and name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.command import ROOT

DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def prose(page: Path) -> str:
    """The text of a page without its blocks of code, in which `#` begins no heading and brackets make no link."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What a link may name after `#`: each heading in the form of GitHub; a heading that comes again gets a number."""
    ids: set[str] = set()
    for heading in re.findall(r"^#+ +(.*?) *#*$", prose(page), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-")
        number = 0
        while (anchor := f"{name}-{number}" if number else name) in ids:
            number += 1
        ids.add(anchor)
    ids.update(re.findall(r'<a (?:id|name)="([^"]+)"', prose(page)))
    return ids


def links(page: Path) -> list[str]:
    """The addresses of a page's links and pictures that lead to files of the repository."""
    addresses = re.findall(r"\]\(([^()\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(page)))
    return [address for address in addresses if not re.match(r"[a-z]+:", address)]


@every_page
def test_relative_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for address in links(page):
        path, _, anchor = address.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(address)
    assert broken == []

"""What the documents for readers link to and name exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.settings.loading import load_settings
from pipelines.settings.tenant import TenantSettings
from tests.cli.command import ROOT
from tests.test_architecture import MODULES, part_of

DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md"))]
DECISIONS = (DOCS / "decisions.md").read_text(encoding="utf-8")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def prose(page: Path) -> str:
    """The text of a page without its blocks of code, in which `#` begins no heading and brackets make no link."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What a link may name after `#`: each heading in the form of GitHub; a heading that comes again gets a number."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.*?) *#*$", prose(page), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-")
        again = 0
        while (anchor := f"{name}-{again}" if again else name) in found:
            again += 1
        found.add(anchor)
    found.update(re.findall(r'<a (?:id|name)="([^"]+)"', prose(page)))
    return found


def links(page: Path) -> list[str]:
    """The addresses of a page's links and pictures that lead to files of the repository."""
    found = re.findall(r"\]\(([^()\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(page)))
    return [address for address in found if not re.match(r"[a-z]+:", address)]


@every_page
def test_relative_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for address in links(page):
        path, _, anchor = address.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(address)
    assert broken == []


def test_the_picture_shows_what_the_readme_says() -> None:
    """docs/images/demo.svg is a run of the demonstration (`python -m tests.demo_picture`), and its numbers are those of the README."""
    picture = re.sub(r"&#160;", " ", re.sub(r"<[^>]+>", "", (DOCS / "images" / "demo.svg").read_text(encoding="utf-8")))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for number in ("5,445 publications", "109 requests", "409 files", "15.8 MB, 105 of them covers", "6,159 requests"):
        assert number in picture, number
        assert number in readme, number


def test_the_page_on_signing_in_names_keys_that_exist(tmp_path: Path) -> None:
    text = (DOCS / "signing-in.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "bookferry.toml").write_text("\n".join(blocks))
    assert set(load_settings(tmp_path / "bookferry.toml").tenants) == {"old", "new"}
    keys = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    assert {"client_id", "client_secret_env", "client_auth", "redirect_uri"} == keys
    assert keys <= set(TenantSettings.model_fields)


def test_the_index_has_every_page_and_notebook() -> None:
    listed = set(links(DOCS / "README.md"))
    pages = {path.name for path in DOCS.iterdir() if path.suffix in {".md", ".ipynb"}} - {"README.md"}
    assert pages - {address.partition("#")[0] for address in listed} == set()


@pytest.mark.parametrize(
    "page", [DOCS / "architecture.md", ROOT / "CONTRIBUTING.md", DOCS / "decisions.md"], ids=lambda page: page.name
)
def test_files_that_a_page_names_exist(page: Path) -> None:
    """Whatever stands between back-ticks and looks like a path below a top folder."""
    tops = "assets_defs|benchmarks|cli|docs|pipelines|resources|sandbox|sql|tests"
    named = set(re.findall(rf"`((?:{tops})/[\w./*-]*)`", prose(page)))
    assert named
    assert sorted(name for name in named if not any(ROOT.glob(name.rstrip("/")))) == []


def test_the_picture_of_the_architecture_has_every_room() -> None:
    """Every room and module right inside `pipelines`, and inside its packages that have rooms of their own, stands in the drawing."""
    drawing = "".join(
        re.findall(
            r"^```text\n(.*?)^```", (DOCS / "architecture.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
    )
    drawn = ("pipelines", "pipelines.service", "pipelines.store", "pipelines.migration")
    rooms = {part for package in drawn for name in MODULES if (part := part_of(package, name))}
    assert rooms - set(re.findall(r"\w+", drawing)) == set()


def decisions() -> Iterator[tuple[str, str]]:
    """Heading and text of each entry."""
    _head, *entries = re.split(r"^## ", DECISIONS, flags=re.MULTILINE)
    for entry in entries:
        title, _, text = entry.partition("\n")
        if title != "Index":
            yield title, text


def test_decisions_are_dated_and_newest_first() -> None:
    dates = [found[1] if (found := re.match(r"(\d{4}-\d\d-\d\d) · \S", text)) else title for title, text in decisions()]
    assert dates == sorted(dates, reverse=True)


def test_every_decision_is_in_the_index_once() -> None:
    index = DECISIONS.partition("\n## Index\n")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^- \[(.*)\]\(#", index, re.MULTILINE)) == sorted(title for title, _ in decisions())

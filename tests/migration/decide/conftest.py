"""A page in a headless browser that saves what is downloaded. Skipped where no Chromium is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

from tests.interop.browser import SECONDS, browser, chromium, running_browser

__all__ = ["browser", "running_browser"]  # fixtures


class Librarian:
    """A person at the page of a plan. `clicks`: what she clicked, chosen options included."""

    def __init__(self, browser: webdriver.Chrome, downloads: Path) -> None:
        self.browser = browser
        self.downloads = downloads
        self.clicks = 0

    def open(self, page: Path) -> None:
        """Open a page from the disk."""
        self.browser.get(page.as_uri())

    def find(self, css: str) -> WebElement:
        """The first element of a selector."""
        return self.browser.find_element(By.CSS_SELECTOR, css)

    def all(self, css: str) -> list[WebElement]:
        """All elements of a selector."""
        return self.browser.find_elements(By.CSS_SELECTOR, css)

    def click(self, element: WebElement | str) -> None:
        """Click it."""
        self.clicks += 1
        node = self.find(element) if isinstance(element, str) else element
        self.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", node)
        node.click()

    def choose(self, css: str, text: str) -> None:
        """Choose an option: two clicks."""
        self.clicks += 2
        Select(self.find(css)).select_by_visible_text(text)

    def show(self, words: str) -> None:
        """Show a kind of conflict of the overview."""
        [button] = [
            button for button in self.all(".kinds button") if words in (button.get_dom_attribute("aria-label") or "")
        ]
        self.click(button)

    def keys(self, *keys: str) -> None:
        """Press keys, one after the other, wherever the focus is."""
        for key in keys:
            ActionChains(self.browser).send_keys(key).perform()

    def save(self) -> Path:
        """Save conflicts.tsv; returns the file, which the next download replaces."""
        path = self.downloads / "conflicts.tsv"
        path.unlink(missing_ok=True)
        self.click("#save")
        self.wait_until(path.is_file)
        return path

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Wait for something that the browser does by and by."""
        WebDriverWait(self.browser, SECONDS).until(lambda _: is_so())

    def load(self, path: Path) -> str:
        """Choose a file to go on with; returns what the page says."""
        before = self.said
        self.find("#load").send_keys(str(path))
        self.wait_until(lambda: self.said != before)
        return self.said

    @property
    def said(self) -> str:
        """What the page said last, as a screen reader hears it."""
        return self.find(".said").text

    @property
    def left(self) -> str:
        """How many conflicts are decided."""
        return self.find("#left").text

    @property
    def shown(self) -> str:
        """How many conflicts are shown."""
        return self.find("#shown").text


@pytest.fixture
def new_librarian(tmp_path: Path) -> Iterator[Callable[[], Librarian]]:
    """Makes librarians at one browser profile; each call ends the browser of the one before."""
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    running: list[webdriver.Chrome] = []

    def make() -> Librarian:
        while running:
            running.pop().quit()
        running.append(chromium(tmp_path / "profile", downloads))
        return Librarian(running[-1], downloads)

    yield make
    while running:
        running.pop().quit()


@pytest.fixture
def librarian(browser: webdriver.Chrome, tmp_path: Path) -> Librarian:
    """A person at the browser."""
    browser.implicitly_wait(0)
    return Librarian(browser, tmp_path)

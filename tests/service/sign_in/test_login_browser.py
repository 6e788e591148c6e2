"""The whole of `bookferry login` in headless Chromium against the sandbox's consent page. Skipped where no browser is installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.cli.command import BOOKFERRY, environment
from tests.interop.browser import BROWSER, DRIVER, browser
from tests.service.sign_in.home import SECONDS, Home

__all__ = ["browser"]  # a fixture
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="no Chromium with its driver is installed"),
]


@pytest.fixture
def waiting(home: Home, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """`bookferry login new --json`, whose $BROWSER writes the address to the named file."""
    address, script = tmp_path / "address", tmp_path / "address.py"
    script.write_text(
        f"#!{sys.executable}\nimport os, sys\nfrom pathlib import Path\n"
        f"part = Path({str(address) + '.part'!r})\npart.write_text(sys.argv[1])\npart.rename({str(address)!r})\n"
    )
    script.chmod(0o700)
    process = subprocess.Popen(
        [*BOOKFERRY, "login", "new", "--json"],
        cwd=home.folder,
        env=environment(BROWSER=f"{script} %s"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process, address
    process.kill()
    process.communicate(timeout=SECONDS)


def go(browser: webdriver.Chrome, address: Path) -> None:
    """Open the address of the command."""
    WebDriverWait(browser, SECONDS).until(lambda _: address.exists())
    browser.get(address.read_text())


def press(browser: webdriver.Chrome, name: str) -> None:
    """Use a button of the consent page."""
    browser.find_element(By.XPATH, f"//button[normalize-space()='{name}']").click()


def test_the_whole_way(home: Home, browser: webdriver.Chrome, waiting: tuple[subprocess.Popen[str], Path]) -> None:
    """The consent page names Bookferry; after consent the browser shows that its answer has arrived; and the sign-in works."""
    process, address = waiting
    assert home.sandbox is not None
    go(browser, address)
    assert "Bookferry" in browser.find_element(By.TAG_NAME, "h1").text
    browser.find_element(By.NAME, "email").send_keys(home.sandbox.user)
    browser.find_element(By.NAME, "password").send_keys(home.sandbox.password)
    browser.find_element(By.XPATH, "//input[@name='scope' and @value='users:write']").click()
    press(browser, "Allow")
    WebDriverWait(browser, SECONDS).until(lambda driver: driver.title == "Received · Bookferry")
    assert "You can close this window" in browser.find_element(By.TAG_NAME, "p").text
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    assert '"signed_in": true' in out
    assert "users:write" not in home.grant.scopes
    assert home.read().headers["x-total"] == "120"
    # the answer came by the browser, which keeps no copy that is good for anything
    assert browser.execute_script("return document.scripts.length") == 0

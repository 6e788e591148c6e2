"""A headless Chromium; the tests that need it are skipped where none is installed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--window-size=900,1200")
SECONDS = 90
"""How long to wait for a page."""


def chromium(profile: Path, downloads: Path) -> webdriver.Chrome:
    """A browser with this profile, which saves into a folder what is downloaded. The test is skipped where none is installed."""
    if not (BROWSER and DRIVER):
        pytest.skip("no Chromium with its driver is installed")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.set_capability("unhandledPromptBehavior", "accept")
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_page_load_timeout(SECONDS)
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
    return driver


@pytest.fixture(scope="module")
def running_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    folder = tmp_path_factory.mktemp("browser")
    driver = chromium(folder, folder)
    yield driver
    driver.quit()


@pytest.fixture
def browser(running_browser: webdriver.Chrome, tmp_path: Path) -> Iterator[webdriver.Chrome]:
    """A window of a browser, which takes a second to start. It has nothing that pages of earlier tests kept."""
    driver, first = running_browser, running_browser.current_window_handle
    driver.switch_to.new_window("window")
    driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": "file://", "storageTypes": "all"})
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    driver.implicitly_wait(SECONDS)  # a click returns before the next page is loaded
    for log in ("browser", "performance"):
        driver.get_log(log)
    yield driver
    driver.close()
    driver.switch_to.window(first)


def requested(browser: webdriver.Chrome) -> set[str]:
    """The addresses that the browser asked for, apart from its own and from files in its memory. No page may complain."""
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    addresses = {
        message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"
    }
    return {address for address in addresses if not address.startswith(("chrome", "data:", "blob:"))}


def violations(browser: webdriver.Chrome) -> list[dict[str, Any]]:
    """What axe-core finds: rule, and the first elements that break it."""
    findings = Axe().run(browser)["violations"]
    return [
        {
            "rule": finding["id"],
            "help": finding["help"],
            "elements": [node["html"][:200] for node in finding["nodes"][:5]],
        }
        for finding in findings
    ]

"""The page in a real browser: headless Chromium opens it as a file. Skipped where none is installed."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from selenium import webdriver

from pipelines.report.pages import Report
from tests.interop.browser import browser, requested, running_browser, violations

pytestmark = pytest.mark.long
__all__ = ["browser", "running_browser"]  # fixtures


PARTS = "return [...document.querySelectorAll('.bar i')].map(part => part.getBoundingClientRect().width)"
"""How wide the parts of bars are."""


@pytest.mark.parametrize("name", ["real", "hostile"])
def test_it_opens_without_errors_network_or_scripts_and_axe_core_finds_nothing(
    browser: webdriver.Chrome, name: str, request: pytest.FixtureRequest
) -> None:
    """On a telephone nothing is wider than the screen; on paper it is light; nothing is asked for but the file."""
    report: Report = request.getfixturevalue(name)
    address = Path(report.paths.html).as_uri()
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(address)
    assert browser.title.startswith("old: report of 20 November 2026")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 400
    assert browser.execute_script("return document.scripts.length + document.images.length") == 0
    assert len([size for size in browser.execute_script(PARTS) if size >= 2]) > 5
    assert (browser.execute_script("return document.querySelector('.alarm')") is None) == report.complete
    assert violations(browser) == []
    background = "return getComputedStyle(document.body).backgroundColor"
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    assert browser.execute_script(background) != "rgb(255, 255, 255)"
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert violations(browser) == []
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {**dark, "media": "print"})
    assert browser.execute_script(background) == "rgb(255, 255, 255)"
    printed = browser.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert base64.b64decode(printed).startswith(b"%PDF")
    assert requested(browser) == {address}

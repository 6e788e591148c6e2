"""axe-core finds nothing in the page of a plan. Skipped without Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from pipelines.migration.model.plan import HTML
from tests.interop.browser import browser, running_browser, violations
from tests.migration.decide.plans import page_of, usual

__all__ = ["browser", "running_browser"]  # fixtures

pytestmark = pytest.mark.long


@pytest.fixture(params=[(1280, "light"), (1280, "dark"), (390, "light")], ids=lambda param: f"{param[0]}-{param[1]}")
def screen(request: pytest.FixtureRequest, browser: webdriver.Chrome) -> webdriver.Chrome:
    """The browser with a screen, and with a telephone's; light and dark."""
    width, scheme = request.param
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    return browser


def test_the_page_of_a_plan(screen: webdriver.Chrome, tmp_path: Path) -> None:
    """Before anything is decided, and with decisions, open explanations, steps and a message."""
    screen.get(page_of(tmp_path / "plan", usual(), mails=1, notes=["A note."]).path(HTML).as_uri())
    assert violations(screen) == []
    screen.execute_script("document.querySelectorAll('details').forEach(details => { details.open = true; })")
    screen.execute_script("document.querySelector('#bulk button[data-word=target]').click()")
    screen.execute_script("document.getElementById('filter-state').value = 'all'")
    screen.execute_script("document.getElementById('filter-state').dispatchEvent(new Event('change'))")
    for number in (6, 7):
        card = f"//li[h4/span[normalize-space()='publication {number}']]"
        button = screen.find_element(By.XPATH, f"{card}//button[@data-word='match']")
        screen.execute_script("arguments[0].click()", button)
    assert screen.find_elements(By.CSS_SELECTOR, "#steps li, .problem")
    assert violations(screen) == []

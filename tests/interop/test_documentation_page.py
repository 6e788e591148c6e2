"""The documentation page in headless Chromium, which tries operations. Skipped where no Chromium is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.interop.test_consent_page import BROWSER, DRIVER, SECONDS, browser
from tests.sandbox.process import SandboxProcess

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="no Chromium with its driver is installed"),
]
__all__ = ["browser"]  # the fixture


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxProcess]:
    with SandboxProcess("--tenant", "library=real:30", "--requests-per-minute", "0") as running:
        yield running


def operation(browser: webdriver.Chrome, method: str, path: str) -> WebElement:
    """Opens the entry of an operation."""
    for details in browser.find_elements(By.TAG_NAME, "details"):
        summary = details.find_element(By.TAG_NAME, "summary")
        if summary.text.split()[:2] == [method, path]:
            summary.click()
            return details
    raise AssertionError(f"there is no {method} {path}")


def send(browser: webdriver.Chrome, details: WebElement) -> tuple[str, str]:
    """Tries an operation and returns status and body."""
    details.find_element(By.CSS_SELECTOR, "button.send").click()
    WebDriverWait(browser, SECONDS).until(lambda _: details.find_elements(By.TAG_NAME, "pre"))
    return details.find_element(By.CLASS_NAME, "status").text, details.find_element(By.TAG_NAME, "pre").text


def test_an_operation_of_version_3_is_tried(browser: webdriver.Chrome, sandbox: SandboxProcess) -> None:
    token = sandbox.control("POST", "tokens", {"tenant": "library"})["access_token"]
    browser.get(f"{sandbox.base_url()}/api")
    details = operation(browser, "GET", "/publications")
    assert send(browser, details)[0].startswith("401")
    browser.find_element(By.CSS_SELECTOR, ".sign-in input").send_keys(token)
    details.find_element(By.NAME, "per_page").send_keys("2")
    WebDriverWait(browser, SECONDS).until(lambda _: send(browser, details)[0].startswith("200"))
    body = details.find_element(By.TAG_NAME, "pre").text
    assert [record["id"] for record in json.loads(body)["records"]] == [1, 2]

"""The consent page in headless Chromium: sign in, untick, allow, refuse. Skipped where no Chromium is installed."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.sandbox.process import SandboxProcess
from tests.spec.oauth_client import challenge_of

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="no Chromium with its driver is installed"),
]

VERIFIER = "v" * 50
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--window-size=900,1200")
SECONDS = 90
"""How long to wait for a page."""


class Callback:
    """The program at the redirect address. It collects the parameters that the browser brings."""

    def __init__(self) -> None:
        brought: list[dict[str, str]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                if parts.path == "/callback":
                    brought.append({name: values[0] for name, values in parse_qs(parts.query).items()})
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"<title>Done</title>You can close this window.")

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.brought = brought
        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/callback"


@pytest.fixture
def callback() -> Iterator[Callback]:
    waiting = Callback()
    thread = threading.Thread(target=waiting.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield waiting
    waiting.server.shutdown()
    thread.join()
    waiting.server.server_close()


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxProcess]:
    options = ("--tenant", "library=real:30", "--requests-per-minute", "0", "--oauth", "registrations_per_day=1000")
    with SandboxProcess(*options) as running:
        yield running


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for flag in (*FLAGS, f"--user-data-dir={tmp_path}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_page_load_timeout(SECONDS)
    driver.implicitly_wait(SECONDS)  # a click returns before the next page is loaded
    yield driver
    driver.quit()


class Visitor:
    """A person at the browser whom a newly registered program sent to the page."""

    def __init__(self, browser: webdriver.Chrome, sandbox: SandboxProcess, callback: Callback, **metadata: Any) -> None:
        self.browser, self.sandbox, self.callback = browser, sandbox, callback
        self.base_url = sandbox.base_url()
        body = {
            "client_name": "Bookferry",
            "redirect_uris": [callback.address],
            "token_endpoint_auth_method": "none",
            "scope": "library:read library:write users:read",
            **metadata,
        }
        self.client = httpx.post(f"{self.base_url}/oauth/clients", json=body).raise_for_status().json()

    def arrive(self, **changes: str) -> None:
        """Opens the page."""
        query = {
            "response_type": "code",
            "client_id": self.client["client_id"],
            "redirect_uri": self.callback.address,
            "state": "s & t",
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "resource": f"{self.base_url}/api/v3",
            **changes,
        }
        self.browser.get(f"{self.base_url}/oauth/authorize?{urlencode(query)}")

    def field(self, label: str) -> WebElement:
        """Returns the field of a label."""
        element = self.browser.find_element(By.XPATH, f"//label[contains(normalize-space(), '{label}')]")
        return self.browser.find_element(By.ID, element.get_dom_attribute("for") or "")

    def press(self, name: str) -> None:
        """Presses a button."""
        self.browser.find_element(By.XPATH, f"//button[normalize-space()='{name}']").click()

    def sign_in(self, password: str | None = None) -> None:
        """Fills in the account, with the right password unless another is given."""
        self.field("E-mail address").clear()
        self.field("E-mail address").send_keys(self.sandbox.user)
        self.field("Password").send_keys(password or self.sandbox.password)

    def answer(self) -> dict[str, str]:
        """Returns the parameters that the program received."""
        WebDriverWait(self.browser, SECONDS).until(lambda _: self.callback.brought)
        return self.callback.brought.pop()

    def tokens(self) -> dict[str, Any]:
        """Exchanges the code for tokens."""
        form = {
            "grant_type": "authorization_code",
            "code": self.answer()["code"],
            "redirect_uri": self.callback.address,
            "client_id": self.client["client_id"],
            "code_verifier": VERIFIER,
        }
        tokens: dict[str, Any] = httpx.post(f"{self.base_url}/oauth/token", data=form).raise_for_status().json()
        return tokens


@pytest.fixture
def visitor(browser: webdriver.Chrome, sandbox: SandboxProcess, callback: Callback) -> Visitor:
    return Visitor(browser, sandbox, callback)


def test_sign_in_untick_and_allow(visitor: Visitor) -> None:
    """Sign in, untick one scope, allow: the token has the other scopes and works."""
    visitor.arrive()
    assert visitor.browser.title == "Allow access · library"
    assert visitor.browser.switch_to.active_element == visitor.field("E-mail address")
    visitor.sign_in()
    visitor.field("library:write").click()
    visitor.press("Allow")
    tokens = visitor.tokens()
    assert tokens["scope"] == "library:read users:read"
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    assert httpx.get(f"{visitor.base_url}/api/v3/publications", headers=headers).headers["X-Total"] == "30"


def test_a_hostile_name_runs_nothing(browser: webdriver.Chrome, sandbox: SandboxProcess, callback: Callback) -> None:
    """Markup in a client name runs nothing and loads nothing."""
    name = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
    visitor = Visitor(browser, sandbox, callback, client_name=name)
    browser.get_log("browser")
    visitor.arrive()
    assert browser.title == "Allow access · library"
    assert name in browser.find_element(By.TAG_NAME, "h1").text
    assert browser.execute_script("return document.scripts.length") == 0
    assert browser.get_log("browser") == []

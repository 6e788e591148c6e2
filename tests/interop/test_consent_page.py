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
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.sandbox.process import SandboxProcess
from tests.spec.oauth_client import challenge_of

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (BROWSER and DRIVER), reason="no Chromium with its driver is installed")

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


def test_a_label_is_part_of_its_box_and_enter_allows(visitor: Visitor) -> None:
    """The page works without a mouse: Enter in the password field presses the first button, which allows."""
    visitor.arrive()
    visitor.browser.find_element(By.XPATH, "//label[contains(., 'Read people')]").click()
    assert not visitor.field("Read people").is_selected()
    visitor.sign_in()
    visitor.field("Password").send_keys(Keys.ENTER)
    assert visitor.tokens()["scope"] == "library:read library:write"


def test_refusing_needs_no_account(visitor: Visitor) -> None:
    visitor.arrive()
    visitor.press("Refuse")
    answer = visitor.answer()
    assert (answer["error"], answer["state"]) == ("access_denied", "s & t")


def test_a_wrong_password_can_be_corrected(visitor: Visitor) -> None:
    visitor.arrive()
    visitor.sign_in("wrong")
    visitor.field("users:read").click()
    visitor.press("Allow")
    alert = visitor.browser.find_element(By.CSS_SELECTOR, "[role=alert]")
    assert alert.is_displayed()
    assert visitor.field("E-mail address").get_property("value") == visitor.sandbox.user
    assert visitor.field("Password").get_property("value") == ""
    assert not visitor.field("users:read").is_selected()
    visitor.sign_in()
    visitor.press("Allow")
    assert visitor.tokens()["scope"] == "library:read library:write"


def test_the_browser_remembers_and_forgets_the_person(visitor: Visitor) -> None:
    visitor.arrive()
    visitor.sign_in()
    visitor.press("Allow")
    visitor.answer()
    visitor.arrive()
    assert "Signed in as" in visitor.browser.page_source
    visitor.press("Allow")
    assert visitor.tokens()
    visitor.arrive()
    visitor.press("Use another account")
    assert visitor.field("Password").is_displayed()
    visitor.sign_in()
    visitor.press("Allow")
    assert visitor.tokens()


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


def test_the_page_fetches_nothing_else(visitor: Visitor) -> None:
    """The page needs one request; its style sheet applies in spite of the strict policy."""
    before = len(visitor.sandbox.requests())
    visitor.arrive()
    assert [seen["path"] for seen in visitor.sandbox.requests()[before:]] == ["/oauth/authorize"]
    assert visitor.browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    main = visitor.browser.find_element(By.TAG_NAME, "main")
    assert main.value_of_css_property("border-top-width") == "4px"


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (320, "dark"), (900, "dark")])
def test_the_page_is_readable_on_narrow_screens_and_in_the_dark(visitor: Visitor, width: int, scheme: str) -> None:
    """Nothing is cut off on a narrow screen, and every text has a contrast of 4.5 to 1 (WCAG)."""
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    visitor.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    visitor.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    visitor.arrive()
    assert visitor.browser.execute_script("return document.documentElement.scrollWidth") <= width
    weak = visitor.browser.execute_script(CONTRAST)
    assert weak == []


# Returns the texts whose contrast is too low, with their contrast
CONTRAST = """
const rgb = (c) => c.match(/[\\d.]+/g).map(Number);
const light = (c) => { const [r, g, b] = rgb(c).map((v) => { v /= 255; return v <= .03928 ? v / 12.92
  : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if (rgb(c)[3] !== 0) return c; } return 'rgb(255, 255, 255)'; };
return [...document.querySelectorAll('body *')].filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
  .map((e) => { const a = light(getComputedStyle(e).color), b = light(ground(e));
    return [e.textContent.trim().slice(0, 40), (Math.max(a, b) + .05) / (Math.min(a, b) + .05)]; })
  .filter(([, ratio]) => ratio < 4.5);
"""

"""A bookferry.toml with a v3 tenant, the person who signs in to it, and processes that work with that sign-in."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

from pipelines.scopes import SCOPES
from pipelines.service.client import LibraryClient, open_client
from pipelines.service.sign_in.login import signing_in
from pipelines.service.sign_in.stored_sign_in import Grant, StoredSignIn
from pipelines.service.sign_in.token_store import open_tokens
from pipelines.settings.config_file import load_settings
from pipelines.settings.settings import Settings
from pipelines.state.local import LocalState
from tests.forks import start
from tests.sandbox.process import SandboxProcess

ROOT = Path(__file__).parents[3]
TENANT = "new"
SECONDS = 60

CONFIG = """\
data = "library-data"
tokens = "sign-ins"
{top}

[tenants.new]
base_url = "{base_url}"
api = "v3"
requests_per_minute = 100000
{tenant_lines}
"""


def consent(url: str, sandbox: SandboxProcess, scopes: Sequence[str] | None = None, decision: str = "allow") -> str:
    """Use the consent page as a person: sign in, tick `scopes` (None: leave the page's choice), decide.

    Returns the address of the response.
    """
    with httpx.Client(timeout=SECONDS, verify=False) as browser:  # plain http
        page = browser.get(url)
        token = re.search(r'name="form_token" value="(\w+)"', page.text)
        assert token, page.text
        ticked = re.findall(r'name="scope" value="([a-z:]+)" checked', page.text) if scopes is None else list(scopes)
        form = {"email": sandbox.user, "password": sandbox.password, "scope": ticked, "decision": decision}
        answer = browser.post(url, data={"form_token": token[1], **form})
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]


def answer_in(address: str) -> dict[str, str]:
    """Returns the parameters of the response."""
    return dict(parse_qsl(urlsplit(address).query))


@contextmanager
def unwritable(place: str) -> Iterator[None]:
    """No sign-in in this file can be changed, as on a full disk."""
    with closing(sqlite3.connect(place, isolation_level=None)) as db:
        for change in ("INSERT", "UPDATE"):
            refusal = "BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END"
            db.execute(f"CREATE TRIGGER no_{change} BEFORE {change} ON sign_ins {refusal}")
        yield
        for change in ("INSERT", "UPDATE"):
            db.execute(f"DROP TRIGGER no_{change}")


@dataclass(frozen=True)
class Home:
    """A folder with a configuration for one library."""

    folder: Path
    base_url: str
    sandbox: SandboxProcess | None = None

    @classmethod
    def make(
        cls, folder: Path, base_url: str, sandbox: SandboxProcess | None = None, tenant_lines: str = "", top: str = ""
    ) -> Home:
        """Write the configuration."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "bookferry.toml").write_text(CONFIG.format(base_url=base_url, tenant_lines=tenant_lines, top=top))
        (folder / "library-data").mkdir(exist_ok=True)
        return cls(folder, base_url, sandbox)

    @property
    def settings(self) -> Settings:
        """The configuration, read again."""
        return load_settings(self.folder / "bookferry.toml")

    @property
    def state(self) -> LocalState:
        """The file with the budget."""
        return LocalState(self.folder / "library-data" / "state.db")

    @property
    def stored(self) -> StoredSignIn:
        """The stored sign-in."""
        return open_tokens(self.settings, TENANT).read()

    @property
    def grant(self) -> Grant:
        """The stored tokens."""
        assert self.stored.grant is not None
        return self.stored.grant

    def sign_in(self, scopes: Sequence[str] = SCOPES) -> Grant:
        """Sign in completely, with a person at the sandbox's consent page."""
        assert self.sandbox is not None
        with signing_in(self.settings, TENANT, state=self.state) as login:
            question = login.ask(scopes)
            return login.finish(question, answer_in(consent(question.url, self.sandbox, scopes)))

    @contextmanager
    def client(self, **options: Any) -> Iterator[LibraryClient]:
        """The client that jobs use."""
        with open_client(self.settings, TENANT, state=self.state, **options) as client:
            yield client

    def read(self, path: str = "publications") -> httpx.Response:
        """Read one page, as a job does."""
        with self.client() as client:
            return client.get(f"{client.api_url}/{path}")

    def refreshes(self) -> int:
        """Return the number of requests to the token endpoint."""
        assert self.sandbox is not None
        return sum(request["path"].endswith("/oauth/token") for request in self.sandbox.requests())

    def start(self, work: Callable[..., object], *arguments: object) -> BaseProcess:
        """Start a function in a process of its own, with this home as its first argument."""
        return start(work, replace(self, sandbox=None), *arguments)

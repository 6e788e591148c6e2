"""A configuration, a browser and a database for each test."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.postgres import database
from tests.sandbox.process import SandboxProcess
from tests.service.sign_in.home import ROOT, SECONDS, Home

VISIT = """\
#!{python}
import os, re, sys
sys.path.insert(0, {root!r})
os.environ.update(NO_PROXY="*")
import httpx
from pathlib import Path
from tests.service.sign_in.home import consent, answer_in
from types import SimpleNamespace
print("noise of a browser on its stdout")
get = lambda address: httpx.get(address, timeout={seconds})
url = sys.argv[1]
Path({seen!r}).write_text(url)
person = SimpleNamespace(user={user!r}, password={password!r})
{act}
"""


@pytest.fixture
def home(sandbox: SandboxProcess, tmp_path: Path) -> Home:
    """A configuration without a sign-in."""
    return Home.make(tmp_path / "home", sandbox.base_url(), sandbox)


@pytest.fixture
def browser(home: Home, sandbox: SandboxProcess) -> Callable[..., dict[str, str]]:
    """Creates a "browser" for $BROWSER: a program that does `act` with its address."""

    def make(act: str = "get(consent(url, person))") -> dict[str, str]:
        script = home.folder / "browser"
        details = {
            "seconds": SECONDS,
            "user": sandbox.user,
            "password": sandbox.password,
            "seen": str(home.folder / "address"),
        }
        script.write_text(VISIT.format(python=sys.executable, root=str(ROOT), act=act, **details))
        script.chmod(stat.S_IRWXU)
        return {"BROWSER": f"{script} %s"}

    return make


@pytest.fixture
def postgres_database(state_server: str) -> Iterator[str]:
    """Address of a new database."""
    with database(state_server) as address:
        yield address

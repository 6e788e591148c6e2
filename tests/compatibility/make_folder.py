"""Makes a data folder with the commands of a checkout, to be kept as an archive: a later Bookferry must go on with it.

    python tests/compatibility/make_folder.py CHECKOUT ARCHIVE

The folder holds a complete backup with files, a backup that was killed in the middle of the listing, a plan with a decision of a person
that was applied in part, the sign-in of that migration, and Dagster's history. Only commands and the sandbox's endpoints are used, so
that any version can make one. The address is a loopback address of its own, because a data folder knows the address of its library.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

HOST, PORT, STORAGE_PORT = "127.83.14.1", 18314, 18315
RECORDS = 230
CONFIG = f"""\
data = "library-data"
tokens = "sign-ins"

[tenants.old]
base_url = "http://{HOST}:{PORT}/old"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
requests_per_minute = 100000

[tenants.new]
base_url = "http://{HOST}:{PORT}/new"
api = "v3"
requests_per_minute = 100000
"""


class Maker:
    """A folder, the sandbox for it, and the commands of a checkout."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        self.checkout = checkout
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("BOOKFERRY", "DAGSTER"))},
            "PYTHONPATH": str(checkout),
            "TEST_USER": "backup@library.example",
            "TEST_PASSWORD": "sandbox-password",
        }

    def start_sandbox(self, *tenants: str) -> subprocess.Popen[str]:
        """The sandbox at the fixed address, with its state in the folder; ready."""
        options = [f"--tenant={tenant}" for tenant in tenants]
        command = [
            sys.executable,
            "-m",
            "sandbox",
            "--host",
            HOST,
            "--port",
            str(PORT),
            "--storage-port",
            str(STORAGE_PORT),
        ]
        process = subprocess.Popen(
            [*command, "--state", str(self.folder / "sandbox.db"), "--requests-per-minute", "0", *options],
            cwd=self.checkout,
            env=self.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["ready"]
        return process

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A command."""
        return subprocess.Popen(
            [sys.executable, "-m", "cli.main", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, statuses: tuple[int, ...] = (0,), typed: str = "") -> Any:
        """A command to its end: its JSON document."""
        process = self.start(*arguments, "--json")
        out, err = process.communicate(typed)
        assert process.returncode in statuses, (arguments, process.returncode, out, err)
        return json.loads(out)

    def sign_in(self) -> None:
        """`bookferry login`, with a person who allows everything."""
        process = self.start("login", "new", "--no-browser")
        assert process.stdin is not None
        assert process.stderr is not None
        shown = ""
        while not (found := re.search(r"http://\S+/oauth/authorize\?\S+", shown)):
            line = process.stderr.readline()
            assert line, shown
            shown += line
        process.communicate(consent(found[0]) + "\n", timeout=60)
        assert process.returncode == 0

    def request(self, method: str, path: str, body: object, token: str = "") -> Any:
        """A request to the sandbox."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"http://{HOST}:{PORT}/{path}", data=data, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def consent(address: str) -> str:
    """The consent page, filled in and sent; the address to which the browser is sent then."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()), _NoRedirect)
    page = browser.open(address).read().decode()
    token = re.search(r'name="form_token" value="(\w+)"', page)
    assert token is not None, page
    scopes = re.findall(r'name="scope" value="([a-z:]+)"', page)
    form = [
        ("form_token", token[1]),
        ("email", "backup@library.example"),
        ("password", "sandbox-password"),
        ("decision", "allow"),
    ]
    try:
        browser.open(address, data=urlencode([*form, *(("scope", one) for one in scopes)]).encode())
    except urllib.error.HTTPError as redirect:
        return str(redirect.headers["location"])
    raise AssertionError("the consent page sent nobody back")


def make(checkout: Path, folder: Path) -> dict[str, Any]:
    """Fill the folder; what a test needs to know of it."""
    maker = Maker(checkout, folder)
    (folder / "bookferry.toml").write_text(CONFIG)
    sandbox = maker.start_sandbox(f"old=real:{RECORDS}", "new=empty")
    try:
        backup = maker.run("backup", "old")
        maker.sign_in()
        token = maker.request(
            "POST", "_control/tokens", {"tenant": "new", "scopes": ["library:write", "library:read"]}
        )["access_token"]
        first = next(one for one in listed(maker) if one.get("doi"))
        twin = {
            "title": "Edited here",
            "publishable_type": first["publishable_type"],
            "identifiers": [{"type": "doi", "value": first["doi"]}],
        }
        maker.request("POST", "new/api/v3/publications", twin, token)
        plan = maker.run("migrate", "plan", "old", "new")
        decided = decide(folder / "library-data" / "plans" / plan["plan"] / "conflicts.tsv")
        plan = maker.run("migrate", "plan", "old", "new")
        applied = maker.run("migrate", "apply", plan["plan"], "--limit", "90", statuses=(0, 3))
        fault = {
            "tenant": "old",
            "match": {"method": "GET", "path": "page=4"},
            "fault": "status",
            "status": 503,
            "times": 1000,
        }
        maker.request("POST", "_control/faults", fault)
        killed = maker.start("backup", "old", "--resources", "publications", "--no-files")
        wait_for_pages(folder)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    finally:
        sandbox.terminate()
        sandbox.wait()
    return {"backup": backup, "plan": plan, "decided": decided, "applied": applied, "moment": time.time()}


def listed(maker: Maker) -> list[dict[str, Any]]:
    """The first publications of the old library."""
    request = urllib.request.Request(f"http://{HOST}:{PORT}/old/api/v2/publications?per_page=50")

    request.add_header(
        "authorization", "Basic " + base64.b64encode(b"backup@library.example:sandbox-password").decode()
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)["records"]


def decide(conflicts: Path) -> int:
    """Write `target` as the decision of every conflict; how many there are."""
    heading, *lines = conflicts.read_text("utf-8-sig").splitlines()
    decided = ["\t".join([*line.split("\t")[:-1], "target"]) for line in lines]
    conflicts.write_text("\n".join([heading, *decided, ""]), "utf-8")
    return len(decided)


def wait_for_pages(folder: Path) -> None:
    """Until the backup that is running has kept what it could read: its files have stopped growing."""
    sizes = [0, -1]
    until = time.monotonic() + 120
    while sizes[-1] < 60_000 or sizes[-1] != sizes[-2]:
        if time.monotonic() > until:
            raise AssertionError(sizes)
        time.sleep(3)
        sizes.append(
            sum(
                path.stat().st_size
                for path in (folder / "library-data" / "work" / "tenant=old").rglob("*")
                if path.is_file()
            )
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        facts = make(Path(sys.argv[1]).absolute(), Path(temporary))
        (Path(temporary) / "facts.json").write_text(json.dumps(facts, indent=1))
        with tarfile.open(sys.argv[2], "w:xz") as archive:
            archive.add(temporary, arcname=".")
    print(json.dumps(facts, indent=1))  # noqa: T201

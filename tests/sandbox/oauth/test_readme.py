"""The OAuth section of the README: its session works as printed, its tables name every setting."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import files

import pytest

from tests.sandbox.process import SandboxProcess

pytestmark = pytest.mark.long


def section() -> str:
    text = files("sandbox").joinpath("README.md").read_text("utf-8")
    return text.partition("## Signing in to v3\n")[2].partition("\n## ")[0]


@pytest.mark.skipif(not all(map(shutil.which, ("bash", "curl", "openssl", "python3"))), reason="needs curl and openssl")
def test_the_session_works_as_printed() -> None:
    """The test changes the port only."""
    script = re.findall(r"```sh\n(.*?)```", section(), re.DOTALL)
    with SandboxProcess("--tenant", "library=real:3") as sandbox:
        text = script[0].replace("127.0.0.1:8000", f"127.0.0.1:{sandbox.port}")
        done = subprocess.run(
            ["bash", "-euo", "pipefail"], input=text, capture_output=True, text=True, timeout=240, check=False
        )
        requests = [(seen["method"], seen["path"], seen["status"]) for seen in sandbox.requests()]
    assert done.returncode == 0, done.stderr
    publications, tokens = map(json.loads, done.stdout.splitlines())
    assert len(publications["records"]) == 1
    assert tokens["scope"] == "library:read users:read"
    assert requests == [
        ("POST", "/oauth/clients", 201),
        ("GET", "/oauth/authorize", 200),
        ("POST", "/oauth/authorize", 303),
        ("POST", "/oauth/token", 200),
        ("GET", "/api/v3/publications", 200),
        ("POST", "/oauth/token", 200),
    ]

"""Schemathesis against the descriptions of both versions: every check, over a socket.

schemathesis_hooks.py narrows one check. Each run sends some hundred requests to a version;
`BOOKFERRY_SCHEMATHESIS_EXAMPLES=150` sends about 7,000 to version 3, in four minutes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.process import SandboxProcess

EXAMPLES = os.environ.get("BOOKFERRY_SCHEMATHESIS_EXAMPLES", "5")
CONFIGURATION = Path(__file__).with_name("schemathesis.toml")

HOOKS = "tests.interop.schemathesis_hooks"


@pytest.fixture
def sandbox() -> Iterator[SandboxProcess]:
    """A part of the library with files, without a request limit."""
    with SandboxProcess("--tenant", "library=real:300", "--requests-per-minute", "0") as sandbox:
        yield sandbox


def sign_in(sandbox: SandboxProcess, version: str) -> list[str]:
    """Returns the options that sign in to a version."""
    if version == "v2":
        return ["--auth", f"{sandbox.user}:{sandbox.password}"]
    token = sandbox.control("POST", "tokens", {"tenant": "library"})["access_token"]
    return ["--header", f"Authorization: Bearer {token}"]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", ["v2", "v3"])
def test_schemathesis_finds_nothing(sandbox: SandboxProcess, version: str, tmp_path: Path) -> None:
    """The service answers every request, valid or not, as its description says."""
    program = Path(sys.executable).with_name("schemathesis")
    address = f"{sandbox.base_url()}/api/{version}/swagger.yaml"
    run = subprocess.run(
        [
            program, "--config-file", CONFIGURATION, "run", address, *sign_in(sandbox, version), "--checks", "all",
            "--exclude-checks", "ensure_resource_availability",
            "--max-examples", EXAMPLES, "--continue-on-failure", "--seed", "1", "--no-color",
        ],
        cwd=tmp_path,
        env=os.environ | {"SCHEMATHESIS_HOOKS": HOOKS, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout
    generated = re.search(r"(\d+) generated", run.stdout)
    assert generated is not None
    assert int(generated[1]) >= 500

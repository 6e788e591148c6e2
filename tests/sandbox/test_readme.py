"""The session of the README works as printed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from tests.sandbox.process import SandboxProcess

pytestmark = pytest.mark.long


@pytest.mark.skipif(not all(map(shutil.which, ("bash", "curl", "python3"))), reason="needs bash and curl")
def test_the_first_session_works_as_printed(tmp_path: Path) -> None:
    """Both versions of a record, the page and a description; the test changes the port only."""
    text = files("sandbox").joinpath("README.md").read_text("utf-8")
    (script,) = re.findall(r"```sh\n(.*?)```", text.partition("\n## Start it\n")[2].partition("\n## ")[0], re.DOTALL)
    with SandboxProcess("--tenant", "library=real:60") as sandbox:
        process = subprocess.run(
            ["bash", "-euo", "pipefail"],
            input=script.replace("127.0.0.1:8000", f"127.0.0.1:{sandbox.port}"),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        statuses = [request["status"] for request in sandbox.requests()]
    assert process.returncode == 0, process.stderr
    assert statuses == [200] * 7
    search, record, changed, deleted, page, description = process.stdout.split("\n", 5)
    assert [record["id"] for record in json.loads(search)["records"]] == [41]
    assert json.loads(record)["identifiers"] == [{"type": "doi", "value": "10.1000/tides"}]
    assert [identifier["type"] for identifier in json.loads(changed)["identifiers"]] == ["doi", "handle"]
    assert (deleted, page) == ("{}", "200")
    assert description.startswith("openapi: 3.1.0\n")

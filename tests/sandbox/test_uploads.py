"""Uploads to a process: after a kill, and with a lost response."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.sandbox.process import SandboxProcess

pytestmark = pytest.mark.long


SMALL = ("--tenant", "library=real:5", "--requests-per-minute", "0")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxProcess]:
    with SandboxProcess(*SMALL, "--tenant", "other=empty") as running:
        yield running


def api(sandbox: SandboxProcess, method: str, path: str, body: object = None) -> dict[str, Any]:
    address = f"{sandbox.base_url()}/api/v2{path}"
    answer = httpx.request(method, address, json=body, auth=(sandbox.user, sandbox.password), timeout=30)
    answered: dict[str, Any] = answer.raise_for_status().json()
    return answered


def attached(sandbox: SandboxProcess, content: bytes) -> dict[str, Any]:
    form = api(sandbox, "GET", "/assets/presign?filename=x.bin")
    sent = httpx.post(form["url"], data=form["fields"], files={"file": ("x.bin", BytesIO(content))}, timeout=60)
    assert sent.status_code == 204, sent.text
    file = {"id": form["fields"]["key"].removeprefix("cache/"), "storage": "cache"}
    return api(sandbox, "POST", "/assets", {"publication_id": 1, "file": file})


def test_what_was_uploaded_survives_a_kill(tmp_path: Path) -> None:
    """An upload survives a kill if there is a state file, and so does its form."""
    state = ("--state", str(tmp_path / "state.db"))
    with SandboxProcess(*SMALL, *state) as first:
        asset = attached(first, b"to be kept")
        form = api(first, "GET", "/assets/presign")
        first.kill()
    with SandboxProcess(*SMALL, *state) as again:
        stored = api(again, "GET", f"/assets/{asset['id']}")
        assert httpx.get(stored["url"]).content == b"to be kept"
        address = f"{again.ready['storage']}/library"
        late = httpx.post(address, data=form["fields"], files={"file": b"with a form from before"})
        assert late.status_code == 204


def test_an_upload_with_a_lost_response_is_stored(sandbox: SandboxProcess) -> None:
    """A reset after the effect: the file is stored although the client got no response."""
    form = api(sandbox, "GET", "/assets/presign")
    file = {"id": form["fields"]["key"].removeprefix("cache/"), "storage": "cache"}
    sandbox.fault("reset", method="POST", path="^/storage/$", when="after")
    with pytest.raises(httpx.TransportError):
        httpx.post(form["url"], data=form["fields"], files={"file": b"x"})
    assert api(sandbox, "POST", "/assets", {"publication_id": 1, "file": file})["file"]["metadata"]["size"] == 1

"""Uploads to a process: after a kill, many at once, in little memory, with `Expect: 100-continue`."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.sandbox.process import SandboxProcess

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
    """An upload survives a kill if there is a state file. An interrupted upload leaves nothing."""
    state = ("--state", str(tmp_path / "state.db"))
    with SandboxProcess(*SMALL, *state) as first:
        asset = attached(first, b"to be kept")
        form = api(first, "GET", "/assets/presign")
        first.kill()
    folder = tmp_path / "state.db-files"
    (folder / "interrupted.part").write_bytes(b"half")
    with SandboxProcess(*SMALL, *state) as again:
        stored = api(again, "GET", f"/assets/{asset['id']}")
        assert httpx.get(stored["url"]).content == b"to be kept"
        address = f"{again.ready['storage']}/library"
        late = httpx.post(address, data=form["fields"], files={"file": b"with a form from before"})
        assert late.status_code == 204
    assert not list(folder.glob("*.part"))
    assert len(list(folder.iterdir())) == 2


def test_without_a_state_file_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Uploads are in a temporary folder that the process removes."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with SandboxProcess(*SMALL) as sandbox:
        attached(sandbox, b"x")
        assert len(list(tmp_path.iterdir())) == 1
        assert sandbox.terminate() == 0
    assert list(tmp_path.iterdir()) == []


def test_many_uploads_at_once(sandbox: SandboxProcess) -> None:
    """Each upload arrives complete, also one with the same content as another."""
    contents = [hashlib.sha256(b"%d" % (number % 20)).digest() * 3000 for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        assets = list(pool.map(lambda content: attached(sandbox, content), contents))
    assert len({asset["id"] for asset in assets}) == 40
    assert [httpx.get(asset["url"]).content for asset in assets] == contents


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux")
def test_no_file_is_ever_in_memory() -> None:
    """128 MiB go in and out, and the process grows by less than a quarter of that."""
    size = 128 << 20
    with SandboxProcess(*SMALL) as sandbox:
        form = api(sandbox, "GET", "/assets/presign")
        before = most_memory(sandbox)
        with tempfile.TemporaryFile() as file:
            file.truncate(size)
            sent = httpx.post(form["url"], data=form["fields"], files={"file": file}, timeout=60)
        assert sent.status_code == 204
        file_id = form["fields"]["key"].removeprefix("cache/")
        body = {"publication_id": 1, "file": {"id": file_id, "storage": "cache"}}
        url = api(sandbox, "POST", "/assets", body)["url"]
        with httpx.stream("GET", url) as answer:
            assert sum(map(len, answer.iter_bytes())) == size
        assert most_memory(sandbox) - before < size // 4


def most_memory(sandbox: SandboxProcess) -> int:
    """Returns the most memory that the process had, in bytes."""
    status = Path(f"/proc/{sandbox.process.pid}/status").read_text("utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize("size", [1 << 20, 8 << 20])
def test_curl_asks_before_it_sends_much(sandbox: SandboxProcess, size: int) -> None:
    """Curl sends ``Expect: 100-continue`` before a large body and reads a refusal after it."""
    form = api(sandbox, "GET", "/assets/presign")
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"\0" * size)
        file.flush()
        for fields, expected in ((form["fields"], "204"), ({**form["fields"], "acl": "private"}, "403")):
            options = [part for name, value in fields.items() for part in ("--form-string", f"{name}={value}")]
            command = [
                "curl",
                "-sS",
                "--expect100-timeout",
                "60",
                "-o",
                "/dev/null",
                "-w",
                "%{http_code}",
                *options,
                "-F",
                f"file=@{file.name}",
                form["url"],
            ]
            assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == expected


def test_buckets_are_apart(sandbox: SandboxProcess) -> None:
    """service.md#overview: each tenant has its own {base_url}. A form or address of one tenant does not work in another bucket."""
    form = api(sandbox, "GET", "/assets/presign")
    elsewhere = form["url"].replace("/library", "/other")
    assert httpx.post(elsewhere, data=form["fields"], files={"file": b"x"}).status_code == 403
    url = attached(sandbox, b"mine")["url"]
    assert httpx.get(url.replace("/library/", "/other/")).status_code == 403


def test_an_upload_with_a_lost_response_is_stored(sandbox: SandboxProcess) -> None:
    """A reset after the effect: the file is stored although the client got no response."""
    form = api(sandbox, "GET", "/assets/presign")
    file = {"id": form["fields"]["key"].removeprefix("cache/"), "storage": "cache"}
    sandbox.fault("reset", method="POST", path="^/storage/$", when="after")
    with pytest.raises(httpx.TransportError):
        httpx.post(form["url"], data=form["fields"], files={"file": b"x"})
    assert api(sandbox, "POST", "/assets", {"publication_id": 1, "file": file})["file"]["metadata"]["size"] == 1

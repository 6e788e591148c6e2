"""Uploads to another S3 endpoint: `--uploads-to` with endpoint, bucket and keys.

The other endpoint is the storage service of a second sandbox, which does not know the first.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest import mock

import httpx
import pytest

from tests.sandbox.process import SandboxProcess

ROOT = Path(__file__).parents[2]
CONTENT = b"bytes that go elsewhere" * 1000
SMALL = ("--tenant", "library=real:5", "--requests-per-minute", "0")


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[SandboxProcess]:
    with SandboxProcess("--tenant", "bucket=empty") as running:
        yield running


@pytest.fixture(scope="module")
def sandbox(elsewhere: SandboxProcess) -> Iterator[SandboxProcess]:
    keys = elsewhere.ready["tenants"]["bucket"]["storage_keys"]
    environment = {"AWS_ACCESS_KEY_ID": keys["access_key_id"], "AWS_SECRET_ACCESS_KEY": keys["secret_access_key"]}
    with (
        mock.patch.dict(os.environ, environment),  # the process reads its keys here
        SandboxProcess(*SMALL, "--uploads-to", elsewhere.ready["storage"], "--uploads-bucket", "bucket") as running,
    ):
        yield running


@pytest.fixture
def client(sandbox: SandboxProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{sandbox.base_url()}/api/v2", auth=(sandbox.user, sandbox.password)) as opened:
        yield opened


def asset(client: httpx.Client, file_id: str) -> httpx.Response:
    return client.post("/assets", json={"publication_id": 1, "file": {"id": file_id, "storage": "cache"}})


def uploaded(client: httpx.Client) -> str:
    form: dict[str, Any] = client.get("/assets/presign?filename=ä.txt&type=text/plain").json()
    answer = httpx.post(form["url"], data=form["fields"], files={"file": ("ignored", BytesIO(CONTENT))})
    assert answer.status_code == 204, answer.text
    key: str = form["fields"]["key"]
    return key.removeprefix("cache/")


def test_the_form_leads_to_the_foreign_endpoint(client: httpx.Client, elsewhere: SandboxProcess) -> None:
    """The form is signed for the other bucket, which accepts the file."""
    assert client.get("/assets/presign").json()["url"] == f"{elsewhere.ready['storage']}/bucket"
    uploaded(client)


def test_the_upload_is_looked_up_there(client: httpx.Client) -> None:
    """service.md#upload: the service looks for the upload under `cache/<file.id>`. Here a signed HEAD reads size, type and name."""
    created = asset(client, uploaded(client)).json()
    assert created["file"]["metadata"] == {"size": len(CONTENT), "filename": "ä.txt", "mime_type": "text/plain"}
    missing = asset(client, "nothing")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "StorageNotFound")


def test_the_file_is_downloaded_from_there(client: httpx.Client, elsewhere: SandboxProcess) -> None:
    """Assumption: the file stays in the other bucket; its address is signed with the keys of that bucket."""
    file_id = uploaded(client)
    first, second = asset(client, file_id).json(), asset(client, file_id).json()
    for each in (first, second):
        assert each["url"].startswith(f"{elsewhere.ready['storage']}/bucket/cache/")
        assert httpx.get(each["url"]).content == CONTENT
    assert httpx.get(first["url"], headers={"Authorization": "Bearer x"}).status_code == 400
    seeded = client.delete(f"/assets/{first['id']}")
    assert seeded.status_code == 200


@pytest.mark.parametrize(
    "options", [["--uploads-to", "http://127.0.0.1:1"], ["--uploads-to", "ftp://x", "--uploads-bucket", "b"]]
)
def test_a_foreign_endpoint_needs_all_of_its_parts(options: list[str]) -> None:
    """Address, bucket and keys are required: exit 2, and the message names what is missing."""
    command = [sys.executable, "-m", "sandbox", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--uploads-bucket" in done.stderr

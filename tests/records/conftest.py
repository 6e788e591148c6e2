from __future__ import annotations

import base64
import urllib.request

import msgspec
import pytest
from hypothesis import settings

from tests.sandbox.process import SandboxProcess

settings.register_profile("records", deadline=None)  # times vary on a shared machine
settings.load_profile("records")


class _Page(msgspec.Struct):
    records: list[msgspec.Raw]


@pytest.fixture(scope="session")
def real_payloads() -> list[str]:
    """The JSON of every record of the sandbox's real library, as version 2 sends it."""
    with SandboxProcess("--requests-per-minute", "0") as sandbox:
        account = base64.b64encode(f"{sandbox.user}:{sandbox.password}".encode()).decode()
        return _payloads(sandbox, "v2", f"Basic {account}")


@pytest.fixture(scope="session")
def typed_payloads() -> list[str]:
    """The first 500 of them as version 3 sends them."""
    with SandboxProcess("--tenant=library=real:500", "--requests-per-minute", "0") as sandbox:
        token = sandbox.control("POST", "tokens", {"tenant": "library"})["access_token"]
        return _payloads(sandbox, "v3", f"Bearer {token}")


def _payloads(sandbox: SandboxProcess, version: str, sign_in: str) -> list[str]:
    payloads: list[str] = []
    page = 1
    while len(payloads) < sandbox.publications():
        request = urllib.request.Request(
            f"{sandbox.base_url()}/api/{version}/publications/all?per_page=50&page={page}",
            headers={"Authorization": sign_in},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            payloads += [bytes(record).decode() for record in msgspec.json.decode(answer.read(), type=_Page).records]
        page += 1
    return payloads

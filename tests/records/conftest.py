from __future__ import annotations

import base64
import urllib.request

import msgspec
import pytest
from hypothesis import settings

from tests.sandbox.process import SandboxProcess

settings.register_profile("records", deadline=None)  # time says little on a machine that others use too
settings.load_profile("records")


class _Page(msgspec.Struct):
    records: list[msgspec.Raw]


@pytest.fixture(scope="session")
def real_payloads() -> list[str]:
    """The JSON of every record of the sandbox's real library, as the service sends it."""
    payloads: list[str] = []
    with SandboxProcess("--requests-per-minute", "0") as sandbox:
        sign_in = base64.b64encode(f"{sandbox.user}:{sandbox.password}".encode()).decode()
        page = 1
        while len(payloads) < sandbox.publications():
            request = urllib.request.Request(
                f"{sandbox.base_url()}/api/v2/publications/all?per_page=50&page={page}",
                headers={"Authorization": f"Basic {sign_in}"},
            )
            with urllib.request.urlopen(request, timeout=30) as answer:
                payloads += [
                    bytes(record).decode() for record in msgspec.json.decode(answer.read(), type=_Page).records
                ]
            page += 1
    return payloads

"""dlt's rest_api source reads every record of both versions by following ``Link``."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.process import SandboxProcess

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def sign_in(sandbox: SandboxProcess, version: str) -> dict[str, Any]:
    """Returns dlt's configuration of the sign-in."""
    if version == "v2":
        return {"type": "http_basic", "username": sandbox.user, "password": sandbox.password}
    token = sandbox.control("POST", "tokens", {"tenant": "library"})["access_token"]
    return {"type": "bearer", "token": token}


@pytest.mark.parametrize(("version", "path"), [("v2", "publications"), ("v3", "publications/all")])
def test_dlt_reads_every_record(version: str, path: str) -> None:
    """service.md#lists: more pages remain while there is a next link."""
    rest_api = pytest.importorskip("dlt.sources.rest_api")
    with SandboxProcess("--tenant", "library=real:333", "--requests-per-minute", "0") as sandbox:
        configuration = {
            "client": {
                "base_url": f"{sandbox.base_url()}/api/{version}/",
                "auth": sign_in(sandbox, version),
                "paginator": {"type": "header_link"},
            },
            "resources": [
                {"name": "records", "endpoint": {"path": path, "params": {"per_page": 50}, "data_selector": "records"}}
            ],
        }
        (resource,) = rest_api.rest_api_resources(configuration)
        assert [record["id"] for record in resource] == list(range(1, 334))
        assert sandbox.counts()["requests"] == 7

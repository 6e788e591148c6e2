"""The checks of a backup that may not read every resource, of a tenant of version 3."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import dagster as dg
import pytest

from tests.assets_defs.installation import DagsterInstallation
from tests.backup.other_resources.signing import sign_in
from tests.sandbox.process import SandboxProcess

pytestmark = pytest.mark.long

Install = Callable[..., DagsterInstallation]

CONFIG = """
data = "library-data"
tokens = "sign-ins"

[tenants.new]
base_url = "{base_url}"
api = "v3"
client_id = "test"
client_auth = "none"
requests_per_minute = 100000
{more}
"""


@pytest.fixture
def install(
    sandbox: SandboxProcess, dagster_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Install]:
    """Makes an installation of the tenant `new`, which is signed in with these scopes; `more`: further lines of its configuration."""
    config, home = tmp_path / "bookferry.toml", tmp_path / "dagster-home"
    shutil.copytree(dagster_home, home)
    monkeypatch.setenv("BOOKFERRY_CONFIG", str(config))
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with ExitStack() as stack:

        def make(*scopes: str, more: str = "") -> DagsterInstallation:
            config.write_text(CONFIG.format(base_url=sandbox.base_url(), more=more))
            sign_in(config, "new", sandbox, scopes=scopes)
            return stack.enter_context(DagsterInstallation(tmp_path))

        yield make


def checks(result: dg.ExecuteInProcessResult) -> dict[tuple[str, str], tuple[bool, str]]:
    """Asset and check → whether it passed, and how severe it is."""
    return {
        (check.asset_key.path[1], check.check_name): (check.passed, check.severity.value)
        for check in result.get_asset_check_evaluations()
    }


def test_what_is_not_readable_is_a_warning(install: Install) -> None:
    """A missing scope does not make the backup fail: the raw table has a warning with the scope, and the rest is complete."""
    new = install("library:read", "assets:read", "tasks:read")
    result = new.run("new")
    assert result.success
    results = checks(result)
    assert {check for check, (passed, _severity) in results.items() if not passed} == {
        ("raw_users", name) for name in ("readable", "count_equals_x_total")
    }
    assert results["raw_users", "readable"] == (False, "WARN")
    [check] = [
        check
        for check in result.get_asset_check_evaluations()
        if (check.asset_key.path[1], check.check_name) == ("raw_users", "readable")
    ]
    assert "users:read" in str(check.metadata["not_read"].value)
    [snapshot] = new.snapshots
    assert snapshot.manifest.complete
    assert "users" not in snapshot.counts


def test_what_was_named_and_is_not_readable_is_an_error(install: Install) -> None:
    """`resources` or `nested` of the tenant name it: the check is red and the snapshot partial. The service has no such lists."""
    more = 'resources = ["users", "publications", "collections"]\nnested = ["collections/publications"]'
    new = install("library:read", "assets:read", more=more)
    result = new.run("new")
    assert result.success
    results = checks(result)
    assert results["raw_users", "readable"] == (False, "ERROR")
    assert [results["raw_collections", name][0] for name in ("count_equals_x_total", "readable")] == [False, True]
    assert results["snapshot", "complete"][0] is False
    [snapshot] = new.snapshots
    assert not snapshot.manifest.complete

"""Every resource in Dagster: assets, checks and the nightly job of a tenant of version 3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from pipelines.inventory import RESOURCES
from pipelines.records.tables.registry import STAGED
from tests.assets_defs.installation import INSTANCE, DagsterInstallation
from tests.backup.other_resources.signing import sign_in
from tests.sandbox.process import SandboxProcess

pytestmark = pytest.mark.long


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


def configure(folder: Path, sandbox: SandboxProcess, more: str = "") -> Path:
    """A configuration of the first library by version 3, and a Dagster instance."""
    config, home = folder / "bookferry.toml", folder / "dagster-home"
    config.write_text(CONFIG.format(base_url=sandbox.base_url(), more=more))
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text(INSTANCE)
    return config


@pytest.fixture
def new(sandbox: SandboxProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DagsterInstallation]:
    """An installation with the tenant `new`, which is not signed in yet."""
    config = configure(tmp_path, sandbox)
    monkeypatch.setenv("BOOKFERRY_CONFIG", str(config))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster-home"))
    with DagsterInstallation(tmp_path) as installation:
        yield installation


def checks(result: dg.ExecuteInProcessResult) -> dict[tuple[str, str], tuple[bool, str]]:
    """Asset and check → whether it passed, and how severe it is."""
    return {
        (one.asset_key.path[1], one.check_name): (one.passed, one.severity.value)
        for one in result.get_asset_check_evaluations()
    }


def test_a_backup_of_all_resources(new: DagsterInstallation, sandbox: SandboxProcess) -> None:
    """One asset for each raw and each staged table, and the files; all checks green; one snapshot of all resources."""
    sign_in(new.folder / "bookferry.toml", "new", sandbox)
    result = new.run("new")
    assert result.success
    events = [event.asset_key.path[1] for event in result.get_asset_materialization_events() if event.asset_key]
    expected = {f"raw_{resource}" for resource in RESOURCES} | {"files", "snapshot", "report"}
    expected |= {table.name for tables in STAGED.values() for table in tables}
    assert sorted(events) == sorted(expected)
    assert all(passed for passed, _severity in checks(result).values())
    [snapshot] = new.snapshots
    assert snapshot.manifest.complete
    assert list(snapshot.counts) == list(RESOURCES)
    assert_no_person_is_previewed(result)


def assert_no_person_is_previewed(result: dg.ExecuteInProcessResult) -> None:
    """Names and addresses of people stay in the tables: Dagster's history holds none."""
    previews = [str(event.materialization.metadata) for event in result.get_asset_materialization_events()]
    assert not any("@library.example" in one for one in previews)


def test_what_is_not_readable_is_a_warning(new: DagsterInstallation, sandbox: SandboxProcess) -> None:
    """A missing scope does not make the backup fail: the raw table has a warning with the scope, and the rest is complete."""
    sign_in(new.folder / "bookferry.toml", "new", sandbox, scopes=("library:read", "assets:read", "tasks:read"))
    result = new.run("new")
    assert result.success
    results = checks(result)
    assert {check for check, (passed, _severity) in results.items() if not passed} == {
        ("raw_users", name) for name in ("readable", "count_equals_x_total", "ids_unique")
    }
    assert results["raw_users", "readable"] == (False, "WARN")
    [check] = [
        one
        for one in result.get_asset_check_evaluations()
        if (one.asset_key.path[1], one.check_name) == ("raw_users", "readable")
    ]
    assert "users:read" in str(check.metadata["not_read"].value)
    [snapshot] = new.snapshots
    assert snapshot.manifest.complete
    assert "users" not in snapshot.counts


def test_what_was_named_and_is_not_readable_is_an_error(
    sandbox: SandboxProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`resources` or `nested` of the tenant name it: the check is red and the snapshot partial. The service has no such lists."""
    more = 'resources = ["users", "publications", "collections"]\nnested = ["collections/publications"]'
    config = configure(tmp_path, sandbox, more)
    monkeypatch.setenv("BOOKFERRY_CONFIG", str(config))
    sign_in(config, "new", sandbox, scopes=("library:read", "assets:read"))
    with DagsterInstallation(tmp_path) as installation:
        result = installation.run("new")
        assert result.success
        assert checks(result)["raw_users", "readable"] == (False, "ERROR")
        assert [checks(result)["raw_collections", name][0] for name in ("count_equals_x_total", "readable")] == [
            False,
            True,
        ]
        assert checks(result)["snapshot", "complete"][0] is False
        [snapshot] = installation.snapshots
        assert not snapshot.manifest.complete

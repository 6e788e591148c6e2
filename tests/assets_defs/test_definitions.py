"""What Dagster loads: the same for any number of tenants, and an error that says what to do without a configuration."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets_defs.definitions import build_definitions
from pipelines.records.tables.registry import STAGED
from pipelines.settings.config_file import load_settings
from pipelines.settings.settings import Settings

TENANT = """
[tenants.{name}]
base_url = "https://{name}.example.org"
api = "v2"
username_env = "TEST_USER"
password_env = "TEST_PASSWORD"
"""


def settings_for(folder: Path, *tenants: str, more: str = "") -> Settings:
    """The settings of a new bookferry.toml with these libraries. `more`: further lines of it."""
    config = folder / "bookferry.toml"
    config.write_text(f'data = "library-data"\n{more}\n' + "".join(TENANT.format(name=name) for name in tenants))
    return load_settings(config)


def specs(defs: dg.Definitions) -> dict[dg.AssetKey, dg.AssetSpec]:
    return {spec.key: spec for spec in defs.resolve_all_asset_specs()}


@pytest.mark.parametrize("tenants", [(), ("old",), ("old", "a", "library_of_the_9th_district_")], ids=len)
def test_any_number_of_tenants(tmp_path: Path, tenants: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tenant has its assets under its name; job and schedule are the same. No secret is read, nothing is made on disk."""
    monkeypatch.delenv("TEST_USER", raising=False)
    defs = build_definitions(settings_for(tmp_path, *tenants))
    dg.Definitions.validate_loadable(defs)
    assert [path.name for path in tmp_path.iterdir()] == ["bookferry.toml"]
    names = [
        "raw_publications",
        *(table.name for table in STAGED["publications"]),
        "files",
        "snapshot",
        "report",
        "verification",
        "drill",
    ]
    assert set(specs(defs)) == {dg.AssetKey([tenant, name]) for tenant in tenants for name in names}
    assert sorted(job.name for job in defs.resolve_all_job_defs() if not job.name.startswith("__")) == [
        "drill_backups",
        "nightly_backup",
        "verify_backups",
    ]
    assert defs.resolve_schedule_def("nightly_backup_schedule").job_name == "nightly_backup"


@pytest.mark.long
def test_nothing_runs_twice_by_itself_and_no_library_waits_for_another(tmp_path: Path) -> None:
    """Dagster's retries turn "Terminate" into another try: there are none, and a run that hangs has an end. Pools are of one tenant."""
    job = build_definitions(settings_for(tmp_path, "old", "new")).resolve_job_def("nightly_backup")
    assert job.tags["dagster/max_retries"] == "0"
    assert int(job.tags["dagster/max_runtime"]) == 20 * 3600
    assert all(node.definition.retry_policy is None for node in job.nodes)
    assert job.executor_def is dg.in_process_executor
    assert {node.definition.pools == {node.name.partition("__")[0]} for node in job.nodes} == {True}

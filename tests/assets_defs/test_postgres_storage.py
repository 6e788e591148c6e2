"""Dagster's own storage in a Postgres, with the locked versions and an ordinary address."""

from __future__ import annotations

import threading
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.events.log import EventLogEntry
from dagster._core.instance.ref import InstanceRef

from assets_defs.definitions import build_definitions
from tests.assets_defs.installation import DagsterInstallation
from tests.postgres import database, postgres_server

pytestmark = pytest.mark.long


def test_a_run_is_stored_and_its_events_are_announced(installation: DagsterInstallation, tmp_path: Path) -> None:
    """The web interface follows a run by Postgres's NOTIFY, through psycopg2."""
    home = tmp_path / "with-postgres"
    home.mkdir()
    with postgres_server() as server, database(server) as address:
        assert address.startswith("postgresql://")
        (home / "dagster.yaml").write_text(f"storage:\n  postgres:\n    postgres_url: {address}\n")
        with dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home))) as instance:
            announced, seen = threading.Event(), list[EventLogEntry]()

            def note(event: EventLogEntry, _cursor: str) -> None:
                seen.append(event)
                announced.set()

            run = instance.create_run_for_job(dg.GraphDefinition("empty").to_job())
            instance.event_log_storage.watch(run.run_id, None, note)
            instance.report_engine_event("something happened", run)
            assert announced.wait(60)
            assert seen[0].get_dagster_event().message == "something happened"
            instance.event_log_storage.end_watch(run.run_id, note)
            job = build_definitions(installation.settings).resolve_job_def("nightly_backup")
            keys = [dg.AssetKey(["old", "snapshot"])]
            assert job.execute_in_process(instance=instance, asset_selection=keys, raise_on_error=False).success
            assert len(instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS]))) == 1

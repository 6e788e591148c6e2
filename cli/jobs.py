"""Runs Bookferry's Dagster jobs in this process, on the instance of the web interface, without Dagster's own output.

Dagster is imported only when a job runs: the import takes longer than most commands.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from filelock import FileLock

from cli.code_location import dagster_folder
from cli.progress import ProgressDisplay
from cli.stop_signals import StopRequest, received_signal
from pipelines.backup.flow import Backup
from pipelines.disk_space import is_full
from pipelines.errors import StorageError
from pipelines.file_access import make_folder, share_databases
from pipelines.python_process import import_on_demand, importing
from pipelines.settings.settings import Settings
from pipelines.store.durable import storage_error, storage_errors, write_atomically
from pipelines.store.encryption import personal_keys
from pipelines.store.snapshots.snapshots import Snapshot
from resources.run_tags import COMMAND_LINE, REQUESTED_RESOURCES, STARTED_BY, TENANT, process_tags

if TYPE_CHECKING:
    import dagster as dg

    from pipelines.migration.flow import Migration
    from pipelines.store.iceberg.tables import Registration
    from pipelines.store.postgres.loading import LoadResult

FOLLOWS = "  # as bookferry.toml says; without this comment it is yours"
"""The end of the line with the number of runs that Bookferry keeps as the configuration has it."""

INSTANCE = (
    """\
# Dagster's settings for this data folder. Bookferry wrote this file once; you may change it.
telemetry: {enabled: false}
nux: {enabled: false}
concurrency:
  runs: {max_concurrent_runs: 4}"""
    + FOLLOWS
    + """
  pools: {granularity: run, default_limit: 1}
run_monitoring: {enabled: true, free_slots_after_run_end_seconds: 60, cancel_timeout_seconds: 180}
run_retries: {enabled: false}
freshness: {enabled: true}
retention: {sensor: {purge_after_days: {skipped: 7, success: 30, failure: 90}}, schedule: {purge_after_days: {skipped: 7}}}
"""
)

_TERMINAL = {
    "compute_logs": {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
}
"""No capture of output: Dagster would copy it through four processes, and each prints a traceback at Ctrl-C."""

OTHER_DATABASES = frozenset(f"alembic.ddl.{name}" for name in ("mssql", "mysql", "oracle", "postgresql"))
"""What Alembic imports for histories that are not in SQLite, with their drivers."""

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def dagster_home(settings: Settings) -> Path:
    """Returns the folder of Dagster's instance. The first use creates it."""
    home = dagster_folder(settings)
    with storage_errors(home):
        if home.is_relative_to(settings.data):
            make_folder(settings.data)
        make_folder(home)
        with _one_at_a_time(home):
            _write_instance(home / "dagster.yaml", settings.runs_at_once)
    return home


def _write_instance(path: Path, runs: int) -> None:
    """Write Dagster's instance, or only the number of runs into one that we wrote and where nobody chose a number."""
    there = path.read_text(encoding="utf-8") if path.exists() else INSTANCE
    wanted = re.sub(
        rf"max_concurrent_runs: \d+(?=\}}{re.escape(FOLLOWS)}$)",
        f"max_concurrent_runs: {runs}",
        there,
        flags=re.MULTILINE,
    )
    if wanted != there or not path.exists():
        write_atomically(path, wanted.encode())


def _one_at_a_time(home: Path) -> FileLock:
    """Lets one process create the instance: cron starts the backups of several libraries in the same second."""
    return FileLock(home / ".opening.lock")


class BackupResult(NamedTuple):
    """The snapshot of a backup, what was loaded into Postgres, and what was registered in Iceberg tables."""

    snapshot: Snapshot
    staged: list[LoadResult]
    registered: list[Registration]


def run_backup(
    settings: Settings,
    tenant: str,
    resources: Sequence[str],
    display: ProgressDisplay,
    *,
    asked: Sequence[str] = (),
    with_files: bool = True,
) -> BackupResult:
    """Run the job `nightly_backup` for one tenant in this process. `asked` are the resources that a person named."""
    if settings.tenant(tenant).api == "v2":
        settings.check_sign_in(tenant)  # a missing variable is reported before anything starts
        personal_keys(settings).to_write()
    if settings.stages:
        settings.postgres()
    if settings.iceberg is not None:
        settings.iceberg.secrets(settings.path, os.environ)
    loads: list[LoadResult] = []
    registered: list[Sequence[Registration]] = []
    with _quiet_dagster():
        with importing():
            import dagster as dg  # noqa: PLC0415  see the module's docstring

            from assets_defs.backup import SNAPSHOT  # noqa: PLC0415
            from assets_defs.schedules import nightly_backup_of  # noqa: PLC0415

        with (
            Backup(
                settings,
                on_progress=display.progress,
                on_wait=display.waiting,
                on_loaded=loads.extend,
                on_registered=registered.append,
                before_step=_end_if_stopped,
                asked=asked,
                with_files=with_files,
            ) as backup,
            _instance(settings) as instance,
        ):
            job = nightly_backup_of(settings, backup, tenant, resources)
            before, run = {snapshot.name for snapshot in backup.data.snapshots(tenant)}, str(uuid4())
            named = {REQUESTED_RESOURCES: " ".join(asked)} if asked else {}
            try:
                job.execute_in_process(
                    run_config=_QUIET,
                    instance=instance,
                    asset_selection=[dg.AssetKey([tenant, SNAPSHOT])],
                    tags={TENANT: tenant, STARTED_BY: COMMAND_LINE, **process_tags(settings, run), **named},
                    run_id=run,
                )
            except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
                if before.issuperset(snapshot.name for snapshot in backup.data.snapshots(tenant)):
                    raise
            snapshot = backup.data.snapshots(tenant)[-1]  # also if the stop came after publication
            if snapshot.manifest.complete:
                _check_staged(settings, snapshot, loaded=bool(loads), registered=bool(registered))
            return BackupResult(snapshot, loads, [one for some in registered for one in some])


def _check_staged(settings: Settings, snapshot: Snapshot, *, loaded: bool, registered: bool) -> None:
    """Raises if a stop came between publication and staging."""
    missing = ["in Postgres"] if settings.stages and not loaded else []
    missing += ["in the Iceberg tables"] if settings.iceberg is not None and not registered else []
    if missing:
        raise StorageError(
            f"Snapshot {snapshot.name} is complete and published, but not {' or '.join(missing)}, because it was stopped. Run "
            f"`bookferry stage {snapshot.manifest.tenant}`."
        )


def run_step(settings: Settings, migration: Migration, job: str, key: Sequence[str], config: Mapping[str, Any]) -> None:
    """Run one step of a migration, a job of one asset, in this process. `migration` has the result."""
    settings.check_sign_in(key[0])
    with _quiet_dagster():
        with importing():
            import dagster as dg  # noqa: PLC0415  see the module's docstring

            from assets_defs.definitions import build_definitions  # noqa: PLC0415

        with _instance(settings) as instance:
            definitions, run = build_definitions(settings, migration=migration), str(uuid4())
            definitions.resolve_job_def(job).execute_in_process(
                run_config={**_QUIET, "ops": {"__".join(key): {"config": dict(config)}}},
                instance=instance,
                asset_selection=[dg.AssetKey(key)],
                tags={TENANT: key[0], **process_tags(settings, run)},
                run_id=run,
            )


def _end_if_stopped() -> None:
    """Raise `StopRequest` if a stop signal has arrived: Dagster may have lost it."""
    if received_signal() is not None:
        raise StopRequest


@contextmanager
def _instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    home = dagster_home(settings)
    os.environ["DAGSTER_HOME"] = str(home)
    with ExitStack() as opened:
        with importing():
            if _is_sqlite(home):
                import_on_demand(OTHER_DATABASES)
            import dagster as dg  # noqa: PLC0415  see the module's docstring
            from dagster._core.instance.ref import InstanceRef  # noqa: PLC0415  the only way to open an instance with overrides

            from resources.run_history import history_kept_open, history_opened  # noqa: PLC0415

            opened.enter_context(_history_errors(home))
            opened.enter_context(history_opened(home))
            with storage_errors(home), _one_at_a_time(home):  # Dagster creates its tables without a lock
                instance = dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=_TERMINAL))
        opened.enter_context(instance)
        opened.enter_context(history_kept_open(instance))
        yield instance
    history = home / "history"
    share_databases(history / "runs.db", history / "runs" / "index.db", home / "schedules" / "schedules.db")


def _is_sqlite(home: Path) -> bool:
    """Whether Dagster's history is in SQLite files: a person may name another storage in `dagster.yaml`."""
    return "storage" not in (home / "dagster.yaml").read_text(encoding="utf-8")


@contextmanager
def _history_errors(home: Path) -> Iterator[None]:
    """Reports a full disk: Dagster's history is SQLite, which may call that an I/O error."""
    from sqlalchemy.exc import OperationalError  # noqa: PLC0415  Dagster's, see the module's docstring

    try:
        yield
    except OperationalError as error:
        raise storage_error(OSError(errno.ENOSPC, "full") if is_full(home) else error.orig or error, home) from error


@contextmanager
def _quiet_dagster() -> Iterator[None]:
    """Suppresses warnings and log lines of Dagster and its libraries here. Its web interface shows them."""
    dagster, root, nowhere = logging.getLogger("dagster"), logging.getLogger(), logging.NullHandler()
    before = dagster.level
    dagster.setLevel(logging.CRITICAL)
    root.addHandler(nowhere)  # without a handler Python prints warnings to stderr
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        root.removeHandler(nowhere)
        dagster.setLevel(before)

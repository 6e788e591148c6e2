"""Runs Bookferry's Dagster jobs in this process, against the same instance as the web interface, and keeps Dagster's chatter inside.

Dagster and what comes with it is imported when a job runs, not before: it costs more than most commands take.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import socket
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from filelock import FileLock

from cli.progress import ProgressDisplay
from cli.stop_signals import STOP_SIGNALS, StopRequest
from pipelines.backup.flow import Backup
from pipelines.disk_space import is_full
from pipelines.errors import StorageError
from pipelines.migration.flow import Migration
from pipelines.report.build import Report
from pipelines.settings.settings import Settings
from pipelines.store.durable import storage_error, storage_errors
from pipelines.store.encryption import personal_keys
from pipelines.store.snapshots.captures import Capture, ResourceFacts, Unreadable
from pipelines.store.snapshots.snapshots import Snapshot

if TYPE_CHECKING:
    import dagster as dg

    from pipelines.store.postgres.loading import Staged

INSTANCE = """\
# Dagster's settings for this data folder, written once by Bookferry; change them as you like.
telemetry: {enabled: false}
nux: {enabled: false}
concurrency:
  runs: {max_concurrent_runs: 4}
  pools: {granularity: run, default_limit: 1}
run_monitoring: {enabled: true, free_slots_after_run_end_seconds: 60, cancel_timeout_seconds: 180}
run_retries: {enabled: false}
freshness: {enabled: true}
retention: {sensor: {purge_after_days: {skipped: 7, success: 30, failure: 90}}, schedule: {purge_after_days: {skipped: 7}}}
"""

_TERMINAL = {
    "compute_logs": {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}
}
"""A command's output is on its terminal. Dagster would copy it through four processes, whose end at Ctrl-C is a traceback each."""

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def dagster_home(settings: Settings) -> Path:
    """$DAGSTER_HOME if the person set one, else a folder in the data folder; made ready on first use."""
    home = Path(os.environ.get("DAGSTER_HOME") or settings.data / "dagster")
    with storage_errors(home):
        home.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(home):
            if not (home / "dagster.yaml").exists():
                (home / "dagster.yaml").write_text(INSTANCE, encoding="utf-8")
    return home


def _one_at_a_time(home: Path) -> FileLock:
    """What the first use makes is made by one process: cron starts several libraries' backups in the same second."""
    return FileLock(home / ".opening.lock")


class Made(NamedTuple):
    """What a backup made: its snapshot, and what of it was loaded into Postgres."""

    snapshot: Snapshot
    staged: list[Staged]


def run_backup(
    settings: Settings,
    tenant: str,
    resources: Sequence[str],
    display: ProgressDisplay,
    *,
    asked: Sequence[str] = (),
    with_files: bool = True,
) -> Made:
    """Run the job `nightly_backup` for one tenant, here and now, and return what it made. `asked`: resources wanted by name."""
    if settings.tenant(tenant).api == "v2":
        settings.check_sign_in(tenant)  # a missing variable is told before anything starts
        personal_keys(settings).to_write()
    if settings.stages:
        settings.postgres()
    with _quiet_dagster():
        import dagster as dg  # noqa: PLC0415  see the module's charter

        from assets_defs.backup import tenant_keys  # noqa: PLC0415
        from assets_defs.definitions import build_definitions  # noqa: PLC0415
        from assets_defs.notifications import COMMAND_LINE, STARTED_BY  # noqa: PLC0415
        from assets_defs.postgres import postgres_keys  # noqa: PLC0415
        from resources.library import ASKED  # noqa: PLC0415

        with (
            _kept_stops() as stopped,
            _StoppableLibrary(settings, display, stopped, asked=asked, with_files=with_files) as library,
            _instance(settings) as instance,
        ):
            job = build_definitions(settings, library, {tenant: resources}).resolve_job_def("nightly_backup")
            before = {snapshot.name for snapshot in library.data.snapshots(tenant)}
            try:
                job.execute_in_process(
                    run_config=_QUIET,
                    instance=instance,
                    asset_selection=[*tenant_keys(tenant, resources), *postgres_keys(settings, tenant)],
                    tags={
                        "bookferry/tenant": tenant,
                        STARTED_BY: COMMAND_LINE,
                        **({ASKED: " ".join(asked)} if asked else {}),
                    },
                )
            except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
                if before.issuperset(snapshot.name for snapshot in library.data.snapshots(tenant)):
                    raise
            snapshot = library.data.snapshots(tenant)[-1]  # also where a stop came too late to stop it
            if settings.stages and snapshot.manifest.complete and not library.staged:
                raise StorageError(
                    f"Snapshot {snapshot.name} is complete and published, but not in Postgres, because it was stopped. Run `bookferry "
                    f"stage {tenant}`."
                )
            return Made(snapshot, library.staged)


def run_step(settings: Settings, migration: Migration, job: str, key: Sequence[str], config: Mapping[str, Any]) -> None:
    """Run one step of a migration, a job of one asset, here and now; what it made is with `migration`."""
    settings.check_sign_in(key[0])
    with _quiet_dagster():
        from assets_defs.definitions import build_definitions  # noqa: PLC0415  see the module's charter

        with _kept_stops(), _instance(settings) as instance:
            definitions = build_definitions(settings, migration=migration)
            definitions.resolve_job_def(job).execute_in_process(
                run_config={**_QUIET, "ops": {"__".join(key): {"config": dict(config)}}},
                instance=instance,
                asset_selection=[_asset_key(key)],
                tags={"bookferry/tenant": key[0]},
            )


def _asset_key(path: Sequence[str]) -> dg.AssetKey:
    import dagster as dg  # noqa: PLC0415  see the module's charter

    return dg.AssetKey(list(path))


class _StoppableLibrary(Backup):
    """Dagster forgets a stop that arrives while it exchanges signal handlers around a step, so each step asks whether there was one."""

    def __init__(
        self,
        settings: Settings,
        display: ProgressDisplay,
        stopped: Callable[[], bool],
        *,
        asked: Sequence[str],
        with_files: bool,
    ) -> None:
        super().__init__(
            settings, on_progress=display.progress, on_wait=display.waiting, asked=asked, with_files=with_files
        )
        self._stopped = stopped

    def read_raw(
        self, tenant: str, run: str, resource: str, wanted: Sequence[str] = ()
    ) -> tuple[Capture, ResourceFacts | Unreadable]:
        self._end_if_stopped()
        return super().read_raw(tenant, run, resource, wanted)

    def stage(self, tenant: str, run: str, resource: str) -> Capture:
        self._end_if_stopped()
        return super().stage(tenant, run, resource)

    def fetch_files(self, tenant: str, run: str) -> Capture:
        self._end_if_stopped()
        return super().fetch_files(tenant, run)

    def publish(self, tenant: str, run: str) -> Snapshot:
        self._end_if_stopped()
        return super().publish(tenant, run)

    def report(self, tenant: str) -> Report | None:
        self._end_if_stopped()
        return super().report(tenant)

    def stage_into_postgres(self, tenant: str) -> list[Staged]:
        self._end_if_stopped()
        return super().stage_into_postgres(tenant)

    def _end_if_stopped(self) -> None:
        if self._stopped():
            raise StopRequest


@contextmanager
def _kept_stops() -> Iterator[Callable[[], bool]]:
    """Tells whether a signal arrived in this block, whoever's handler took it."""
    ours, python = socket.socketpair()
    with ours, python:
        ours.setblocking(False)
        python.setblocking(False)
        before = signal.set_wakeup_fd(python.fileno(), warn_on_full_buffer=False)

        def stopped() -> bool:
            with suppress(BlockingIOError):
                return not set(STOP_SIGNALS).isdisjoint(ours.recv(4096))
            return False

        try:
            yield stopped
        finally:
            signal.set_wakeup_fd(before)


@contextmanager
def _instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    import dagster as dg  # noqa: PLC0415  see the module's charter
    from dagster._core.instance.ref import InstanceRef  # noqa: PLC0415  the only way to open an instance with overrides

    home = dagster_home(settings)
    os.environ["DAGSTER_HOME"] = str(home)
    with _history_errors(home):
        with (
            storage_errors(home),
            _one_at_a_time(home),
        ):  # Dagster makes its tables without looking whether another does
            instance = dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=_TERMINAL))
        with instance:
            yield instance


@contextmanager
def _history_errors(home: Path) -> Iterator[None]:
    """Dagster's history is SQLite, which may call a full disk an I/O error."""
    from sqlalchemy.exc import OperationalError  # noqa: PLC0415  Dagster's, see the module's charter

    try:
        yield
    except OperationalError as error:
        raise storage_error(OSError(errno.ENOSPC, "full") if is_full(home) else error.orig or error, home) from error


@contextmanager
def _quiet_dagster() -> Iterator[None]:
    """Dagster's warnings and log lines, and its libraries', are for its own interface, where they are all kept."""
    dagster, root, nowhere = logging.getLogger("dagster"), logging.getLogger(), logging.NullHandler()
    before = dagster.level
    dagster.setLevel(logging.CRITICAL)
    root.addHandler(nowhere)  # where no handler is, Python prints warnings to stderr
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        root.removeHandler(nowhere)
        dagster.setLevel(before)

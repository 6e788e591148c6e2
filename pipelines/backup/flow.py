"""One Bookferry at work: settings, data folder, leases and progress, behind the few steps that jobs are made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from pipelines.backup import files, read, staging
from pipelines.errors import BookferryError, ConfigurationError, StorageError
from pipelines.inventory import RESOURCES, default_resources, resource_problem
from pipelines.records.identifiers.configured import kinds_of
from pipelines.report.build import Report, make_report
from pipelines.service.client import LibraryClient, Waiting, open_client
from pipelines.service.clock import Clock
from pipelines.settings.loading import load_settings
from pipelines.settings.settings import Settings
from pipelines.settings.tenant import TenantSettings
from pipelines.store.catalogue import rebuild_catalogue
from pipelines.store.encryption import personal_keys
from pipelines.store.snapshots.captures import Capture, ResourceFacts, Unreadable
from pipelines.store.snapshots.leases import Leases
from pipelines.store.snapshots.snapshots import Snapshot, newest_complete
from pipelines.store.snapshots.unfinished import begin_capture, resume_capture
from pipelines.store.stores import open_data

if TYPE_CHECKING:
    from pipelines.store.postgres.loading import Staged

REPORTED = 100_000
"""Publications up to which a backup makes its report, too; of a larger library `bookferry report` makes it, in half a GiB at most."""

Progress = read.Progress | files.FileProgress
"""How far a listing or the fetching of files is."""


class Backup:
    """The steps of a backup on one data folder. `run` names the job run: steps with the same name work on the same capture.

    `asked` are resources that somebody wants by name, beside those that the settings of a tenant name: a snapshot without them is partial.
    Without `with_files`, the content of no file is fetched, whatever the settings of a tenant say. `clock` is for tests.
    A tenant's lease is taken by its first step and held until `close`, so that no second run reads or clears what this one works on.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        on_wait: Callable[[Waiting], None] = lambda _: None,
        asked: Collection[str] = (),
        with_files: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings
        self._kinds = kinds_of(settings.identifiers)
        self.data = open_data(settings, personal_keys(settings))
        self._on_progress = on_progress
        self._on_wait = on_wait
        self._asked = frozenset(asked)
        self._with_files = with_files
        self._clock = clock
        self._leases = Leases(self.data)
        self.staged: list[Staged] = []
        """What was loaded into Postgres."""

    @classmethod
    def open(cls, config: Path, asked: Collection[str] = ()) -> Self:
        """Read the configuration; nothing else happens yet."""
        return cls(load_settings(config), asked=asked)

    def read_raw(
        self, tenant: str, run: str, resource: str, wanted: Sequence[str] = ()
    ) -> tuple[Capture, ResourceFacts | Unreadable]:
        """List one resource of `tenant` into the capture of `run`, unless that was done by a run that this one goes on with.

        `wanted`: all that the run reads, which tells what it may go on with; `resource` alone, if nothing is said.
        """
        chosen = self.settings.tenant(tenant)
        self._leases.hold(tenant)
        with self._client(tenant) as client:
            capture = self._capture(tenant, run, wanted or (resource,))
            if (done := capture.facts.resources.get(resource)) is not None:
                return capture, done
            asked = resource in self._asked.union(chosen.resources or ())
            alone = chosen.api == "v2" and resource in read.INDISPENSABLE
            with self._fetching_files(capture, resource) as on_page:
                facts = read.read_raw(
                    capture,
                    client,
                    resource,
                    self._on_progress,
                    walks=chosen.walks,
                    asked=asked,
                    alone=alone,
                    on_page=on_page,
                    kinds=self._kinds,
                )
            return capture, facts

    def stage(self, tenant: str, run: str, resource: str) -> Capture:
        """Make the staged tables of one resource from what the same run has read."""
        self._leases.hold(tenant)
        capture = self.data.capture(tenant, run)
        if resource not in capture.facts.unreadable:
            staging.stage(capture, resource, self._kinds)
        return capture

    def fetch_files(self, tenant: str, run: str) -> Capture:
        """Have the content of every file that the publications of the same run name, unless nobody wants it."""
        self._leases.hold(tenant)
        capture = self.data.capture(tenant, run)
        if "publications" in capture.facts.unreadable:
            return capture
        if self._fetches(tenant):
            files.fetch_files(capture, self.data, partial(self._client, tenant), self._on_progress, self._clock)
        else:
            files.leave_files(capture)
        return capture

    def publish(self, tenant: str, run: str) -> Snapshot:
        """Publish the capture of `run` and show it in the catalogue."""
        self._leases.hold(tenant)
        snapshot = self.data.publish(self.data.capture(tenant, run), _now())
        try:
            rebuild_catalogue(self.data)
        except StorageError as error:
            raise StorageError(
                f"Snapshot {snapshot.name} is whole and published, but {self.data.catalogue_path.name} does not show it: {error}"
            ) from error
        return snapshot

    def report(self, tenant: str) -> Report | None:
        """Make the report of the newest snapshot of `tenant` that holds publications, be it complete or not.

        None is made where there are more than `REPORTED` of them: it would take more memory than the whole backup.
        """
        self._leases.hold(tenant)
        found = [snapshot for snapshot in self.data.snapshots(tenant) if snapshot.holds_publications]
        if not found:
            raise ConfigurationError(
                f"'{tenant}' has no snapshot with publications to report on. Run `bookferry backup {tenant}` first."
            )
        if found[-1].counts["publications"] > REPORTED:
            return None
        return make_report(self.data, found[-1], now=_now())

    def stage_into_postgres(self, tenant: str) -> list[Staged]:
        """Load what is new of `tenant` into the database that the settings name; its snapshots stay as good as they are if that fails."""
        from pipelines.backup import database  # noqa: PLC0415  most have none

        self._leases.hold(tenant)
        try:
            self.staged = database.stage_new(database.open_database(self.settings), self.data, tenant)
        except BookferryError as error:
            newest = newest_complete(self.data.snapshots(tenant))
            name = newest.name if newest else tenant
            raise StorageError(f"Snapshot {name} is complete and published, but not in Postgres: {error}") from error
        return self.staged

    def close(self) -> None:
        """Give the leases back."""
        self._leases.give_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _client(self, tenant: str) -> AbstractContextManager[LibraryClient]:
        return open_client(self.settings, tenant, state=self.data.state_path, on_wait=self._on_wait, clock=self._clock)

    def _fetches(self, tenant: str) -> bool:
        return self._with_files and self.settings.tenant(tenant).files

    @contextmanager
    def _fetching_files(self, capture: Capture, resource: str) -> Iterator[Callable[[Sequence[msgspec.Raw]], None]]:
        """What takes the pages of a listing, to fetch the files that they name while their addresses last."""
        tenant = capture.facts.tenant
        if resource != "publications" or not self._fetches(tenant):
            yield lambda _: None
            return
        with files.beside_listing(capture, self.data, partial(self._client, tenant), self._clock) as on_page:
            yield on_page

    def _capture(self, tenant: str, run: str, wanted: Sequence[str]) -> Capture:
        """What `run` has captured so far; else what an earlier run began and did not finish; else a new one."""
        with suppress(StorageError):
            return self.data.capture(tenant, run)
        chosen, now = self.settings.tenant(tenant), _now()
        library = {"base_url": chosen.base_url, "api": chosen.api}
        oldest = now - timedelta(hours=chosen.resume_hours)
        resumed = resume_capture(self.data, tenant, run, wanted, **library, begun_after=oldest)
        return resumed or begin_capture(self.data, tenant, run, wanted, **library, now=now)


def tenant_resources(tenant: TenantSettings) -> tuple[str, ...]:
    """What a nightly backup of a tenant reads: what its settings name, else what its version of the API lists."""
    named = tenant.resources
    return default_resources(tenant.api) if named is None else tuple(one for one in RESOURCES if one in named)


def checked_resources(tenant: TenantSettings, wanted: Sequence[str]) -> list[str]:
    """The resources a person asked for by name, those of every night where none is named; in the order in which they are read."""
    if mistake := resource_problem(tenant.api, wanted):
        raise ConfigurationError(f"--resources: {mistake}.")
    return [one for one in RESOURCES if one in (wanted or tenant_resources(tenant))]


def _now() -> datetime:
    return datetime.now(UTC)

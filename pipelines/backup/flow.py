"""The steps of a backup with their settings, data folder, leases and progress, as jobs and commands run them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from pipelines.backup import files, read, staging
from pipelines.backup.fetching import FileFetcher
from pipelines.backup.nested import read_nested
from pipelines.errors import BookferryError, ConfigurationError, StorageError
from pipelines.inventory import RESOURCES, default_resources, nested_of, nested_resource
from pipelines.records.identifiers.configured import kinds_of
from pipelines.records.tables.registry import STAGED
from pipelines.report.build import make_report
from pipelines.report.pages import Report
from pipelines.service.client import LibraryClient, Waiting, open_client
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.probe import Probe
from pipelines.service.self_description import ask_description
from pipelines.settings.config_file import load_settings
from pipelines.settings.settings import Settings
from pipelines.settings.tenant import TenantSettings
from pipelines.store.catalogue import rebuild_catalogue
from pipelines.store.snapshots.capture_copies import CaptureCopy, copies_key
from pipelines.store.snapshots.captures import Capture
from pipelines.store.snapshots.facts import ResourceFacts, Unreadable
from pipelines.store.snapshots.leases import Leases
from pipelines.store.snapshots.manifest import columns_before
from pipelines.store.snapshots.publishing import publish
from pipelines.store.snapshots.snapshots import Snapshot, newest_complete
from pipelines.store.snapshots.unfinished import continue_capture, open_capture
from pipelines.store.stores import open_data

if TYPE_CHECKING:
    from pipelines.store.iceberg.tables import Registration
    from pipelines.store.postgres.loading import LoadResult


_Loaded = TypeVar("_Loaded")


class Backup:
    """The steps of a backup on one data folder. `run` names the run: steps of the same run work on the same capture.

    `asked`: resources that were asked for by name, besides those of the tenant's settings; a snapshot without them is partial. Without
    `with_files` no file is fetched, whatever the settings say. `clock` is for tests. The first step acquires the tenant's lease and
    `close` releases it, so that no second run reads the library or clears the capture.
    """

    making: str = ""
    """The table that `make` is at, or `files`; empty once all are made. After an error, it is what could not be made."""

    def __init__(
        self,
        settings: Settings,
        *,
        on_progress: Callable[[read.Progress], None] = lambda _: None,
        on_wait: Callable[[Waiting], None] = lambda _: None,
        asked: Collection[str] = (),
        with_files: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings
        self._kinds = kinds_of(settings.identifiers)
        self.data = open_data(settings)
        self._on_progress = on_progress
        self._on_wait = on_wait
        self._asked = frozenset(asked)
        self._with_files = with_files
        self._clock = clock
        self._leases = Leases(self.data, clock or SystemClock())
        self._copies: dict[str, CaptureCopy] = {}
        """Tenant → the copy of its capture, where several machines work on the data."""

    @classmethod
    def open(cls, config: Path) -> Self:
        """Read the configuration. Nothing else happens yet."""
        return cls(load_settings(config))

    def resources(self, tenant: str) -> tuple[str, ...]:
        """The resources of this backup: those that were asked for by name, else those of every night."""
        if self._asked:
            return tuple(resource for resource in RESOURCES if resource in self._asked)
        return nightly_resources(self.settings.tenant(tenant))

    def make(
        self, tenant: str, run: str, on_table: Callable[[str], None] = lambda _: None, *, instead_of: str = ""
    ) -> Snapshot:
        """Read, stage, prove and publish: one whole snapshot. `on_table` receives the name of each table when it is made.

        `instead_of`: a run that was lost, which this one repeats. If it had published its snapshot by then, that is returned.
        """
        if instead_of and (published := self._published_by(tenant, instead_of)) is not None:
            return published
        resources = self.resources(tenant)
        for resource in resources:
            for name, step in self._steps(tenant, run, resource, resources):
                self.making = name
                step()
                on_table(name)
        self.making = ""
        self.learn(tenant, run)
        return self.publish(tenant, run)

    def _published_by(self, tenant: str, run: str) -> Snapshot | None:
        """The snapshot that a run has published, in the catalogue, too. Only under the lease is it known to do so no more."""
        self._leases.acquire(tenant)
        for snapshot in self.data.snapshots(tenant):
            if snapshot.manifest.run == run:
                rebuild_catalogue(self.data)
                return snapshot
        return None

    def _steps(
        self, tenant: str, run: str, resource: str, resources: Sequence[str]
    ) -> Iterator[tuple[str, Callable[[], object]]]:
        """The steps of one resource, each with the first table that it makes."""
        yield f"raw_{resource}", partial(self.read_raw, tenant, run, resource, resources)
        yield STAGED[resource][0].name, partial(self.stage, tenant, run, resource)
        if resource == "publications":
            yield "files", partial(self.fetch_files, tenant, run)

    def read_raw(
        self, tenant: str, run: str, resource: str, resources: Sequence[str] = ()
    ) -> tuple[Capture, ResourceFacts | Unreadable]:
        """List one resource of `tenant` into the capture of `run`, unless an interrupted run has done so already.

        `resources`: all resources of the run, which decide what may be continued; only `resource` by default.
        """
        chosen = self.settings.tenant(tenant)
        self._leases.acquire(tenant)
        with self._client(tenant) as client:
            capture = self._capture(tenant, run, resources or (resource,))
            if capture.is_begun:
                self._keep_copy(capture)
            if (done := capture.facts.resources.get(resource)) is not None:
                self._read_nested(capture, client, resource)
                return capture, done
            asked = resource in self._asked.union(chosen.resources or ())
            alone = chosen.api == "v2" and resource in read.INDISPENSABLE
            fetches = resource == "publications" and self._fetches(tenant)
            with (
                FileFetcher(capture, self.data, partial(self._client, tenant), self._clock)
                if fetches
                else nullcontext() as fetcher
            ):
                facts = read.read_raw(
                    capture,
                    client,
                    resource,
                    self._on_progress,
                    asked=asked,
                    alone=alone,
                    before_page=partial(self._begin, capture),
                    on_page=fetcher.on_page if fetcher is not None else None,
                    kinds=self._kinds,
                )
            self._read_nested(capture, client, resource)
            capture.announce(client.announced)
            return capture, facts

    def _read_nested(self, capture: Capture, client: LibraryClient, resource: str) -> None:
        """Read the lists that the settings name of each record of a resource, unless an interrupted run has done so already."""
        facts = capture.facts
        for name in self.settings.tenant(facts.tenant).nested if resource in facts.resources else ():
            if name.partition("/")[0] == resource and nested_resource(name) not in facts.resources:
                read_nested(capture, client, name, self._on_progress)

    def stage(self, tenant: str, run: str, resource: str) -> Capture:
        """Make the staged tables of a resource that the same run has read."""
        self._leases.acquire(tenant)
        capture = open_capture(self.data, tenant, run)
        if resource not in capture.facts.unreadable:
            described = resource == staging.DESCRIBED  # its columns need no earlier manifest
            earlier = [] if described else columns_before(self.data.manifests_before(capture.facts), resource)
            staging.stage(capture, resource, self._kinds, earlier=earlier)
        for nested in nested_of([resource], capture.facts.resources):
            staging.stage_entries(capture, nested)
        return capture

    def fetch_files(self, tenant: str, run: str) -> Capture:
        """Fetch the files of the publications that the same run has read, unless files are turned off."""
        self._leases.acquire(tenant)
        capture = open_capture(self.data, tenant, run)
        if "publications" in capture.facts.unreadable:
            return capture
        if self._fetches(tenant):
            files.fetch_files(capture, self.data, partial(self._client, tenant), self._on_progress, self._clock)
        else:
            files.skip_files(capture)
        return capture

    def publish(self, tenant: str, run: str) -> Snapshot:
        """Publish the capture of `run`, and rebuild the catalogue."""
        self._leases.acquire(tenant)
        if (copied := self._copies.get(tenant)) is not None:
            copied.stop()
        snapshot = publish(self.data, open_capture(self.data, tenant, run), self._now())
        if copied is not None:
            del self._copies[tenant]
            copied.remove()
        try:
            rebuild_catalogue(self.data)
        except StorageError as error:
            raise StorageError(
                f"Snapshot {snapshot.name} is whole and published, but {self.data.catalogue_path.name} does not show it: {error}"
            ) from error
        return snapshot

    def follow_ups(self, tenant: str) -> dict[str, Callable[[], Report | list[LoadResult] | list[Registration]]]:
        """What is made of a published snapshot, in this order: `report`, and what the settings name of `postgres` and `iceberg`."""
        steps: dict[str, Callable[[], Report | list[LoadResult] | list[Registration]]] = {}
        if "publications" in self.resources(tenant):
            steps["report"] = partial(self.report, tenant)
        if self.settings.stages:
            steps["postgres"] = partial(self._load, tenant, "in Postgres", self._stage_into_postgres)
        if self.settings.iceberg is not None:
            steps["iceberg"] = partial(self._load, tenant, "in the Iceberg tables", self._register_in_iceberg)
        return steps

    def report(self, tenant: str) -> Report:
        """Make the report of the newest snapshot of `tenant` with publications, complete or partial."""
        self._leases.acquire(tenant)
        snapshots = [snapshot for snapshot in self.data.snapshots(tenant) if snapshot.holds_publications]
        if not snapshots:
            raise ConfigurationError(
                f"'{tenant}' has no snapshot with publications to report on. Run `bookferry backup {tenant}` first."
            )
        return make_report(
            self.data, snapshots[-1], now=self._now(), record_url=self.settings.tenant(tenant).record_url
        )

    def _stage_into_postgres(self, tenant: str) -> list[LoadResult]:
        from pipelines.backup import database  # noqa: PLC0415  most have none

        return database.stage_new(database.open_database(self.settings), self.data, tenant)

    def _register_in_iceberg(self, tenant: str) -> list[Registration]:
        from pipelines.backup import iceberg  # noqa: PLC0415  most have none

        return iceberg.register_new(iceberg.open_tables(self.settings, self.data), self.data, tenant)

    def _load(self, tenant: str, where: str, load: Callable[[str], _Loaded]) -> _Loaded:
        """Load the new snapshots of `tenant` somewhere else. Says in errors that they are published all the same."""
        self._leases.acquire(tenant)
        try:
            return load(tenant)
        except BookferryError as error:
            newest = newest_complete(self.data.snapshots(tenant))
            name = newest.name if newest else tenant
            raise StorageError(f"Snapshot {name} is complete and published, but not {where}: {error}") from error

    def close(self) -> None:
        """Copy what is unfinished, where another machine may continue it, and release the leases."""
        while self._copies:
            self._copies.popitem()[1].close()
        self._leases.release()
        self.data.state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, capture: Capture) -> None:
        """Begin the snapshot with its first page: until then the run may have waited, for the budget or for the service."""
        if not capture.is_begun:
            now = self._now()
            capture.begin(self.data.free_snapshot_id(capture.facts.tenant, now), now)
        self._keep_copy(capture)

    def _keep_copy(self, capture: Capture) -> None:
        """Copy a capture from now on, so that another machine can continue it."""
        tenant = capture.facts.tenant
        if self.data.is_shared and tenant not in self._copies:
            capture.facts.fence = self.data.fence(tenant)
            capture.save()
            self._copies[tenant] = CaptureCopy(
                self.data.objects,
                capture.path,
                copies_key(tenant, capture.facts.snapshot),
                fence=partial(self.data.fence, tenant),
            )

    def _now(self) -> datetime:
        return self._clock.now() if self._clock is not None else datetime.now(UTC)

    def _client(self, tenant: str) -> AbstractContextManager[LibraryClient]:
        return open_client(self.settings, tenant, state=self.data.state, on_wait=self._on_wait, clock=self._clock)

    def _fetches(self, tenant: str) -> bool:
        return self._with_files and self.settings.tenant(tenant).files

    def learn(self, tenant: str, run: str) -> None:
        """Ask the service for its own description.

        Whatever comes back, the backup goes on. The requests do not count among those of the snapshot's records.
        """
        self._leases.acquire(tenant)
        capture = open_capture(self.data, tenant, run)
        facts = capture.facts
        if facts.description is not None or not facts.resources:
            return
        with suppress(BookferryError), self._client(facts.tenant) as client:
            probe = Probe(client, self._clock or SystemClock())
            facts.description = ask_description(probe, facts.api)
            facts.description.requests = client.requests
            capture.save()

    def _capture(self, tenant: str, run: str, resources: Sequence[str]) -> Capture:
        """Returns the capture of `run`, else the unfinished one of an earlier run, else a new one."""
        with suppress(StorageError):  # none of this run yet, or a damaged one, which is begun anew
            return open_capture(self.data, tenant, run)
        chosen = self.settings.tenant(tenant)
        library = {"base_url": chosen.base_url, "api": chosen.api}
        return continue_capture(self.data, tenant, run, resources, **library, now=self._now())


def nightly_resources(tenant: TenantSettings) -> tuple[str, ...]:
    """The resources of a nightly backup: those of the tenant's settings, else those that its version of the API documents."""
    named = tenant.resources or default_resources(tenant.api)
    return tuple(resource for resource in RESOURCES if resource in named)

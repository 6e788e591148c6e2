"""What every step of a migration works with: the data folder, the lease of the target, its client, and the journal of writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any

from pipelines.backup.read import Progress
from pipelines.errors import BookferryError, ConfigurationError
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import Plan
from pipelines.migration.model.plan_folders import find_plan
from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.model.resource_types import PUBLICATIONS, ResourceType
from pipelines.migration.model.shared_plans import share_plans
from pipelines.migration.model.step import Step
from pipelines.migration.model.target_reading import RecordListing, read_resource
from pipelines.records.identifiers.configured import kinds_of
from pipelines.service.client import READ_SECONDS, LibraryClient, Waiting, open_client
from pipelines.service.clock import Clock, SystemClock
from pipelines.settings.addresses import library_key
from pipelines.settings.settings import Settings
from pipelines.settings.write_requests import RequestForm
from pipelines.store.durable import temporary_folder
from pipelines.store.snapshots.leases import Leases
from pipelines.store.snapshots.snapshots import DataFolder, blob_key
from pipelines.store.snapshots.unfinished import continue_capture
from pipelines.store.stores import open_data


class MigrationSession:
    """Access to both ends of migrations on one data folder. It holds the leases of targets until it is closed.

    The lease keeps two migrations from writing into one library, and a migration from writing into one that is being backed up.
    `source_data`: where the snapshots and file contents are, if that is another data folder. `clock` and `read_seconds`, the read timeout,
    are for tests.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        on_progress: Callable[[Progress], None] = lambda _: None,
        on_wait: Callable[[Waiting], None] = lambda _: None,
        clock: Clock | None = None,
        source_data: DataFolder | None = None,
        read_seconds: float = READ_SECONDS,
    ) -> None:
        self.settings = settings
        self.data = open_data(settings)
        self.source_data = source_data or self.data
        self.kinds = kinds_of(settings.identifiers)
        self.clock = clock or SystemClock()
        self._on_progress = on_progress
        self._on_wait = on_wait
        self._given_clock = clock
        self._read_seconds = read_seconds
        self._leases = Leases(self.data, self.clock)

    def types_of(self, plan: Plan) -> dict[str, ResourceType]:
        """Resource → how a plan moves its records. What the target has in a field is read whatever it is."""
        types = {**plan.types, PUBLICATIONS: publication_type(self.kinds, learned=plan.types.get(PUBLICATIONS))}
        return {resource: resource_type.of_target for resource, resource_type in types.items()}

    def hold(self, target: str) -> None:
        """Take the lease of a target."""
        self._leases.acquire(target)

    def client(self, tenant: str) -> AbstractContextManager[LibraryClient]:
        """Open a client of a library."""
        return open_client(
            self.settings,
            tenant,
            state=self.data.state,
            on_wait=self._on_wait,
            clock=self._given_clock,
            read_seconds=self._read_seconds,
        )

    @contextmanager
    def journal(self, source_url: str, target_url: str) -> Iterator[Journal]:
        """Open the journal of writes from one library to another."""
        self.data.prepare()
        journal = Journal(self.data.state, source_url, target_url, self.clock)
        try:
            yield journal
        finally:
            journal.close()

    def journal_of(self, plan: Plan) -> AbstractContextManager[Journal]:
        """Open the journal of a plan's two libraries."""
        return self.journal(plan.facts.source.base_url, plan.facts.target.base_url)

    @contextmanager
    def at_target(self, plan: Plan, **options: Any) -> Iterator[Step]:
        """Open the journal and the target of an unaltered plan, under the lease of the target. `options`: of the step."""
        target = plan.facts.target.tenant
        check_same_target(self.settings, plan)
        plan.check_unaltered()
        self.hold(target)
        forms = self.settings.tenant(target).requests
        types = {name: learned.sent_by(forms.get(name, RequestForm())) for name, learned in self.types_of(plan).items()}
        with self.journal_of(plan) as journal, self.client(target) as client:
            yield Step(
                plan,
                journal,
                client,
                types,
                read_listing=partial(self._listed, plan, client),
                open_blob=self.open_blob,
                **options,
            )

    @contextmanager
    def _listed(self, plan: Plan, client: LibraryClient, resource: str) -> Iterator[RecordListing]:
        run = f"listing-{self.clock.now():%Y%m%dT%H%M%S}"
        with temporary_folder(plan.folder / ".listing") as folder:
            yield self.read(plan.facts.target.tenant, client, folder, run, resource)

    def read(self, target: str, client: LibraryClient, folder: Path, run: str, resource: str) -> RecordListing:
        """Read a resource of a target into a folder, once and proved like a backup; under the lease of the target.

        An interrupted reading is resumed by one with the same `run`. Raises `StopError` unless the reading is proved complete.
        """
        tenant, name, resources = self.settings.tenant(target), f"{run}-{resource}", (resource, f"to {run}")
        library = {"base_url": tenant.base_url, "api": tenant.api}
        capture = continue_capture(self.data, target, name, resources, **library, now=self.clock.now())
        lists = [name for name in tenant.nested if name.partition("/")[0] == resource]
        progress = self._on_progress
        return read_resource(capture, client, folder, resource, lists, kinds=self.kinds, on_progress=progress)

    def named_plan(self, name: str, target: str) -> Plan:
        """The plan that a person names, if it is for this target, under the target's lease."""
        self.hold(target)  # first, because a run without its lease counts as dead (assets_defs/dead_runs.py)
        plan = find_plan(self.data, name)
        if plan.facts.target.tenant != target:
            raise ConfigurationError(f"Plan {plan.name} is for '{plan.facts.target.tenant}', not for '{target}'.")
        return plan

    def open_blob(self, sha256: str) -> BufferedReader:
        """Open the content of a file."""
        return self.source_data.objects.open(blob_key(sha256))

    def close(self, error: BaseException | None = None) -> None:
        """Share what was made of plans with other machines, and give the leases back.

        `error`: what ended the work. If sharing fails as well, it gets a note of that; otherwise the failure is raised.
        """
        try:
            share_plans(self.data, self._leases.check)
        except BookferryError as failure:
            if error is None:
                raise
            error.add_note(f"What was made of plans here was not shared with other machines: {failure}")
        finally:
            self._leases.release()
            self.data.state.close()


def check_same_target(settings: Settings, plan: Plan) -> None:
    """Raise `ConfigurationError` where the tenant is now another library than the one that the plan was made for."""
    target = plan.facts.target
    tenant = settings.tenant(target.tenant)
    if library_key(tenant.base_url) != library_key(target.base_url):
        raise ConfigurationError(
            f"Plan {plan.name} was made for '{target.tenant}' at {target.base_url}, which is now at {tenant.base_url}. Make a new "
            "plan."
        )

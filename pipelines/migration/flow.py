"""A library on its way into another: plan, apply, verify, undo, one step each, on one data folder.

Beside `library.Library`, which backs up: it reads the source's snapshots and never the source. What it holds is the lease of the target, so
that no two migrations write into one library, and none writes into one that is being backed up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple, Self

from pipelines.backup import read
from pipelines.errors import ConfigurationError
from pipelines.migration.apply.other_resources import check_others_fresh, read_target_lists
from pipelines.migration.apply.run import (
    EVERYTHING,
    LIMITS,
    ApplyProgress,
    ApplyResult,
    ApplyRun,
    Limits,
    Selection,
    check_limits,
    reconcile_pending_records,
)
from pipelines.migration.apply.staleness import check_fresh
from pipelines.migration.apply.writer import Writer
from pipelines.migration.model.comparable import ComparableLibrary, normalise
from pipelines.migration.model.journal import UNDONE, Journal
from pipelines.migration.model.plan import APPROVAL_LENGTH, CONFLICT, CONFLICTS, HTML, PEOPLE, ROWS, Plan
from pipelines.migration.model.plan_folders import find_plan, seal_plan, unfinished_plan, workdir
from pipelines.migration.model.plan_table import PLAN
from pipelines.migration.model.resource_types import PUBLICATIONS, referenced_resources
from pipelines.migration.model.target_reading import files_of, local_table
from pipelines.migration.plan.build import (
    after_writes,
    check_movable,
    check_still_theirs,
    check_target,
    clear_unfinished,
    decisions_so_far,
    facts_of,
    free_name,
    holds_all,
    same_library,
)
from pipelines.migration.plan.comparison import normalise_both
from pipelines.migration.plan.conflicts import write_conflicts
from pipelines.migration.plan.other_resources import PlanRows, plan_all
from pipelines.migration.plan.publications import plan_publications
from pipelines.migration.plan.scope import TargetReader, chosen_others, listed_in, written_others
from pipelines.migration.report.pages import make_pages
from pipelines.migration.report.status import PlanStatus, RecordView, status_of, three_way
from pipelines.migration.undo.run import UndoResult, dry_run, keep, undo
from pipelines.migration.verify.contents import Contents
from pipelines.migration.verify.evidence import check_free, write_evidence
from pipelines.migration.verify.other_resources import compare_other_resources
from pipelines.migration.verify.run import MigrationVerification, verify
from pipelines.records.forms import form_of
from pipelines.records.identifiers.configured import kinds_of
from pipelines.records.identifiers.verdicts import GOOD, INVALID
from pipelines.records.matching import comparable
from pipelines.records.tables import PERSONAL
from pipelines.service.client import LibraryClient, Waiting, open_client
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.files.upload import Uploads
from pipelines.settings.settings import Settings
from pipelines.store.encryption import personal_keys
from pipelines.store.parquet import table_writer
from pipelines.store.snapshots.leases import Leases
from pipelines.store.snapshots.snapshots import MANIFEST, DataFolder, Snapshot, blob_key, snapshot_key
from pipelines.store.stores import open_data


class Migration:
    """The steps of a migration on one data folder. To be closed: it holds the target's lease.

    `clock` is for tests. `source_data`: where the snapshots and contents are that are moved, if that is another data folder.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        on_progress: Callable[[read.Progress | ApplyProgress], None] = lambda _: None,
        on_wait: Callable[[Waiting], None] = lambda _: None,
        clock: Clock | None = None,
        source_data: DataFolder | None = None,
    ) -> None:
        self.settings = settings
        self.data = open_data(settings, personal_keys(settings))
        self._source_data = source_data or self.data
        self._kinds = kinds_of(settings.identifiers)
        self._on_progress = on_progress
        self._on_wait = on_wait
        self._given_clock = clock
        self._clock = clock or SystemClock()
        self._reader = TargetReader(self.data, settings, self._kinds, self._clock, on_progress)
        self._leases = Leases(self.data)
        self.planned: Plan | None = None
        """The plan that was made last."""
        self.result: Result | None = None
        """What the last apply did, also where it was ended."""
        self.proved: MigrationVerification | None = None
        """What the last verification found."""

    def plan_from(self, source: str, target: str, *, overwrite: bool = False, resources: Iterable[str] = ()) -> Plan:
        """Make a plan from the snapshot that a person names, or from the newest one of a tenant that can be moved."""
        return self.plan(self.find_source(source), target, overwrite=overwrite, resources=resources)

    def find_source(self, name: str) -> Snapshot:
        """The snapshot that a person names; of a tenant the newest that holds all publications, though it may lack files."""
        movable = [one for one in self.data.snapshots(name) if holds_all(one)] if name in self.settings.tenants else []
        return movable[-1] if movable else self.data.find_snapshot(name)

    def approved(self, name: str, approval: str, target: str) -> Plan:
        """The plan that a person names and approves, with the beginning of its seal."""
        plan = self._named(name, target)
        if len(approval) < APPROVAL_LENGTH or not plan.facts.seal.startswith(approval):
            raise ConfigurationError(
                f"Plan {plan.name} is not approved: look at {plan.path(HTML)}, and if you want that, give {plan.facts.approval} as "
                "its approval."
            )
        return plan

    def plan(self, source: Snapshot, target: str, *, overwrite: bool = False, resources: Iterable[str] = ()) -> Plan:
        """Make a plan that moves a snapshot into the library of a tenant; writes nothing there.

        `overwrite`: where both hold something else, the source's value counts. `resources`: what else is moved than publications.

        Raises `ConfigurationError` for a target that is no version 3, `StopError` where either side cannot be known whole.
        """
        chosen = self.settings.tenant(target)
        check_target(self.settings, target)
        check_movable(source)
        others = chosen_others(source, resources)
        self._leases.hold(target)
        clear_unfinished(self.data, target)
        now = self._clock.now()
        name, personal = free_name(self.data, source, target, now), not PERSONAL.isdisjoint(others)
        with unfinished_plan(self.data, name, personal=personal) as folder:
            with self._client(target) as client:
                raw = self._reader.read(target, client, folder, "plan")
                theirs = self._reader.others(target, client, folder, "plan", (*others, *referenced_resources(others)))
            listed = {one: (listed_in(self._source_data, source, one, folder), now_) for one, now_ in theirs.items()}
            sent = GOOD | {INVALID} if chosen.send_invalid_identifiers else GOOD
            there = local_table(self._source_data, source, f"raw_{PUBLICATIONS}", folder)
            sides = normalise_both(there, raw, folder, self._kinds.described, sorted(sent))
            people = folder / PEOPLE, self.data.keys.to_write()
            rows = partial(plan_all, listed=listed, resources=others, people=people, overwrite=overwrite)
            self.planned = self._seal(source, target, folder, sides, rows, now=now, overwrite=overwrite)
            return self.planned

    def _seal(
        self,
        source: Snapshot,
        target: str,
        folder: Path,
        sides: tuple[ComparableLibrary, ComparableLibrary],
        plan_rows: PlanRows,
        *,
        now: datetime,
        overwrite: bool,
    ) -> Plan:
        chosen, manifest = self.settings.tenant(target), source.manifest
        same = same_library(manifest.base_url, chosen.base_url)
        with self.journal(manifest.base_url, chosen.base_url) as journal, table_writer(folder / ROWS, PLAN) as writer:
            decisions = decisions_so_far(self.data, journal, manifest.base_url, chosen.base_url)
            publications = partial(
                plan_publications,
                source=sides[0],
                target=sides[1],
                folder=folder,
                journal=journal,
                files=files_of(self._source_data, source, folder),
                decisions=decisions,
                same_library=same,
                overwrite=overwrite,
                together=chosen.files_with_record,
            )
            found = plan_rows(writer, publications, folder, journal=journal, decisions=decisions, same_library=same)
        for copied in folder.glob("*.parquet"):
            if copied.name not in (ROWS, PEOPLE):
                copied.unlink()
        key = self.data.keys.to_write()
        facts = facts_of(source, target, self.settings, folder, found=found, key=key, now=now)
        facts.same_library, facts.overwrite, facts.decisions = same, overwrite, len(decisions)
        plan = Plan(folder, facts, self.data.keys)
        decided = {(one.resource, one.source_id): one for one in decisions}
        write_conflicts(folder / CONFLICTS, plan.rows(CONFLICT), decided)
        make_pages(plan, now=now)
        return seal_plan(folder, facts, self.data.keys)

    def apply(
        self,
        plan: Plan,
        *,
        limits: Limits = LIMITS,
        selection: Selection = EVERYTHING,
    ) -> Result:
        """Write what a plan says, as far as it is not written (I8, I9). The result of all that could be done is kept beside the plan.

        Raises `StopError` for a plan that was altered or is stale, `SafetyLimitError` at a limit, and what ends a run.
        """
        facts = plan.facts
        with self._at_target(plan) as (journal, client), self._writer(plan, journal, client) as writer:

            def told(applied: ApplyResult) -> None:
                done = applied.created + applied.patched + applied.failed
                left = max(0, facts.requests - client.requests)
                self._on_progress(ApplyProgress(done, facts.writes, client.requests, left, client.requests_per_minute))

            applying = ApplyRun(
                plan, journal, writer, limits=limits, selection=selection, wait=client.wait, on_row=told
            )
            self.result = Result(applying.applied, 0)
            if applying.has_work():
                check_limits(plan, limits)
                reconcile_pending_records(plan, journal, writer)
                self._check_fresh(plan, client, journal)
                try:
                    applying.run(client.requests_per_minute)
                finally:
                    self.result = Result(applying.applied, client.requests)
            return self.result

    def _check_fresh(self, plan: Plan, client: LibraryClient, journal: Journal) -> None:
        """Read the target again and see whether the plan still fits."""
        run = f"apply-{self._clock.now():%Y%m%dT%H%M%S}"
        with self._read_again(plan, client, run) as (room, _raw, now):
            begun = {(one.resource, one.source_id) for one in journal.of_plan(plan.name) if one.state != UNDONE}
            publications = {number for resource, number in begun if resource == PUBLICATIONS}
            check_fresh(plan, now, room, journal=journal, begun=publications)
            others = self._reader.others(plan.facts.target.tenant, client, room, run, written_others(plan))
            check_others_fresh(plan, others, room, journal=journal, begun=begun)

    @contextmanager
    def _read_again(
        self, plan: Plan, client: LibraryClient, run: str
    ) -> Iterator[tuple[Path, Path, ComparableLibrary]]:
        """A folder for the length of the block, with the target as it is now: its raw publications, and as they are compared."""
        with workdir(plan) as room:
            raw = self._reader.read(plan.facts.target.tenant, client, room, run)
            yield room, raw, normalise(raw, room / "target", self._kinds.described)

    @contextmanager
    def _at_target(self, plan: Plan) -> Iterator[tuple[Journal, LibraryClient]]:
        """The journal and the target of a plan that nobody altered, under the target's lease."""
        facts = plan.facts
        check_still_theirs(self.settings, plan)
        plan.check_unaltered()
        self._leases.hold(facts.target.tenant)
        with (
            self.journal(facts.source.base_url, facts.target.base_url) as journal,
            self._client(facts.target.tenant) as client,
        ):
            yield journal, client

    def verify_named(
        self, name: str, target: str, *, contents: bool = False, evidence: Path | None = None
    ) -> MigrationVerification:
        """Verify the plan that a person names."""
        return self.verify(self._named(name, target), contents=contents, evidence=evidence)

    def _named(self, name: str, target: str) -> Plan:
        plan = find_plan(self.data, name)
        if plan.facts.target.tenant != target:
            raise ConfigurationError(f"Plan {plan.name} is for '{plan.facts.target.tenant}', not for '{target}'.")
        return plan

    def status(self, plan: Plan) -> PlanStatus:
        """How far a plan is, without a request."""
        with self.journal(plan.facts.source.base_url, plan.facts.target.base_url) as journal:
            return status_of(plan, journal)

    def three_way(self, plan: Plan, source_id: int) -> RecordView:
        """One publication as the source, the plan and the target have it; one request."""
        check_still_theirs(self.settings, plan)
        ends = plan.facts.source.base_url, plan.facts.target.base_url
        with self.journal(*ends) as journal, self._client(plan.facts.target.tenant) as client:

            def look(path: str) -> Mapping[str, str] | None:
                record = client.find_record(path)
                return None if record is None else comparable(form_of(record, self._kinds).fields, self._kinds)

            return three_way(plan, journal, source_id, look)

    @contextmanager
    def _writer(self, plan: Plan, journal: Journal, client: LibraryClient) -> Iterator[Writer]:
        uploads = Uploads(client)
        writer = Writer(
            plan.name,
            journal,
            client,
            uploads,
            self._kinds,
            knew=plan.knew,
            open_blob=self._open_blob,
            files_with_record=self.settings.tenant(plan.facts.target.tenant).files_with_record,
        )
        try:
            yield writer
        finally:
            writer.stop()
            uploads.close()

    def undo(self, plan: Plan, *, really: bool = False) -> UndoResult:
        """Take back what the journal says a plan did, where nobody edited it since; without `really`, only tell what would be done."""
        with self._at_target(plan) as (journal, client), workdir(plan) as room:
            run, target = after_writes("undo", plan, journal), plan.facts.target.tenant
            listed = self._reader.others(target, client, room, run, written_others(plan))
            with read_target_lists(room, listed) as others:
                if not really:
                    raw = self._reader.read(target, client, room, run)
                    now = normalise(raw, room / "target", self._kinds.described)
                    return dry_run(plan, journal, self._kinds, now, others, client)
                with self._writer(plan, journal, client) as writer:
                    found = undo(
                        plan, journal, self._kinds, client, writer, others=others, on_progress=self._on_progress
                    )
            keep(plan, found, self._clock.now())
            return found

    def verify(self, plan: Plan, *, contents: bool = False, evidence: Path | None = None) -> MigrationVerification:
        """Read the target again and compare every record with what a plan says, field by field; the result is kept beside the plan.

        `contents`: fetch every file that was moved, and compare its bytes. `evidence`: a folder that is made, a bag of all that proves it.
        """
        if evidence is not None:
            check_free(evidence)
        with (
            self._at_target(plan) as (journal, client),
            self._read_again(plan, client, after_writes("verify", plan, journal)) as (room, raw, now),
        ):
            base_url = self.settings.tenant(plan.facts.target.tenant).base_url
            check_contents = Contents(client, base_url, raw, on_file=self._on_progress).check if contents else None
            at, target, moved = self._clock.now(), plan.facts.target.tenant, plan.facts.resources
            listed = self._reader.others(target, client, room, after_writes("verify", plan, journal), moved)
            with compare_other_resources(plan, journal, room, listed) as others:
                self.proved = verify(
                    plan, journal, now, room, at=at, client=client, check_contents=check_contents, others=others
                )
            if evidence is not None:
                source = plan.facts.source
                key = f"{snapshot_key(source.tenant, source.snapshot)}/{MANIFEST}"
                [manifest] = self._source_data.objects.read_all([key])
                write_evidence(evidence, plan, self.proved, journal, target=raw, source=manifest, at=at)
            return self.proved

    def _open_blob(self, sha256: str) -> BufferedReader:
        return self._source_data.objects.open(blob_key(sha256))

    @contextmanager
    def journal(self, source: str, target: str) -> Iterator[Journal]:
        """What was written from one library to another."""
        self.data.prepare()
        journal = Journal(self.data.state_path, source, target, self._clock)
        try:
            yield journal
        finally:
            journal.close()

    def close(self) -> None:
        """Give the lease back."""
        self._leases.give_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _client(self, tenant: str) -> AbstractContextManager[LibraryClient]:
        return open_client(
            self.settings, tenant, state=self.data.state_path, on_wait=self._on_wait, clock=self._given_clock
        )


class Result(NamedTuple):
    """What an apply did, and how many requests that took."""

    applied: ApplyResult
    requests: int

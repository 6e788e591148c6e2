"""Moves a library into another in four separate steps on one data folder: plan, apply, verify, undo.

`backup.flow.Backup` makes the snapshots that this reads. No step sends a request to the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from pipelines.errors import ConfigurationError
from pipelines.file_access import make_folder
from pipelines.migration.apply.late_effects import check_undo_ended, wait_for_unanswered
from pipelines.migration.apply.run import (
    EVERYTHING,
    ApplyResult,
    ApplyRun,
    Selection,
    check_limits,
)
from pipelines.migration.apply.staleness import check_fresh, check_mapping
from pipelines.migration.apply.writer import Writer
from pipelines.migration.limits import LIMITS, Limits
from pipelines.migration.mapping.mapping_file import MappingFile, find_mapping, mapping_path
from pipelines.migration.mapping.proposal import propose, proposed_text
from pipelines.migration.model.actions import Action
from pipelines.migration.model.comparison_database import comparison_database
from pipelines.migration.model.plan import APPROVAL_LENGTH, HTML, TARGET, Plan
from pipelines.migration.model.plan_findings import add_lacking
from pipelines.migration.model.plan_folders import seal_plan, unfinished_plan, workdir
from pipelines.migration.model.resource_types import AUTHORITIES, PUBLICATIONS
from pipelines.migration.model.step import Step
from pipelines.migration.model.target_comparison import TargetComparison
from pipelines.migration.model.target_reading import RecordListing, reading_name
from pipelines.migration.plan.build import PlanBuilder, PlanRequest, new_plan_name, remove_unfinished
from pipelines.migration.plan.comparison import write_side
from pipelines.migration.plan.conflicts import newest_table
from pipelines.migration.plan.scope import (
    check_movable,
    check_target,
    chosen_other_resources,
    has_all_publications,
    movable_resources,
)
from pipelines.migration.plan.target_ids import Merged, merged_before
from pipelines.migration.report.pages import write_pages
from pipelines.migration.report.status import PlanStatus, RecordView, status_of, three_way
from pipelines.migration.session import MigrationSession, check_same_target
from pipelines.migration.undo.result import UndoResult
from pipelines.migration.undo.run import UndoRun
from pipelines.migration.verify.contents import Contents
from pipelines.migration.verify.evidence import check_free, write_evidence
from pipelines.migration.verify.run import verify
from pipelines.migration.verify.verdict import MigrationVerification
from pipelines.records.values import RecordId
from pipelines.service.probe import Probe
from pipelines.service.self_description import ask_again
from pipelines.shapes.model import Description
from pipelines.store.durable import temporary_folder, write_atomically
from pipelines.store.objects.objects import MANIFEST, read_if_there
from pipelines.store.snapshots.snapshots import Snapshot, reading, snapshot_key


class Migration(MigrationSession):
    """The steps of a migration. Close it, because it holds the lease of the target."""

    applied: ApplyResult | UndoResult | None = None
    """What the last `apply` wrote, or `undo` took back, also if an error or a stop ended it."""

    def find_source(self, name: str) -> Snapshot:
        """The snapshot that a person names. For the name of a tenant: its newest with all publications, though files may be missing."""
        snapshots = self.data.snapshots(name) if name in self.settings.tenants else []
        movable = [snapshot for snapshot in snapshots if has_all_publications(snapshot)]
        return movable[-1] if movable else self.data.find_snapshot(name)

    def plan(
        self,
        source: Snapshot,
        target: str,
        *,
        overwrite: bool = False,
        resources: Iterable[str] = (),
        first_days: bool | None = None,
        sends_invalid: bool | None = None,
        restores: bool = False,
    ) -> Plan:
        """Plan a move of a snapshot into the library of a tenant; this writes nothing there.

        `overwrite`: where both sides have different values, the source's value counts. `resources`: those that are moved besides
        publications. `first_days`: send a date that is only a year or a month as its first day. `sends_invalid`: send identifiers that
        break the rules of their type, too. None: as the newest plan between these two libraries, so that a later plan does not take out
        again what it sent. `restores`: put back what a backup has, also identifiers that break rules, and numbers within texts.

        Raises `ConfigurationError` for a target that is not version 3, `StopError` where the records of either side are not all known.
        """
        check_target(self.settings, target)
        check_movable(source)
        other_resources = chosen_other_resources(source, resources)
        self.hold(target)
        remove_unfinished(self.data, target)
        newest = newest_table(self.data, source.manifest.base_url, self.settings.tenant(target).base_url)
        if first_days is None:
            first_days = newest is not None and newest[0].first_days
        if sends_invalid is None:
            sends_invalid = restores or (newest is not None and newest[0].sends_invalid)
        request = PlanRequest(
            source,
            target,
            other_resources,
            overwrite=overwrite,
            first_days=first_days,
            sends_invalid=sends_invalid,
            restores=restores,
            now=self.clock.now(),
            mapping=find_mapping(self.settings, source.manifest.tenant, target),
        )
        name = new_plan_name(self.data, source, target, request.now)
        with reading(source), unfinished_plan(self.data, name) as folder:
            builder = PlanBuilder(self, request, folder)
            with self.journal(source.manifest.base_url, self.settings.tenant(target).base_url) as journal:
                with self.client(target) as client:
                    wait_for_unanswered(journal, client)
                    builder.read_target(client)
                plan = builder.build(journal)
            write_pages(plan, now=request.now)
            return seal_plan(folder, plan.facts, self.data.keys)

    def map(self, source: Snapshot, target: str, resources: Iterable[str] = ()) -> MappingFile:
        """Write into the mapping file of two libraries what is known and asked of these resources, or of all that the snapshot has.

        An earlier file keeps its lines. Raises as `plan` does.
        """
        check_target(self.settings, target)
        check_movable(source)
        chosen = chosen_other_resources(source, resources or movable_resources(source))
        self.hold(target)
        tenant, now = source.manifest.tenant, self.clock.now()
        earlier = find_mapping(self.settings, tenant, target)
        request = PlanRequest(source, target, chosen, now, mapping=earlier)
        path = mapping_path(self.settings, tenant, target)
        self.data.prepare()
        listings = temporary_folder(self.data.path / f"mapping-{target}")
        with reading(source), listings as folder, self.client(target) as client:
            builder = PlanBuilder(self, request, folder)
            builder.read_target(client, to_move=False)
            proposals = [propose(learner, target, builder.operations) for learner in builder.learners.values()]
        text = proposed_text(earlier, filter(None, proposals), tenant, target)
        mapping = MappingFile(path, text)
        if earlier is None or text != earlier.text:
            make_folder(path.parent)
            write_atomically(path, text.encode())
        return mapping

    def approved(self, name: str, approval: str, target: str) -> Plan:
        """The plan that a person names and approves with the beginning of its seal."""
        plan = self.named_plan(name, target)
        if len(approval) < APPROVAL_LENGTH or not plan.facts.seal.startswith(approval):
            raise ConfigurationError(
                f"Plan {plan.name} is not approved: look at {plan.path(HTML)}, and if you want that, give {plan.facts.approval} as "
                "its approval."
            )
        return plan

    def apply(
        self,
        plan: Plan,
        *,
        limits: Limits = LIMITS,
        selection: Selection = EVERYTHING,
    ) -> ApplyResult:
        """Write the rows of a plan that are not written yet (I8, I9).

        Raises `StopError` for a plan that was altered or is stale, `SafetyLimitError` at a limit, and the errors that end a run. After an
        error, `applied` has what was written before it.
        """
        options = {"limits": limits, "on_progress": self._on_progress}
        with self.at_target(plan, **options) as step, closing(Writer(step)) as writer:
            check_undo_ended(plan, step.journal)
            run = ApplyRun(writer, selection, partial(self._appeared, step))
            self.applied = result = run.result
            if run.has_work():
                check_limits(plan, limits)
                check_mapping(plan, find_mapping(self.settings, plan.facts.source.tenant, plan.facts.target.tenant))
                run.settle()
                self._check_fresh(step)
            try:
                run.run()
            finally:
                result.requests = step.client.requests
            add_lacking(result, plan, step.journal)
            return result

    def _check_fresh(self, step: Step) -> None:
        """Read the target again, and raise `StopError` where the plan does not fit any more."""
        run, plan = f"apply-{self.clock.now():%Y%m%dT%H%M%S}", step.plan
        merges = plan.rows(Action.MERGE) if plan.facts.count(Action.MERGE) else ()
        merged = {(row.resource, number): row.existing_target_id for row in merges for number in row.candidates}
        with self._compared(step, run, plan.facts.read_before_writing, merged) as (comparison, _):
            check_fresh(comparison, self._description_now(step))

    def _appeared(self, step: Step) -> set[RecordId]:
        """The authorities of the source that the plan creates and the target has by now: a service may make some of authors."""
        with self._compared(step, f"appeared-{self.clock.now():%Y%m%dT%H%M%S}", [AUTHORITIES]) as (comparison, _):
            comparison.locate(AUTHORITIES)
            return {source_id for source_id, _ids in comparison.appeared()}

    def _description_now(self, step: Step) -> Description | None:
        """The target's description as it is now, where the plan has one."""
        if not (earlier := step.plan.facts.description) or earlier.problem:
            return None
        return ask_again(Probe(step.client, self.clock), earlier)

    @contextmanager
    def _compared(
        self, step: Step, run: str, resources: Iterable[str], merged: Merged = MappingProxyType({})
    ) -> Iterator[tuple[TargetComparison, dict[str, RecordListing]]]:
        """Read these resources of the target again, for the length of the block: beside the plan, and as they were listed.

        `merged`: records of the target that the plan merges into others.
        """
        plan, read = step.plan, self.read
        with workdir(plan) as folder:
            listed = {name: read(plan.facts.target.tenant, step.client, folder, run, name) for name in resources}
            now = {name: replace(plan.side(TARGET, name), folder=folder / "target") for name in resources}
            for name, side in now.items():
                records = listed[name].records()
                write_side(side, records, step.types[name], merged=merged_before(merged, name))
            with comparison_database(folder) as database:
                yield TargetComparison(step, now, database), listed

    def verify_named(
        self, name: str, target: str, *, contents: bool = False, evidence: Path | None = None
    ) -> MigrationVerification:
        """Verify the plan that a person names."""
        return self.verify(self.named_plan(name, target), contents=contents, evidence=evidence)

    def verify(self, plan: Plan, *, contents: bool = False, evidence: Path | None = None) -> MigrationVerification:
        """Read the target again and compare every record with the plan, field by field. The result is stored beside the plan.

        `contents`: download every file that was moved, and compare its bytes. `evidence`: a new folder for a bag of all evidence.
        """
        if evidence is not None:
            check_free(evidence)
        base_url, source = self.settings.tenant(plan.facts.target.tenant).base_url, plan.facts.source
        with self.at_target(plan) as step:
            wait_for_unanswered(step.journal, step.client)
            run = reading_name("verify", plan, step.journal)
            with self._compared(step, run, plan.facts.resources) as (comparison, listed):
                raw, at = listed[PUBLICATIONS].path, self.clock.now()
                check_contents = (
                    Contents(step.client, base_url, raw, on_file=self._on_progress).check if contents else None
                )
                verification = verify(comparison, at=at, check_contents=check_contents)
                if evidence is not None:
                    key = f"{snapshot_key(source.tenant, source.snapshot)}/{MANIFEST}"
                    manifest = read_if_there(self.source_data.objects, key)
                    write_evidence(evidence, step, verification, target=raw, source=manifest, at=at)
                return verification

    def undo(self, plan: Plan, *, really: bool = False, limits: Limits = LIMITS) -> UndoResult:
        """Take back the writes of a plan, except in records that people edited since. Without `really`, only report the effect.

        Raises `SafetyLimitError` at a limit, and the errors that end a run; `applied` has what was taken back before.
        """
        options: dict[str, Any] = {"limits": limits} | ({"on_progress": self._on_progress} if really else {})
        with self.at_target(plan, **options) as step, closing(Writer(step)) as writer:
            wait_for_unanswered(step.journal, step.client)
            self.applied = result = UndoResult(plan=plan.name, really=really)
            run = UndoRun(writer, result)
            try:
                if really:
                    run.settle()
                    run.run()
                else:
                    name = reading_name("undo", plan, step.journal)
                    resources = (PUBLICATIONS, *plan.facts.written_other_resources)
                    with self._compared(step, name, resources) as (comparison, _):
                        run.dry_run(comparison.now)
            finally:
                result.requests = step.client.requests
            if really:
                plan.save(f"{plan.free_name('undo', self.clock.now())}.json", result)
            return result

    def status(self, plan: Plan) -> PlanStatus:
        """The status of a plan, without a request."""
        with self.journal_of(plan) as journal:
            return status_of(plan, journal)

    def three_way(self, plan: Plan, source_id: int) -> RecordView:
        """One publication in the source, in the plan and in the target; one request."""
        check_same_target(self.settings, plan)
        publications = self.types_of(plan)[PUBLICATIONS]
        with self.journal_of(plan) as journal, self.client(plan.facts.target.tenant) as client:
            return three_way(plan, journal, source_id, publications, client)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.close(error)

"""Plans the resources one after the other, in the order in which they are written: matches the records of each, and makes their rows."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from pipelines.migration.model.comparable import Side
from pipelines.migration.model.comparison_database import batches_of, comparison_database, in_steps
from pipelines.migration.model.plan import PEOPLE, SOURCE, TARGET, PlanFacts, PlanRow, stored_row
from pipelines.migration.model.plan_table import PLAN
from pipelines.migration.model.resource_types import WRITING_ORDER, ResourceType, is_written_later
from pipelines.migration.plan.comparison import Match, compare, write_side
from pipelines.migration.plan.inputs import PlanInputs
from pipelines.migration.plan.mapped_references import mark_waiting, with_known_references
from pipelines.migration.plan.record_rows import RowMaker
from pipelines.migration.plan.rows import count
from pipelines.migration.plan.target_ids import TargetIds, merged_before
from pipelines.store.durable import temporary_folder
from pipelines.store.parquet import TableWriter, table_writer

if TYPE_CHECKING:
    import duckdb


def plan_all(writer: TableWriter, inputs: PlanInputs, facts: PlanFacts) -> None:
    """Append the rows of every resource, and count them in `facts`."""
    with (
        TargetIds(same_library=inputs.same_library) as ids,
        temporary_folder(inputs.folder / "comparison") as folder,
        comparison_database(folder) as database,
        ExitStack() as stack,
    ):
        planner = _Planner(inputs, ids, facts, database)
        for resource in WRITING_ORDER:
            planner.match_ahead(resource)
            if resource in inputs.resources:
                rows = writer
                if inputs.types[resource].personal:
                    rows = stack.enter_context(table_writer(inputs.folder / PEOPLE, PLAN, inputs.key))
                planner.plan(rows, resource)
            elif resource in inputs.listed:
                planner.match(inputs.types[resource])
    shutil.rmtree(inputs.folder / "matching", ignore_errors=True)


class _Planner:
    def __init__(
        self, inputs: PlanInputs, ids: TargetIds, facts: PlanFacts, database: duckdb.DuckDBPyConnection
    ) -> None:
        self._inputs = inputs
        self._ids = ids
        self._facts = facts
        self._database = database

    def match_ahead(self, resource: str) -> None:
        """Match the records that this resource may refer to before they are created: those of its own, and of resources that come later."""
        inputs = self._inputs
        if resource not in inputs.resources:
            return
        referred = _all_led_to(inputs.types[resource].referred, inputs)
        for later in WRITING_ORDER:
            if later in referred and later in inputs.listed and is_written_later(later, resource):
                self.match(inputs.types[later])

    def match(self, resource_type: ResourceType) -> None:
        """Only match the records, because others refer to them, and once more where their parents tell them apart; none is written here."""
        for _time in range(2 if resource_type.parents else 1):
            unknown = {name for name in self._inputs.listed if not self._ids.is_matched(name)}
            self._match(with_known_references(resource_type, unknown))

    def _match(self, resource_type: ResourceType) -> None:
        resource, merged = resource_type.resource, {**self._ids.merged}
        maker = RowMaker(resource_type, self._ids, self._inputs.overwrite)
        for step in in_steps(map(maker.row, self._compared(resource_type))):
            self._ids.note(step, to_be_created=resource in self._inputs.resources)
        self._ids.merged = merged
        self._ids.mark_matched(resource)

    def plan(self, writer: TableWriter, resource: str) -> None:
        """Append a row for each record of the source."""
        resource_type = self._inputs.types[resource]
        matches = self._compared(resource_type)
        self._count_records(resource_type)
        for batch in batches_of(PLAN, map(stored_row, self._rows(resource_type, matches))):
            writer.write(batch)
        self._ids.mark_matched(resource)

    def _rows(self, resource_type: ResourceType, matches: Iterable[Match]) -> Iterator[PlanRow]:
        resource, maker = resource_type.resource, RowMaker(resource_type, self._ids, self._inputs.overwrite)
        precedes, is_referred_to = partial(self._ids.precedes, resource), self._is_referred_to(resource)
        for match in matches:
            waiting = mark_waiting(resource_type, match.source_id, match.source, precedes)
            row = maker.row(match._replace(source=waiting))
            count(self._facts, row, resource_type)
            if is_referred_to:
                self._ids.note([row])
            yield row

    def _count_records(self, resource_type: ResourceType) -> None:
        facts, resource = self._facts, resource_type.resource
        records = self._inputs.listed[resource][0].rows
        facts.resources.append(resource)
        facts.counts[resource] = Counter()
        facts.source.records[resource] = records
        facts.target.records[resource] = self._side(TARGET, resource_type).records
        facts.unfit += records - self._side(SOURCE, resource_type).records

    def _is_referred_to(self, resource: str) -> bool:
        return any(resource in resource_type.referred for resource_type in self._inputs.types.values())

    def _compared(self, resource_type: ResourceType) -> Iterator[Match]:
        """Both sides of a resource, matched."""
        inputs = self._inputs
        source, target = self._side(SOURCE, resource_type), self._side(TARGET, resource_type)
        self._write_sides(resource_type, source, target)
        return compare(
            self._database,
            resource_type,
            source,
            target,
            journal=inputs.journal,
            find_target=self._ids.target_of,
            decisions=inputs.decisions,
            earlier=None if resource_type.personal else inputs.earlier.get(resource_type.resource),
            same_library=inputs.same_library,
            files=inputs.files if resource_type.has_files else None,
        )

    def _write_sides(self, resource_type: ResourceType, source: Side, target: Side) -> None:
        """Write both sides. They are written again where a resource is matched again: its keys may depend on what was matched since."""
        resource = resource_type.resource
        ids, (in_source, in_target) = self._ids, self._inputs.listed[resource]
        whole, merged = self._inputs.types[resource], merged_before(ids.merged, resource)
        write_side(source, in_source.records(), whole, keyed_by=resource_type, find_target=ids.target_of)
        write_side(target, in_target.records(), whole.of_target, keyed_by=resource_type, merged=merged)

    def _side(self, name: str, resource_type: ResourceType) -> Side:
        """The side of a resource that is only matched is not kept."""
        folder, resource = self._inputs.folder, resource_type.resource
        parent = folder if resource in self._inputs.resources else folder / "matching"
        return Side(parent / name, resource, self._inputs.key if resource_type.personal else None)


def _all_led_to(led_to: Iterable[str], inputs: PlanInputs) -> set[str]:
    """These resources, and those to which their records refer in turn: what a record refers to may tell it from another."""
    referred, pending = set[str](), [*led_to]
    while pending:
        if (resource := pending.pop()) not in referred and resource in inputs.listed:
            referred.add(resource)
            pending += inputs.types[resource].referred
    return referred

"""Works out what an undo would do, from one reading of the target. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.migration.apply.target_lists import TargetLists
from pipelines.migration.model.comparable import Side
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import Plan
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.migration.plan.files import described_files
from pipelines.migration.plan.rows import in_steps
from pipelines.migration.undo.inverse_operations import TargetRecord, inverse_operations
from pipelines.migration.undo.result import UndoResult
from pipelines.migration.undo.worklist import worklist
from pipelines.records.identifiers.kinds import Kinds
from pipelines.records.matching import comparable
from pipelines.service.client import LibraryClient


def dry_run(  # noqa: PLR0917  the same as `undo` takes
    plan: Plan,
    journal: Journal,
    kinds: Kinds,
    now: Side,
    target_lists: TargetLists,
    client: LibraryClient,
) -> UndoResult:
    """Returns what an undo would do to the target as it is `now`."""
    result = UndoResult(plan=plan.name, really=False)
    for batch in in_steps(worklist(plan, journal, target_lists)):
        publications = _publications(now, kinds, [item.target_id for item in batch])
        for item in batch:
            if item.doubt:
                result.leave(item, [item.doubt])
                continue
            is_publication = item.row.resource == PUBLICATIONS
            record = publications.get(item.target_id) if is_publication else TargetRecord.of_list(item)
            result.count(item, inverse_operations(item, record, kinds))
    result.requests = client.requests
    return result


def _publications(now: Side, kinds: Kinds, ids: Sequence[int | None]) -> dict[int | None, TargetRecord]:
    """Id → the record in the target as it is `now`."""
    known = [number for number in ids if number is not None]
    files = now.files(known)
    return {
        number: TargetRecord(comparable(form.values, kinds), described_files(files.get(number)))
        for number, form in now.forms(known).items()
    }

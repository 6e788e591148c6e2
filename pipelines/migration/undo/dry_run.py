"""Works out what an undo would do, from one reading of the target. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from pipelines.migration.model.comparison_database import in_steps
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import Plan
from pipelines.migration.model.target_reading import TargetNow
from pipelines.migration.plan.files import described_files
from pipelines.migration.undo.decision import TargetRecord, decide_undo
from pipelines.migration.undo.result import UndoResult
from pipelines.migration.undo.worklist import worklist
from pipelines.service.client import LibraryClient


def dry_run(plan: Plan, journal: Journal, now: Mapping[str, TargetNow], client: LibraryClient) -> UndoResult:
    """Returns what an undo would do to the target as it is `now`."""
    result = UndoResult(plan=plan.name, really=False)
    for resource, items in groupby(worklist(plan, journal), key=lambda item: item.row.resource):
        for batch in in_steps(items):
            records = _records(now[resource], {item.target_id for item in batch if item.target_id is not None})
            for item in batch:
                if item.doubt:
                    result.leave(item, [item.doubt])
                else:
                    record = records.get(item.target_id or 0)
                    result.count(item, decide_undo(item, record, now[resource].type))
    result.requests = client.requests
    return result


def _records(now: TargetNow, ids: set[int]) -> dict[int, TargetRecord]:
    """Id → the record in the target as it is `now`."""
    files = now.side.files(ids)
    return {
        number: TargetRecord(now.type.compared(form.values), described_files(files.get(number)))
        for number, form in now.side.forms(ids).items()
    }

"""`bookferry snapshots diff`: compares two snapshots."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.console import RenderableType

from cli.output import Answer, ReadableTable, warning
from pipelines.errors import ExitStatus
from pipelines.settings.settings import Settings
from pipelines.store.maintenance.differences import Differences, ResourceDifferences, compare
from pipelines.store.stores import open_data

KINDS = ("added", "removed", "changed")

LISTED = 20
"""The most records to list of each kind; the counts include all."""


def diff_snapshots(settings: Settings, *, a: str, b: str, resource: str | None) -> Answer:
    """Compare two snapshots. The status is 6 if there is any difference."""
    data = open_data(settings)
    differences = compare(data, data.find_snapshot(a), data.find_snapshot(b), resource, LISTED)
    document = {"equal": differences.equal, **msgspec.to_builtins(differences)}
    status = ExitStatus.COMPLETE if differences.equal else ExitStatus.DIFFERENCES
    return Answer(document, _lines(differences), status)


def _lines(differences: Differences) -> Iterator[RenderableType]:
    yield from map(warning, differences.notes)
    columns = ("resource", *KINDS, "unchanged", "without id")
    rows = [
        (name, *(f"{getattr(difference, kind):,}" for kind in (*KINDS, "unchanged")), _without_id(difference))
        for name, difference in differences.resources.items()
        if difference.only_in is None
    ]
    if rows:
        yield ReadableTable(columns, rows, right=columns[1:])
    for name, difference in differences.resources.items():
        yield from _resource(name, difference)
    if differences.equal:
        yield f"No differences between {differences.a} and {differences.b}."
    else:
        sums = (
            f"{sum(getattr(difference, kind) for difference in differences.resources.values()):,} {kind}"
            for kind in KINDS
        )
        yield f"From {differences.a} to {differences.b}: {', '.join(sums)}."


def _without_id(difference: ResourceDifferences) -> str:
    added, removed = difference.added_without_id, difference.removed_without_id
    return f"+{added:,} -{removed:,}" if added or removed else ""


def _resource(name: str, difference: ResourceDifferences) -> Iterator[RenderableType]:
    if difference.only_in is not None:
        yield f"{name}: only in {difference.only_in}."
    if difference.fields:
        counts = [(field, f"{count:,}") for field, count in list(difference.fields.items())[:LISTED]]
        yield ReadableTable(("field", "records"), counts, title=f"\n{name}: changed fields", right=("records",))
    rows = [("added", record, "") for record in difference.added_ids]
    rows += [("removed", record, "") for record in difference.removed_ids]
    rows += [("changed", record.id, ", ".join(record.fields)) for record in difference.changed_records]
    if rows:
        yield ReadableTable(("", "id", "fields"), rows, title=f"\n{name}: up to {LISTED} of each")

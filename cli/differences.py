"""`bookferry snapshots diff`: compares two snapshots."""

from __future__ import annotations

import msgspec
from rich.console import Console

from cli.output import Output, print_table, print_warning
from pipelines.errors import ExitStatus
from pipelines.settings.settings import Settings
from pipelines.store.encryption import personal_keys
from pipelines.store.maintenance.differences import Differences, ResourceDifferences, compare
from pipelines.store.stores import open_data

KINDS = ("added", "removed", "changed")

LISTED = 20
"""The most records to list of each kind; the counts include all."""


def diff_snapshots(settings: Settings, names: tuple[str, str], resource: str | None, output: Output) -> ExitStatus:
    """Compare two snapshots. The status is 6 if there is any difference."""
    data = open_data(settings, personal_keys(settings))
    a, b = (data.find_snapshot(name) for name in names)
    differences = compare(data, a, b, resource, LISTED)
    output.result(
        {"equal": differences.equal, **msgspec.to_builtins(differences)},
        lambda console: _print(console, differences),
    )
    return ExitStatus.COMPLETE if differences.equal else ExitStatus.DIFFERENCES


def _print(console: Console, differences: Differences) -> None:
    for note in differences.notes:
        print_warning(console, note)
    columns = ("resource", *KINDS, "unchanged", "without id")
    rows = [
        (name, *(f"{getattr(difference, kind):,}" for kind in (*KINDS, "unchanged")), _without_id(difference))
        for name, difference in differences.resources.items()
        if difference.only_in is None
    ]
    if rows:
        print_table(console, columns, rows, right=columns[1:])
    for name, difference in differences.resources.items():
        _print_resource(console, name, difference)
    if differences.equal:
        console.print(f"No differences between {differences.a} and {differences.b}.")
    else:
        sums = (
            f"{sum(getattr(difference, kind) for difference in differences.resources.values()):,} {kind}"
            for kind in KINDS
        )
        console.print(f"From {differences.a} to {differences.b}: {', '.join(sums)}.")


def _without_id(difference: ResourceDifferences) -> str:
    added, removed = difference.added_without_id, difference.removed_without_id
    return f"+{added:,} -{removed:,}" if added or removed else ""


def _print_resource(console: Console, name: str, difference: ResourceDifferences) -> None:
    if difference.only_in is not None:
        console.print(f"{name}: only in {difference.only_in}.")
    if difference.fields:
        counts = [(field, f"{count:,}") for field, count in list(difference.fields.items())[:LISTED]]
        print_table(console, ("field", "records"), counts, title=f"\n{name}: changed fields", right=("records",))
    rows = [("added", record, "") for record in difference.added_ids]
    rows += [("removed", record, "") for record in difference.removed_ids]
    rows += [("changed", record.id, ", ".join(record.fields)) for record in difference.changed_records]
    if rows:
        print_table(console, ("", "id", "fields"), rows, title=f"\n{name}: up to {LISTED} of each")

"""`bookferry snapshots diff`: compares two snapshots."""

from __future__ import annotations

import msgspec
from rich.console import Console

from cli.output import Output, print_table
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
        console.print(f"! {note}")
    compared = {name: one for name, one in differences.resources.items() if one.only_in is None}
    rows = [
        (name, *(f"{number:,}" for number in (one.added, one.removed, one.changed, one.unchanged)), _without_id(one))
        for name, one in compared.items()
    ]
    if rows:
        columns = ("resource", *KINDS, "unchanged", "without id")
        print_table(console, columns, rows, right=columns[1:])
    for name, one in differences.resources.items():
        _print_resource(console, name, one)
    console.print(_last_line(differences))


def _without_id(one: ResourceDifferences) -> str:
    if not one.added_without_id + one.removed_without_id:
        return ""
    return f"+{one.added_without_id:,} -{one.removed_without_id:,}"


def _print_resource(console: Console, name: str, one: ResourceDifferences) -> None:
    if one.only_in is not None:
        console.print(f"{name}: only in {one.only_in}.")
    if one.fields:
        counts = [(field, f"{count:,}") for field, count in list(one.fields.items())[:LISTED]]
        print_table(console, ("field", "records"), counts, title=f"\n{name}: changed fields", right=("records",))
    rows = [("added", record, "") for record in one.added_ids]
    rows += [("removed", record, "") for record in one.removed_ids]
    rows += [("changed", record.id, ", ".join(record.fields)) for record in one.changed_records]
    if rows:
        print_table(console, ("", "id", "fields"), rows, title=f"\n{name}: up to {LISTED} of each")


def _last_line(differences: Differences) -> str:
    if differences.equal:
        return f"No differences between {differences.a} and {differences.b}."
    sums = {kind: sum(getattr(one, kind) for one in differences.resources.values()) for kind in KINDS}
    return f"From {differences.a} to {differences.b}: {', '.join(f'{count:,} {kind}' for kind, count in sums.items())}."

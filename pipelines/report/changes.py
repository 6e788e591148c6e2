"""Compares a snapshot with an earlier one for its report: how many records changed, and which issues are new or solved.

DuckDB compares the raw tables of both, and the lines of both reports. It spills to disk, so that memory does not grow with them (I11).
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from pipelines.records.identifiers.verdicts import REPAIRED
from pipelines.report.history import Changes
from pipelines.report.tables import issue_lines
from pipelines.store.maintenance.reports import ISSUES, report_key
from pipelines.store.parquet import create_view, escaped, literal
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot, reading

_RAW = "raw_publications"

_OPEN_ISSUES = "CREATE VIEW {view} AS SELECT try_cast(record AS BIGINT) AS record, code, field FROM {source} WHERE code <> {repaired}"


def changes_between(data: DataFolder, earlier: Snapshot, snapshot: Snapshot, issues: Path, workdir: Path) -> Changes:
    """What changed since an earlier snapshot of the same library. `issues`: the lines of the later one; `workdir`: for spill files."""
    key = report_key(earlier, ISSUES)
    has_report = data.objects.size(key) is not None
    with data.duckdb("192MB", 1, workdir) as database, reading(snapshot, earlier):
        for view, side in (("raw_a", earlier), ("raw_b", snapshot)):
            create_view(database, view, escaped(side.sound_address_of(side.manifest.tables[_RAW])))
        addresses = {"issues_a": data.objects.address_of(key) if has_report else issues, "issues_b": issues}
        for view, address in addresses.items():
            source = issue_lines(str(address))
            database.execute(_OPEN_ISSUES.format(view=view, source=source, repaired=literal(REPAIRED)))
        for name in ("differences", "issue_differences"):
            database.execute(resources.files("sql").joinpath(f"{name}.sql").read_text(encoding="utf-8"))
        [(added, removed, changed)] = database.execute("SELECT added, removed, changed FROM totals").fetchall()
        changes = Changes(since=earlier.manifest.snapshot, added=added, removed=removed, changed=changed)
        if has_report:
            [counts] = database.execute("SELECT * FROM issue_totals").fetchall()
            changes.new, changes.solved, changes.new_by_rules, changes.solved_by_rules = counts
    return changes

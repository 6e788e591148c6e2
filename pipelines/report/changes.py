"""Compares a snapshot with an earlier one for its report: how many records changed, and which issues are new or solved.

The issues of each report are kept as a small table beside it: record, code, field. DuckDB compares the tables and spills to disk, so that
memory does not grow with the library (I11).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.report.history import Changes
from pipelines.report.issues import Issue
from pipelines.store.durable import storage_errors
from pipelines.store.maintenance.reports import ISSUE_KEYS, report_key
from pipelines.store.parquet import bounded_duckdb, create_view, escaped
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot

_COLUMNS: list[tuple[str, pa.DataType]] = [("record", pa.int64()), ("code", pa.string()), ("field", pa.string())]
_SCHEMA = pa.schema(_COLUMNS)

_BATCH = 20_000
"""Issues in memory at a time."""

_RAW = "raw_publications"

_NO_ISSUES = "CREATE TEMP TABLE {view} (record BIGINT, code VARCHAR, field VARCHAR)"


class IssueKeys:
    """Writes the table of a report's open issues. Made by `open_issue_keys`."""

    def __init__(self, writer: pq.ParquetWriter) -> None:
        self._writer = writer
        self._rows: list[tuple[int | None, str, str]] = []

    def noted(self, issues: Iterable[Issue]) -> Iterator[Issue]:
        """Yields the same issues, of which the open ones are noted."""
        for one in issues:
            if one.to_do:
                self._rows.append((one.record, one.code, one.field))
                if len(self._rows) == _BATCH:
                    self.flush()
            yield one

    def flush(self) -> None:
        """Write what is in memory."""
        records, codes, fields = zip(*self._rows, strict=True) if self._rows else ((), (), ())
        arrays = [_integers(records), _texts(codes), _texts(fields)]
        self._writer.write(pa.Table.from_arrays(arrays, schema=_SCHEMA))
        self._rows = []


# These give the same arrays as `pa.array`, which would import pandas: half a second, and 40 MiB.


def _integers(values: Sequence[int | None]) -> pa.Array[Any]:
    bits = np.packbits(np.array([value is not None for value in values], bool), bitorder="little")
    numbers = array("q", [value or 0 for value in values])
    return pa.Array.from_buffers(pa.int64(), len(values), [pa.py_buffer(bits.tobytes()), pa.py_buffer(numbers)])


def _texts(values: Sequence[str]) -> pa.Array[Any]:
    encoded = [value.encode() for value in values]
    ends = array("i", accumulate(map(len, encoded), initial=0))
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))])


@contextmanager
def open_issue_keys(path: Path) -> Iterator[IssueKeys]:
    """The table of a report's open issues, in a Parquet file."""
    with storage_errors(path), pq.ParquetWriter(path, _SCHEMA, compression="zstd") as writer:
        keys = IssueKeys(writer)
        yield keys
        keys.flush()


def changes_between(data: DataFolder, earlier: Snapshot, snapshot: Snapshot, keys: Path, workdir: Path) -> Changes:
    """What changed since an earlier snapshot of the same library. `keys`: the issues of the later one; `workdir`: for spill files."""
    earlier_keys = report_key(earlier, ISSUE_KEYS)
    with storage_errors(snapshot.address), bounded_duckdb("192MB", 1, workdir) as database:
        database.execute("SET preserve_insertion_order = false")
        data.objects.attach(database)
        for view, one in (("raw_a", earlier), ("raw_b", snapshot)):
            create_view(database, view, escaped(one.address_of(one.manifest.tables[_RAW])))
        create_view(database, "issues_b", escaped(keys))
        if known := data.objects.size(earlier_keys) is not None:
            create_view(database, "issues_a", escaped(data.objects.address_of(earlier_keys)))
        else:
            database.execute(_NO_ISSUES.format(view="issues_a"))
        for name in ("differences", "issue_differences"):
            database.execute(resources.files("sql").joinpath(f"{name}.sql").read_text(encoding="utf-8"))
        [(added, removed, changed)] = database.execute("SELECT added, removed, changed FROM totals").fetchall()
        found = Changes(since=earlier.manifest.snapshot, added=added, removed=removed, changed=changed)
        if known:
            [counts] = database.execute("SELECT * FROM issue_totals").fetchall()
            found.new, found.solved, found.new_by_rules, found.solved_by_rules = counts
    return found

"""The rows of a plan as plan.parquet stores them."""

from __future__ import annotations

import pyarrow as pa

from pipelines.records.tables.description import Column, Table

_TEXT = pa.string()
PLAN = Table(
    "plan",
    "One row for each record of the source, in the order in which they are written.",
    ("resource", "source_id"),
    (
        Column("resource", _TEXT, "The resource: publications, users, ...", required=True),
        Column("source_id", _TEXT, "The record in the source.", required=True),
        Column("target_id", _TEXT, "The record of the target that it is; empty where there is none yet."),
        Column(
            "action",
            _TEXT,
            "create, patch, merge, unchanged, conflict, skipped (a person decided so) or quarantined.",
            required=True,
        ),
        Column(
            "matched_by",
            _TEXT,
            "The evidence that both are the same record: decision, journal, id, identifier, content, fingerprint, ...",
        ),
        Column("title", _TEXT, "Its title or name."),
        Column("payload", _TEXT, "The body of the POST or PATCH: JSON object; empty where nothing is sent.", json=True),
        Column(
            "before",
            _TEXT,
            "Of a patch, the fields before it: JSON object, null for an empty field.",
            json=True,
        ),
        Column(
            "expected",
            _TEXT,
            "The target afterwards: JSON object of field → `comparable.digest` of the compared value, null for an empty field.",
            json=True,
        ),
        Column(
            "differing",
            _TEXT,
            "Of a conflict, the fields that differ: JSON object of field → [in the source, in the target], in compared form.",
            json=True,
        ),
        Column("reason", _TEXT, "Why it is a conflict, quarantined, or in conflicts.tsv: one of `reasons.REASONS`."),
        Column(
            "candidates",
            _TEXT,
            "Of an ambiguous match, the ids in the target; of a merge, those that go: JSON array.",
            json=True,
        ),
        Column(
            "files",
            _TEXT,
            "Its cover and attached files: JSON array of `PlannedFile`; empty where it has none.",
            json=True,
        ),
        Column("unsent", _TEXT, "Values that are not sent: JSON object of path → value.", json=True),
        Column("why", _TEXT, "The same: JSON object of path → the code of the reason.", json=True),
        Column(
            "references",
            _TEXT,
            "References to records without an id in the target yet: JSON object of field → `PlannedReference`.",
            json=True,
        ),
        Column(
            "kept",
            _TEXT,
            "Fields that an earlier plan wrote and the service keeps otherwise: JSON object of field → [in the source, in the target].",
            json=True,
        ),
        Column(
            "after",
            _TEXT,
            "Fields that a request of their own sets, once the record is created: JSON array.",
            json=True,
        ),
    ),
)

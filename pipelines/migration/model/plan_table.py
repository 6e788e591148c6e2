"""The table of a plan's rows, plan.parquet, described as every table is."""

from __future__ import annotations

import pyarrow as pa

from pipelines.records.tables.description import Column, Table

_TEXT, _NUMBER = pa.string(), pa.int64()
PLAN = Table(
    "plan",
    "One row for each record of the source, in the order in which they are written.",
    ("resource", "source_id"),
    (
        Column("resource", _TEXT, "What it is: publications, users, ...", required=True),
        Column("source_id", _NUMBER, "The record in the source.", required=True),
        Column("target_id", _NUMBER, "The record in the target that it is; empty where there is none yet."),
        Column(
            "action",
            _TEXT,
            "create, patch, unchanged, conflict, skipped (a person said so) or quarantined.",
            required=True,
        ),
        Column(
            "matched_by",
            _TEXT,
            "What told that the two are one: decision, journal, id, identifier, content, fingerprint, ...",
        ),
        Column("title", _TEXT, "Its title or name, for people."),
        Column("payload", _TEXT, "What POST or PATCH is sent: JSON object; empty where nothing is sent.", json=True),
        Column(
            "before",
            _TEXT,
            "What the target held of a patch's fields: JSON object, null where it held nothing.",
            json=True,
        ),
        Column(
            "expected",
            _TEXT,
            "What the target must show afterwards: JSON object of field → `classifying.digest` of what is compared, null for nothing.",
            json=True,
        ),
        Column(
            "differing",
            _TEXT,
            "Of a conflict, the fields that differ: JSON object of field → [in the source, in the target], as they are compared.",
            json=True,
        ),
        Column("reason", _TEXT, "Why it is a conflict, or quarantined: one of `REASONS`."),
        Column("candidates", _TEXT, "Of an unclear match, the ids in the target: JSON array.", json=True),
        Column(
            "files",
            _TEXT,
            "Its cover and attached files: JSON array of `PlannedFile`; empty where it has none.",
            json=True,
        ),
        Column("unsent", _TEXT, "What of it version 3 will not hold: JSON object of path → value.", json=True),
        Column(
            "references",
            _TEXT,
            "What else is sent: JSON object of field → `PlannedReference`, the records that it refers to and that have no id yet.",
            json=True,
        ),
    ),
)

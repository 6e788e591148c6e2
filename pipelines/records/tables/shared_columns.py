"""Columns that several tables have."""

from __future__ import annotations

import pyarrow as pa

from pipelines.records.tables.description import Column

SNAPSHOT_COLUMNS = (
    Column("tenant", pa.string(), "Name of the library in bookferry.toml."),
    Column("snapshot", pa.string(), "When the snapshot's capture began, in UTC: the name of the snapshot."),
)
"""The columns that staged files put after those of every table; the folders (`tenant=…/snapshot=…`) say the same."""

SNAPSHOT_AT = Column(
    "snapshot_at", pa.timestamp("us", "UTC"), "The same as a timestamp, to compare with other times and to count with."
)
"""The column that only views have."""

VIEW_COLUMNS = (*SNAPSHOT_COLUMNS, SNAPSHOT_AT)
"""The columns that views put before those of every table."""

ID = Column("id", pa.int64(), "The service's identifier of the record; empty if it is missing or not a whole number.")
POSITION = Column("position", pa.int32(), "Place in the service's own order, from 0.", required=True)
RESIDUE = Column(
    "residue", pa.string(), "JSON object of everything in the record that no column of these tables takes.", json=True
)
SHA256 = Column(
    "sha256",
    pa.string(),
    "SHA-256 of the record's JSON as received; the same record has the same value in the raw table.",
    required=True,
    made_from="sha256",
)

"""What the rows of a plan are made from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.migration.model.comparable import ComparableLibrary
from pipelines.migration.model.journal import Journal
from pipelines.migration.plan.conflicts import RecordDecision
from pipelines.records.additional_fields import FieldRule


@dataclass(frozen=True)
class PlanInputs:
    """Both libraries, the earlier writes and decisions, and the options of a plan."""

    source: ComparableLibrary
    target: ComparableLibrary
    folder: Path
    """Where the plan grows."""
    files: str | None
    """Address of the snapshot's table publication_files, if it has one."""
    journal: Journal
    decisions: Collection[RecordDecision] = ()
    links: Mapping[str, FieldRule] = field(default_factory=dict)
    """The additional fields of publications that refer to other records."""
    same_library: bool = False
    overwrite: bool = False
    """Where both sides have different values, the source's value counts."""
    """Files are sent with the record that is created."""

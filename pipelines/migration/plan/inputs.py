"""What the rows of a plan are made from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.migration.model.journal import Journal
from pipelines.migration.model.plan import Plan
from pipelines.migration.model.resource_types import ResourceType
from pipelines.migration.model.target_reading import RecordListing
from pipelines.migration.plan.conflicts import Decisions
from pipelines.store.encryption import PersonalKey


@dataclass(frozen=True)
class PlanInputs:
    """Both libraries, the earlier writes and decisions, and the options of a plan."""

    folder: Path
    """Where the plan grows."""
    listed: Mapping[str, tuple[RecordListing, RecordListing]]
    """Resource → its records in the source and in the target, also of those that are only referred to."""
    types: Mapping[str, ResourceType]
    """Resource → how its records are moved."""
    resources: Collection[str]
    """Those of which records are written."""
    journal: Journal
    files: str | None
    """Address of the snapshot's table publication_files, if it has one."""
    decisions: Decisions
    earlier: Mapping[str, Plan]
    """Resource → the newest plan of its records between these libraries."""
    same_library: bool
    overwrite: bool
    """Where both sides have different values, the source's value counts."""
    key: PersonalKey | None
    """Encrypts persons."""

"""The verdict of a verification: whether the target equals the plan, the counts, the first findings; its document beside the plan."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pipelines.errors import StorageError
from pipelines.migration.model.findings import StepResult
from pipelines.migration.model.plan import Plan
from pipelines.store.durable import storage_errors

STEP = "verification"
"""Of the names of the documents."""


class FileFindings(msgspec.Struct, kw_only=True):
    """How many of the differences are files."""

    missing: int = 0
    differing: int = 0
    duplicated: int = 0
    unread: int = 0
    """Files whose bytes could not be fetched: nothing is proved of them."""


class MigrationVerification(StepResult, kw_only=True):
    """The result of a verification."""

    tool: str
    verified_at: str
    equal: bool
    """The verdict: whether nothing is missing, differing, duplicated or unread, also nothing that the plan could not send."""
    compared: int
    """Records that should be in the target."""
    missing: int
    """Records and files, as in `differing` and `duplicated`."""
    differing: int
    duplicated: int
    files: FileFindings
    files_checked: int
    contents: int | None
    """Files whose bytes were compared; None where that was not asked for."""
    conflicts: int
    """Records that a person has to decide. Neither these nor skipped records are differences; quarantined ones are lacking."""
    quarantined: int
    skipped: int
    target_records: int
    table: str
    """Name of the table of all findings, beside the plan."""
    as_planned: bool
    """Whether the target has everything that the plan could send."""

    @property
    def name(self) -> str:
        """Name of the document of this result, beside the plan."""
        return self.table.replace(".tsv", ".json")


def verifications(plan: Plan) -> list[Path]:
    """The documents of a plan's verifications, oldest first."""
    return sorted(plan.folder.glob(f"{STEP}-*.json"))


def read_verification(path: Path) -> MigrationVerification:
    """The result in a document. Raises `StorageError` for one that cannot be read."""
    try:
        with storage_errors(path):
            return _MIGRATION_VERIFICATION_DECODER.decode(path.read_bytes())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StorageError(f"{path} is damaged, or of another version of Bookferry ({error}). Verify again.") from None


_MIGRATION_VERIFICATION_DECODER = msgspec.json.Decoder(MigrationVerification)

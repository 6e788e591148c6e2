"""What a capture and a manifest say of a snapshot: its resources, tables and files."""

from __future__ import annotations

from typing import Annotated

import msgspec

from pipelines.records.shapes.observation import ObservedColumn, RecordShape
from pipelines.shapes.model import Description

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A number that a column of the catalogue holds; a manifest with another one is damaged."""


class ResourceFacts(msgspec.Struct, kw_only=True):
    """The result of reading one resource, as the manifest has it."""

    endpoint: str
    records: Count
    distinct_ids: int
    without_id: int
    pages: int
    x_total: int | None
    requests: int
    seconds: float
    complete: bool
    problems: list[str]
    """Why the listing is not complete."""
    notes: list[str] = []
    """Remarks on a proof that holds."""
    added: int = 0
    deleted: int = 0
    """Records that were added and deleted while it was read, as far as X-Total and the newest pages show that."""
    read_again: int = 0
    """Pages that were read again for that reason."""
    walks: int = 1
    """How often the listing was begun, because the moved records could not be found."""
    resumed: int = 0
    """Pages that an interrupted run had read already."""


class Unreadable(msgspec.Struct, kw_only=True):
    """A resource that the service refuses, or answers in an unknown form: the snapshot has none of its records."""

    status: int | None
    """HTTP status of the refusal; none where the response is not a listing."""
    message: str
    """What was tried, what came back, and what to do."""
    missing_scopes: list[str] = []
    """The scopes that the token lacks, where the service names them."""
    partial: bool
    """Whether the snapshot is partial without it: it was asked for by name, is the publications, or has an unknown form."""
    requests: int


class TableFacts(msgspec.Struct):
    """One file of a snapshot. `path` is relative to the snapshot's folder."""

    path: str
    rows: int
    bytes: int
    sha256: str = ""
    encrypted: bool = False
    key: str = ""
    """Fingerprint of its encryption key."""


class FailedFile(msgspec.Struct):
    """One file whose content could not be fetched. Its name comes from outside."""

    publication_id: int | None
    kind: str
    asset_id: int | None
    name: str | None
    problem: str


class FileTotals(msgspec.Struct):
    """Totals of the files that the records name."""

    count: int = 0
    """Rows of publication_files."""
    bytes: int = 0
    """Of the stored contents, each counted once."""
    contents: int = 0
    """Different contents among the stored files; 0 in manifests that do not have this count."""
    total_bytes: int = 0
    """Of all stored files."""
    new: int = 0
    """Contents that this backup fetched."""
    kept: int = 0
    packed: int = 0
    """Of the kept ones, those that are as the storage sends them: packed."""
    failed: int = 0
    not_fetched: int = 0
    """Left out by `files = false` or --no-files."""
    failures: list[FailedFile] = []
    """The first of the failed ones."""


class Announcement(msgspec.Struct, kw_only=True):
    """Something that the service announces as deprecated, by its name in `X-API-Deprecation` (service.md#deprecation)."""

    name: str
    day: str = ""
    """The day that the service names, such as `2026-12-31`; empty if it names none."""
    since: str
    """The day of the first snapshot with this announcement."""
    is_new: bool = False
    """Whether no earlier snapshot has it."""


class CaptureFacts(msgspec.Struct, kw_only=True):
    """The state of a capture, in capture.json, so that any process can continue it."""

    tenant: str
    snapshot: str
    base_url: str
    api: str
    started_at: str
    key: str = ""
    """Fingerprint of the key for personal data; empty where it is not encrypted."""
    tool: str
    """The Bookferry version that began it. Another version begins anew."""
    wanted: list[str]
    """The resources of its run, sorted."""
    fence: int = 0
    """The number of the lease under which it was copied last for other machines; 0 where it has no copy."""
    resources: dict[str, ResourceFacts] = {}
    unreadable: dict[str, Unreadable] = {}
    tables: dict[str, TableFacts] = {}
    residue: dict[str, dict[str, int]] = {}
    """Resource → residue key → number of records with it."""
    shapes: dict[str, RecordShape] = {}
    """Resource → the fields of its records."""
    observed: dict[str, list[ObservedColumn]] = {}
    """Resource → the columns of its table besides the described ones."""
    description: Description | None = None
    """The service's own description; None until it was asked for."""
    announced: dict[str, str] = {}
    """What the service announced in `X-API-Deprecation`: name → day, empty if it names none."""
    files: FileTotals | None = None
    """None until the files step has ended."""
    files_requests: int = 0
    """Requests to the library for files: on its own host, and for fresh addresses."""

"""manifest.json: its fields, its composition from a finished capture, its checksum, and its decoding."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime

import msgspec

from pipelines.errors import StorageError
from pipelines.humanize import counted
from pipelines.inventory import (
    LAST_DAY_OF_V2,
    LIST_PATHS,
    NOT_LISTED,
    RESOURCES,
    days_left_of,
    default_resources,
    nested_remedy,
    parent_of,
)
from pipelines.records.shapes.observation import ObservedColumn, RecordShape
from pipelines.shapes.changes import changed_description, changed_records
from pipelines.shapes.model import Description
from pipelines.shapes.unread_lists import list_in_words, unread_lists
from pipelines.store.snapshots.facts import (
    Announcement,
    CaptureFacts,
    Count,
    FileTotals,
    ResourceFacts,
    TableFacts,
    Unreadable,
)
from pipelines.version import VERSION

NEW = "NEW:"
"""How a note begins that no snapshot before has."""

MOST_OF_NOTE = 1500
"""Characters of a note about shapes, whose names come from outside."""

SNAPSHOT_FORMAT = "%Y%m%dT%H%M%SZ"
"""The form of a snapshot's name: an instant in UTC. Postgres reads it as one, too."""

FORMAT = 1
"""Version of the layout below `snapshots/`. A newer one is refused."""


class Manifest(msgspec.Struct, kw_only=True):
    """The content of manifest.json. It is written last: a folder without it is not a snapshot."""

    format: int = FORMAT
    tenant: str
    snapshot: str
    """Start of the capture in UTC: 20261120T020000Z."""
    base_url: str
    api: str
    complete: bool
    problems: list[str]
    notes: list[str] = []
    started_at: str
    finished_at: str
    seconds: float
    requests: Count
    tool: str
    run: str = ""
    """The run that published it."""
    resources: dict[str, ResourceFacts]
    unreadable: dict[str, Unreadable] = {}
    """Resources that could not be read; the snapshot has none of their records."""
    not_read: list[str] = []
    """Lists that the service has and no backup reads, such as `/collections/:id/publications`."""
    announced: list[Announcement] = []
    """What the service announces as deprecated, by name."""
    days_left: int | None = None
    """Days until the end of this version of the API, if they are few."""
    files: FileTotals
    tables: dict[str, TableFacts]
    residue: dict[str, dict[str, int]]
    described: msgspec.Raw = msgspec.field(name="description", default=msgspec.Raw(b"null"))
    """The service's own description, still JSON: it is most of a manifest, `status` reads a thousand of these, and hardly anybody asks."""
    shapes: dict[str, RecordShape] = {}
    """Resource → the fields of its records."""
    observed: dict[str, list[ObservedColumn]] = {}
    """Resource → the columns of its table besides the described ones."""
    manifest_sha256: str = ""
    """SHA-256 of this file with an empty string in this place."""

    @property
    def description(self) -> Description | None:
        """The service's own description; `None` where there is none that can be read."""
        with suppress(msgspec.MsgspecError):
            return _DESCRIPTION_DECODER.decode(self.described)
        return None

    @property
    def news(self) -> list[str]:
        """The notes that are new with this snapshot."""
        return [note for note in self.notes if note.startswith(NEW)]


_CHECKSUM = re.compile(rb'"manifest_sha256": "([0-9a-f]{64})"')


def encode_manifest(manifest: Manifest) -> bytes:
    """Returns the content of manifest.json with its own checksum, which reveals any change."""
    without_checksum = msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(manifest, manifest_sha256="")))
    digest = hashlib.sha256(without_checksum).hexdigest().encode()
    return without_checksum.replace(b'"manifest_sha256": ""', b'"manifest_sha256": "' + digest + b'"')


def is_unchanged(content: bytes) -> bool:
    """Whether the content of a manifest.json matches the checksum that it carries."""
    checksums = _CHECKSUM.findall(content)
    without_checksum = _CHECKSUM.sub(b'"manifest_sha256": ""', content)
    return checksums == [hashlib.sha256(without_checksum).hexdigest().encode()]


def compose_manifest(facts: CaptureFacts, now: datetime, before: Sequence[Manifest] = ()) -> Manifest:
    """Returns the manifest of a finished capture. The checksums of its tables must be known.

    `before`: the manifests of earlier snapshots of the library, oldest first.
    """
    announced = _announcements(facts, now, [announcement for manifest in before for announcement in manifest.announced])
    days_left = days_left_of(facts.api, now.date())
    missing = {partial: _unreadable_resources(facts, partial=partial) for partial in (True, False)}
    problems = [f"{resource}: {text}" for resource, listing in facts.resources.items() for text in listing.problems]
    notes = [f"{resource}: {text}" for resource, listing in facts.resources.items() for text in listing.notes]
    files = facts.files or FileTotals()
    problems += missing[True] + _problems_of_files(files)
    notes += missing[False] + _notes_of_files(files)
    left_out = {*RESOURCES}.difference(default_resources(facts.api), facts.resources, facts.unreadable)
    read = {f"/{listing.endpoint}" for listing in facts.resources.values()}
    not_read = unread_lists(facts.description, facts.shapes, left_out, read)
    notes = [
        *_notes_of_lists(facts, not_read),
        *_notes_of_announcements(announced),
        *_notes_of_shapes(facts, before),
        *_notes_of_end(facts, days_left),
        *notes,
    ]
    return Manifest(
        tenant=facts.tenant,
        snapshot=facts.snapshot,
        base_url=facts.base_url,
        api=facts.api,
        complete=is_complete(facts, problems),
        problems=problems,
        notes=notes,
        started_at=facts.started_at,
        finished_at=now.isoformat(timespec="seconds"),
        seconds=round((now - datetime.fromisoformat(facts.started_at)).total_seconds(), 3),
        requests=sum(read.requests for read in facts.resources.values())
        + sum(refusal.requests for refusal in facts.unreadable.values())
        + facts.files_requests,
        tool=f"bookferry {VERSION}",
        resources={name: facts.resources[name] for name in sorted(facts.resources, key=_resource_order)},
        unreadable=facts.unreadable,
        not_read=not_read,
        announced=announced,
        days_left=days_left,
        files=files,
        tables=facts.tables,
        residue=facts.residue,
        described=msgspec.Raw(msgspec.json.encode(facts.description)),
        shapes=facts.shapes,
        observed={resource: columns for resource, columns in facts.observed.items() if columns},
    )


def is_complete(facts: CaptureFacts, problems: Sequence[str]) -> bool:
    """The verdict on a snapshot (I4): every listing was proved (backup/completeness.py), and nothing that belongs to it is lacking."""
    return not problems and all(listing.complete for listing in facts.resources.values())


def _announcements(facts: CaptureFacts, now: datetime, before: Iterable[Announcement]) -> list[Announcement]:
    """The announcements of a capture. One with another day is a new one."""
    since: dict[tuple[str, str], str] = {}
    for announcement in before:
        since.setdefault((announcement.name, announcement.day), announcement.since)
    today = f"{now:%Y-%m-%d}"
    return [
        Announcement(name=name, day=day, since=since.get((name, day), today), is_new=(name, day) not in since)
        for name, day in sorted(facts.announced.items())
    ]


def _notes_of_lists(facts: CaptureFacts, not_read: Sequence[str]) -> list[str]:
    if not not_read:
        return []
    read = facts.resources
    parents = {f"/{path}/:id": read[resource].records for resource, path in LIST_PATHS.items() if resource in read}
    names = ", ".join(
        list_in_words(address)
        + (f" (at least {counted(records, 'request')})" if (records := parents.get(address.rpartition("/")[0])) else "")
        for address in not_read
    )[:MOST_OF_NOTE]
    resources = [
        name for name, path in LIST_PATHS.items() if f"/{path}" in not_read and (facts.api, name) not in NOT_LISTED
    ]
    remedies = [f"To read {' and '.join(resources)}, name them in `resources` of bookferry.toml."] if resources else []
    lacking = f"Not read: {names}. The records do not show what these lists have, so the snapshot lacks that."
    return [" ".join(filter(None, [lacking, *remedies, nested_remedy(not_read)]))]


def _notes_of_announcements(announced: list[Announcement]) -> list[str]:
    new = ", ".join(
        f"{announcement.name}{f' (on {announcement.day})' if announcement.day else ''}"
        for announcement in announced
        if announcement.is_new
    )
    earlier = ", ".join(
        f"{announcement.name} ({f'on {announcement.day}, ' if announcement.day else ''}since {announcement.since})"
        for announcement in announced
        if not announcement.is_new
    )
    loud = f"{NEW} the service announces for the first time as deprecated: {new} (X-API-Deprecation). Replace it in programs of your own."
    return [*([loud] if new else []), *([f"The service announces as deprecated: {earlier}."] if earlier else [])]


def _notes_of_shapes(facts: CaptureFacts, before: Sequence[Manifest]) -> list[str]:
    """What changed in the service's records and in its description since the newest snapshot that has the same resource."""
    descriptions = (manifest.description for manifest in reversed(before))
    described = next((known for known in descriptions if known is not None and not known.problem), None)
    said = changed_description(described, facts.description)
    notes = (
        [f"{NEW} the service's description changed: {'; '.join(said)} (`bookferry describe` shows it)."] if said else []
    )
    for resource, shape in facts.shapes.items():
        earlier = next((manifest for manifest in reversed(before) if resource in manifest.shapes), None)
        changes = changed_records(earlier.shapes[resource], shape) if earlier else []
        if earlier is not None and changes:
            notes.append(f"{NEW} {resource} changed since {earlier.snapshot}: {'; '.join(changes)}.")
    return [note if len(note) <= MOST_OF_NOTE else f"{note[:MOST_OF_NOTE]}…" for note in notes]


def _notes_of_end(facts: CaptureFacts, days_left: int | None) -> list[str]:
    if days_left is None:
        return []
    day = f"{LAST_DAY_OF_V2.day} {LAST_DAY_OF_V2:%B %Y}"
    if days_left > 0:
        when = f"ends in {counted(days_left, 'day')}, on {day}"
    elif days_left == 0:
        when = f"ends today, on {day}"
    else:
        when = f"was due to end on {day}, {counted(-days_left, 'day')} ago, and may stop at any moment"
    move = f"Move to version 3: run `bookferry migrate plan {facts.tenant} TARGET`, or only sign in with it"
    how = f"set api = \"v3\" for '{facts.tenant}' in bookferry.toml, then run `bookferry login {facts.tenant}`"
    return [f"Version 2 of the API {when}. {move} ({how})."]


def _resource_order(resource: str) -> int:
    """Position of a resource in every list, whatever the order of reading."""
    return RESOURCES.index(resource) if resource in RESOURCES else len(RESOURCES)


_LEAVE_OUT_REMEDY = (
    "To leave it out for good, name only the other resources in `resources = [...]` of the tenant in bookferry.toml."
)

_LEFT_OUT_BY_NESTED = "To leave it out for good, take it out of `nested` of the tenant in bookferry.toml."


def _unreadable_resources(facts: CaptureFacts, *, partial: bool) -> list[str]:
    return [
        f"{resource}: could not be read, so the snapshot has none of it. {refusal.message} "
        + (_LEFT_OUT_BY_NESTED if parent_of(resource) else _LEAVE_OUT_REMEDY)
        for resource, refusal in facts.unreadable.items()
        if refusal.partial == partial
    ]


def _problems_of_files(files: FileTotals) -> list[str]:
    if not files.failed:
        return []
    first = f" The first: {files.failures[0].problem}." if files.failures else ""
    count = (
        f"files: {files.failed:,} of {files.count:,} could not be fetched, so the snapshot lacks their content.{first}"
    )
    return [
        f"{count} `bookferry snapshots show` lists them; publication_files has all of them, with the status failed."
    ]


def _notes_of_files(files: FileTotals) -> list[str]:
    not_fetched = f"files: the content of {files.not_fetched:,} was not fetched, because of --no-files or `files = false` of the tenant."
    kept = f"files: {files.packed:,} of {files.count:,} are kept packed, as the storage sends them"
    packed = f"{kept}: publication_files says which, in the column problem. A migration does not upload them under other names."
    return [*([not_fetched] if files.not_fetched else []), *([packed] if files.packed else [])]


class _Header(msgspec.Struct):
    """The fields that the manifests of all versions have."""

    format: int
    tool: str = "unknown"


def decode_manifest(content: bytes, where: str) -> Manifest:
    """Decodes manifest.json, whose address is `where`. Raises `StorageError` where it is damaged or of a newer version."""
    try:
        header = _HEADER_DECODER.decode(content)
        manifest = _MANIFEST_DECODER.decode(content) if header.format <= FORMAT else None
        if manifest is not None:
            _check_instants(manifest)
            _check_tables(manifest)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise StorageError(
            f"{where} is damaged ({error}). Put it back from a copy, or move that snapshot's folder away."
        ) from None
    if manifest is None:
        raise StorageError(f"{where} was written by a newer version ({header.tool}). Update Bookferry to read it.")
    return manifest


def _check_instants(manifest: Manifest) -> None:
    """Raises `ValueError` where an instant is none: all who list snapshots compare and sort by them."""
    datetime.strptime(manifest.snapshot, SNAPSHOT_FORMAT)  # noqa: DTZ007  only its form counts
    for text in (manifest.started_at, manifest.finished_at):
        if datetime.fromisoformat(text).tzinfo is None:
            raise ValueError(f"{text!r} has no time zone")


def _check_tables(manifest: Manifest) -> None:
    """Raises `ValueError` where a resource that was read has no table: the views would leave its records out without a word."""
    for resource in manifest.resources:
        for table in (f"raw_{resource}", resource) if resource in RESOURCES else ():
            if table not in manifest.tables:
                raise ValueError(f"it names no table {table!r}, though {resource} were read")


def columns_before(before: Iterable[Manifest], resource: str) -> list[ObservedColumn]:
    """The observed columns of a resource in earlier snapshots, given oldest first."""
    observed = [manifest.observed[resource] for manifest in before if resource in manifest.observed]
    return observed[-1] if observed else []


_HEADER_DECODER = msgspec.json.Decoder(_Header)
_DESCRIPTION_DECODER: msgspec.json.Decoder[Description | None] = msgspec.json.Decoder(Description | None)
_MANIFEST_DECODER = msgspec.json.Decoder(Manifest)

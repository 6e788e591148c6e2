"""Writes one row of a plan: the record, then its files. Each write is in the journal before it leaves and after it is answered (I8).

Any row can be written again at any time: what the journal says is done is not done again, and what it says was intended is looked up first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, BinaryIO

import msgspec

from pipelines.errors import BookferryError, RefusedError, StorageError, UnclearError
from pipelines.migration.apply.ambiguous_writes import PAUSES, Ambiguous, Lookup
from pipelines.migration.apply.attachments import Attachments, describe_file
from pipelines.migration.apply.payload import NOTHING, RowResult, Uploaded, content_of, without_references
from pipelines.migration.model.comparable import digest
from pipelines.migration.model.journal import (
    ASSET,
    COVER,
    CREATE,
    PATCH,
    FailedWriteError,
    Journal,
    JournalEntry,
    in_doubt,
    is_done,
)
from pipelines.migration.model.plan import CREATE as TO_CREATE
from pipelines.migration.model.plan import UPLOAD, PlannedFile, PlanRow
from pipelines.migration.model.resource_types import RESOURCE_TYPES
from pipelines.migration.plan.files import part_of
from pipelines.records.files import COVER as A_COVER
from pipelines.records.forms import form_of
from pipelines.records.identifiers.kinds import Kinds
from pipelines.records.matching import comparable
from pipelines.records.tables import PERSONAL
from pipelines.records.values import whole_number
from pipelines.service.client import LibraryClient
from pipelines.service.files.upload import Uploads

TRIES = 3
"""Times a POST is sent that ended unclearly and certainly had no effect."""

OpenBlob = Callable[[str], AbstractContextManager[BinaryIO]]
"""Opens a stored content by its SHA-256."""


class Writer:
    """Writes rows, from several threads at once.

    `files_with_record`: a record that is created is sent with its files, which saves a request for each. That is tried on the first one and
    proved by reading it back; where the service does not take them so, files are attached one by one. `knew`: which of some ids of a
    resource were there when the plan was made.
    """

    def __init__(
        self,
        plan: str,
        journal: Journal,
        client: LibraryClient,
        uploads: Uploads,
        kinds: Kinds,
        *,
        knew: Callable[[str, Collection[int]], set[int]],
        open_blob: OpenBlob,
        files_with_record: bool = False,
    ) -> None:
        self._plan = plan
        self._journal = journal
        self._client = client
        self._kinds = kinds
        self._knew = knew
        self._lookup = Lookup(client, kinds, self._new, journal.created_after)
        self._attachments = Attachments(plan, journal, client, uploads, open_blob)
        self._adopting = threading.Lock()
        self._trying = threading.Lock()
        self._together: bool | None = None if files_with_record else False
        """Whether files can be sent with their record; none until that was tried."""
        self.stopped = False
        """Whether the run is being ended, so that what fails now fails because of that."""

    def stop(self) -> None:
        """From now on what fails does so because the run is being ended."""
        self.stopped = True

    def write(self, row: PlanRow, outcome: RowResult) -> None:
        """Do what a row says, as far as it is not done; what was done and what cannot be is told in `outcome`, the rest raises."""
        known = self._known(row)
        cover = next((one for one in row.files if one.kind == A_COVER and one.action == UPLOAD), None)
        if cover is not None and is_done(known.get((COVER, part_of(cover)))):
            cover = None
        try:
            row = self._resolved(row, outcome)
            if row.action == TO_CREATE:
                target_id = self._create(row, known.get((CREATE, "")), cover, outcome)
                known = self._known(row)
            else:
                target_id = row.matched
                payload = {} if is_done(known.get((PATCH, ""))) else row.payload
                if payload or cover is not None:
                    self._change(row, target_id, payload, cover, outcome)
        except FailedWriteError as error:
            outcome.problems.append(str(error))
            return
        for file in row.attached:
            entry = known.get((ASSET, part_of(file)))
            if not is_done(entry):
                try:
                    self._attachments.attach(row, target_id, file, entry)
                except FailedWriteError as error:
                    outcome.problems.append(str(error))
                else:
                    outcome.files += 1
        outcome.patched |= row.action != TO_CREATE and outcome.files > 0

    def settle(self, row: PlanRow, entry: JournalEntry, *, looks: int = 1) -> bool:
        """Look what an earlier process began to create; whether it is not there. Where it is not, the journal stays as it is."""
        try:
            row = self._resolved(row, RowResult(row))
            sent_at, content = datetime.fromisoformat(entry.begun_at), content_of(row.expected)
            return self._found(row, entry.number, content, sent_at, looks=looks) is None
        except FailedWriteError:
            return False

    def _resolved(self, row: PlanRow, outcome: RowResult) -> PlanRow:
        """The row with the ids of what it refers to, which earlier rows have created."""
        if not row.references:
            return row
        payload, expected = dict(row.payload), dict(row.expected)
        for name, reference in row.references.items():
            ids: list[int] = []
            for source_id, known in zip(reference.source_ids, reference.target_ids, strict=True):
                target_id = known or self._journal.became(reference.resource, source_id)
                if target_id is None and reference.as_object:
                    outcome.problems.append(
                        f"{name}: {reference.resource} {source_id} was not created; the next plan sets it."
                    )
                    break
                if target_id is None:
                    kind = CREATE if row.action == TO_CREATE else PATCH
                    number = self._journal.intend(
                        self._plan, row.resource, row.source_id, kind, target_id=row.target_id
                    )
                    raise self._refused(
                        number,
                        f"{name}: {reference.resource} {source_id}, to which it refers, was not created. It is tried again when that is "
                        "there and the plan is applied again.",
                    )
                ids.append(target_id)
            if not ids:
                continue
            payload[name] = reference.value(ids)
            expected[name] = digest(self._compared(row.resource, {name: payload[name]}).get(name))
        return msgspec.structs.replace(row, payload=payload, expected=expected, references={})

    def _known(self, row: PlanRow) -> dict[tuple[str, str], JournalEntry]:
        """What the journal has of this plan's writes of a record."""
        entries = self._journal.of_record(row.resource, row.source_id)
        return {(one.kind, one.part): one for one in entries if one.plan == self._plan}

    def _create(self, row: PlanRow, known: JournalEntry | None, cover: PlannedFile | None, outcome: RowResult) -> int:
        """The record that a row creates, with its cover, and with its files where they can be sent together."""
        if known is not None and is_done(known) and known.target_id is not None:
            target_id, covered = known.target_id, False
        elif self._together is None and row.attached and not in_doubt(known):
            with self._trying:
                together = self._together is not False
                target_id, covered = self._created(row, known, cover, outcome, together=together)
                if self._together is None:
                    self._together = self._shows_files(row, target_id, outcome)
        else:
            target_id, covered = self._created(row, known, cover, outcome, together=bool(self._together))
        if cover is not None and not covered:
            self._change(row, target_id, {}, cover, outcome)
        return target_id

    def _created(
        self, row: PlanRow, known: JournalEntry | None, cover: PlannedFile | None, outcome: RowResult, *, together: bool
    ) -> tuple[int, bool]:
        """The record, and whether there is nothing left to do for its cover: that is sent with it, which saves a request."""
        content, doubtful = content_of(row.expected), in_doubt(known)
        uploaded = NOTHING if doubtful else self._upload(row, cover, outcome, together=together)
        record, sent = None, NOTHING
        if known is not None and doubtful:
            number = known.number
            record = self._found(row, number, content, datetime.fromisoformat(known.begun_at))
        if record is None:
            number = self._intend(row, content)
            record, sent = self._post(row, number, content, uploaded, outcome)
        target_id = int(record["id"])
        self._journal.done(number, target_id=target_id, held=self._held(row, record, row.expected))
        outcome.created = True
        covered = bool(record.get("cover", sent.cover is not None))
        if cover is not None and covered:
            self._note_cover(row, cover, target_id, outcome)
        if sent.files or doubtful:
            outcome.files += self._attachments.note_made(row, target_id, record)
        return target_id, covered or (uploaded.cover is None and not doubtful)

    def _intend(self, row: PlanRow, content: str) -> int:
        key = (self._plan, row.resource, row.source_id, CREATE)
        return self._journal.intend(*key, content=content, wanted=row.expected)

    def _post(
        self, row: PlanRow, number: int, content: str, sent: Uploaded, outcome: RowResult
    ) -> tuple[dict[str, Any], Uploaded]:
        """Create a record; look it up after every unclear end. The record, and what was sent with it."""
        error: BookferryError | None = None
        for attempt in range(TRIES):
            sent_at = self._client.clock.now()
            if attempt:
                self._intend(row, content)  # from now on it may have been made later than the first time
            try:
                answer = self._client.write("POST", row.resource, sent.beside(row.payload))
            except UnclearError as unclear:
                error = unclear
            except RefusedError as refusal:
                row, sent = self._less(row, number, sent, refusal, outcome)
                continue
            except BookferryError:
                self._journal.withdraw(number)  # it had no effect
                raise
            else:
                if isinstance(answer, dict) and whole_number(answer.get("id")) is not None:
                    return answer, sent
            if (record := self._found(row, number, content, sent_at)) is not None:
                return record, sent
        raise self._refused(
            number, f"It could not be created in {TRIES} tries, and is not there: {error or 'the answers named no id'}"
        )

    def _less(
        self, row: PlanRow, number: int, sent: Uploaded, refusal: RefusedError, outcome: RowResult
    ) -> tuple[PlanRow, Uploaded]:
        """What of a refused record may be taken: a reference, or a file, that the service does not take must not cost the record."""
        if (alone := without_references(row, refusal, outcome)) is not None:
            return alone, sent
        if sent:
            return row, NOTHING
        raise self._refused(number, str(refusal), refusal.status) from None

    def _shows_files(self, row: PlanRow, target_id: int, outcome: RowResult) -> bool:
        """Whether a record that was read back has the files that were sent with it."""
        record = self._client.get_record(f"{row.resource}/{target_id}")
        outcome.files += self._attachments.note_made(row, target_id, record)
        known = self._known(row)
        return all(is_done(known.get((ASSET, part_of(one)))) for one in row.attached)

    def _change(
        self, row: PlanRow, target_id: int, payload: Mapping[str, Any], cover: PlannedFile | None, outcome: RowResult
    ) -> None:
        """Change fields and set the cover, in one request; may be repeated at any time."""
        sent = self._upload(row, cover, outcome, together=False)
        if not payload and not sent:
            return
        wanted = {name: row.expected.get(name) for name in payload}
        number = None
        if payload:
            number = self._journal.intend(
                self._plan,
                row.resource,
                row.source_id,
                PATCH,
                target_id=target_id,
                wanted=wanted,
                before=None if row.resource in PERSONAL else row.before,  # the plan has it, encrypted
            )
        try:
            answer = self._client.write("PATCH", f"{row.resource}/{target_id}", sent.beside(payload))
        except RefusedError as refusal:
            alone = without_references(row, refusal, outcome)
            if alone is not None and alone.payload:
                self._change(alone, target_id, alone.payload, cover, outcome)
                return
            if number is not None:
                self._journal.refused(number, str(refusal), refusal.status)
            raise FailedWriteError(str(refusal)) from None
        if number is not None:
            held = self._held(row, answer, wanted) if isinstance(answer, dict) else wanted
            self._journal.done(number, target_id=target_id, held=held)
            outcome.patched = True
        if cover is not None and sent:
            self._note_cover(row, cover, target_id, outcome)

    def _upload(self, row: PlanRow, cover: PlannedFile | None, outcome: RowResult, *, together: bool) -> Uploaded:
        """What is sent with a record; what cannot be uploaded is told, and the record goes without."""
        files = row.attached if together else []
        uploaded = [(one, sent) for one in files if (sent := self._uploaded(row, one, outcome)) is not None]
        return Uploaded(self._uploaded(row, cover, outcome) if cover is not None else None, tuple(uploaded))

    def _uploaded(self, row: PlanRow, file: PlannedFile, outcome: RowResult) -> dict[str, Any] | None:
        try:
            return self._attachments.uploaded(file)
        except (RefusedError, StorageError) as refusal:
            told = f"{describe_file(file)}: {refusal}"
            kind = COVER if file.kind == A_COVER else ASSET
            number = self._journal.intend(self._plan, row.resource, row.source_id, kind, part_of(file))
            self._journal.refused(number, told, getattr(refusal, "status", None))
            outcome.problems.append(told)
            return None

    def _note_cover(self, row: PlanRow, cover: PlannedFile, target_id: int, outcome: RowResult) -> None:
        key = (self._plan, row.resource, row.source_id, COVER, part_of(cover))
        self._journal.done(self._journal.intend(*key, target_id=target_id), target_id=target_id)
        outcome.files += 1

    def _found(
        self, row: PlanRow, number: int, content: str, sent_at: datetime, *, looks: int = len(PAUSES)
    ) -> dict[str, Any] | None:
        """The record that an unclear POST made, if it made one. Parks the entry where nobody can tell."""
        if row.resource in RESOURCE_TYPES:
            other = RESOURCE_TYPES[row.resource]
            finding = self._lookup.other(other, row.payload, row.expected, sent_at=sent_at, looks=looks)
        else:
            finding = self._lookup.publication(row.payload, row.expected, sent_at=sent_at, looks=looks)
        if finding is None:
            return None
        with self._adopting:  # of twins, each takes another one
            if isinstance(finding, Ambiguous):
                ids, why = finding.ids, "which differ from it"
            else:
                records = {one["id"]: one for one in finding.records}
                free = sorted(self._new(row.resource, records))
                if free and len(free) <= self._journal.twins(row.resource, content):
                    self._journal.done(number, target_id=free[0], held=self._held(row, records[free[0]], row.expected))
                    return records[free[0]]
                ids, why = sorted(records), "more than were sent"
        shown = ", ".join(map(str, ids[:5]))
        told = (
            f"Whether it was created cannot be told: the answer was lost, and the target now has {shown}, {why}. A person must look; "
            "delete there what is superfluous, then apply the plan again."
        )
        self._journal.parked(number, told)
        raise FailedWriteError(told)

    def _refused(self, number: int, told: str, status: int | None = None) -> FailedWriteError:
        self._journal.refused(number, told, status)
        return FailedWriteError(told)

    def _compared(self, resource: str, record: Mapping[str, Any]) -> dict[str, str]:
        """Field → what is compared of it."""
        if other := RESOURCE_TYPES.get(resource):
            return other.compared(other.values(record))
        return comparable(form_of(record, self._kinds).fields, self._kinds)

    def _held(self, row: PlanRow, record: Mapping[str, Any], wanted: Mapping[str, str | None]) -> dict[str, str | None]:
        """Field → digest of what the service says it holds; what was sent where the answer says nothing of any field."""
        if not any(name in record for name in wanted):
            return dict(wanted)
        shown = self._compared(row.resource, record)
        return {name: digest(shown.get(name)) for name in wanted}

    def _new(self, resource: str, ids: Iterable[int]) -> set[int]:
        """Those of which nobody knew when the plan was made, and that are not what another write made."""
        wanted = set(ids)
        return wanted - self._knew(resource, wanted) - self._journal.known(resource, wanted) if wanted else wanted

"""The references of a row: ids of records that were created meanwhile, links, and what the target lacks (service.md#references)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import RefusedError
from pipelines.migration.apply.references import References, UntriedReferenceError, own_references
from pipelines.migration.model.actions import Action, FileAction
from pipelines.migration.model.field_mapping import FieldMapping
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import FailedWriteError, WriteKind, WriteState
from pipelines.migration.model.plan import PlannedFile, PlannedReference, PlanRow, Referred
from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.model.resource_types import PUBLICATIONS, USERS, ResourceType
from pipelines.records.files import COVER
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.service.client import LibraryClient
from pipelines.state.local import LocalState
from tests.migration.sample_plans import TYPES, row
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, Script, ScriptedServer

REVIEWED = publication_type(
    STANDARD_KINDS,
    learned=ResourceType(PUBLICATIONS, {"reviewer": FieldMapping(leads_to=USERS, sent_as="object")}, ()),
)
"""Publications with a field that the service does not document."""

NOT_FOUND = RefusedError("404 Not Found", status=404, code="RecordNotFound")


class Target:
    """A library that answers every question about an account in one way. It made user 80 of the source's user 8, and refused user 9."""

    def __init__(self, serve: Callable[[Script], ScriptedServer], client_for: Callable[..., LibraryClient]) -> None:
        self.answer = Answer({"id": 9})
        self.server = serve(lambda _request: self.answer)
        self.client = client_for(self.server.url)

    @property
    def asked(self) -> list[str]:
        """The paths that were requested."""
        return [request.path for request in self.server.received]


@pytest.fixture
def target(serve: Callable[[Script], ScriptedServer], client_for: Callable[..., LibraryClient]) -> Target:
    return Target(serve, client_for)


@pytest.fixture
def journal(tmp_path: Path, clock: ManualClock) -> Iterator[Journal]:
    with closing(Journal(LocalState(tmp_path / "state.db"), "https://a", "https://b", clock)) as journal:
        journal.done(journal.intend("plan", "users", 8, WriteKind.CREATE), target_id=80, held={})
        journal.refused(journal.intend("plan", "users", 9, WriteKind.CREATE), "422")
        yield journal


@pytest.fixture
def references(journal: Journal, target: Target) -> References:
    return References("plan", journal, {**TYPES, PUBLICATIONS: REVIEWED}, target.client)


def to_user(source_id: int, *, later: bool = False) -> PlannedReference:
    """A reference to an account that is still to be created."""
    return PlannedReference([Referred("users", source_id, None)], {"source": source_id}, later=later)


def book(fields: dict[str, Any], **values: Any) -> PlanRow:
    return row(1, Action.CREATE, payload=fields, expected=dict.fromkeys(fields, "digest"), **values)


def test_a_row_waits_for_the_records_of_its_own_resource_that_are_to_be_created() -> None:
    """Not for those that are there, of other resources, or linked later."""
    own = "publications"
    found = {
        "parent_id": PlannedReference([Referred(own, 5, None), Referred(own, 6, 60)], [{"source": 5}, 60]),
        "sequel_id": PlannedReference([Referred(own, 7, None)], {"source": 7}, later=True),
        "contributor": to_user(8),
    }
    assert own_references(book({}, references=found)) == {5}


def test_a_row_gets_the_ids_of_what_was_created_and_no_links(references: References) -> None:
    problems: list[str] = []
    planned = book({"title": "A book"}, references={"contributor": to_user(8), "reviewer": to_user(9, later=True)})
    found = references.resolve(planned, problems)
    assert (found.payload, found.references) == ({"title": "A book", "contributor": {"id": 80}}, {})
    assert (found.expected["title"], [*found.expected]) == ("digest", ["title", "contributor"])
    assert found.expected["contributor"] is not None
    assert problems == []


def test_a_publication_goes_without_a_reference_to_what_was_not_created(references: References) -> None:
    problems: list[str] = []
    planned = book({"title": "A book"}, references={"contributor": to_user(9)})
    assert references.resolve(planned, problems).payload == {"title": "A book"}
    assert problems == ["contributor: users 9 was not created; the next plan sets it."]


@pytest.mark.parametrize(
    ("resource", "later", "kind"),
    [("publications", True, WriteKind.LINK), ("tasks", False, WriteKind.CREATE), ("tasks", True, WriteKind.LINK)],
)
def test_a_record_that_cannot_refer_is_refused_until_the_next_apply(
    references: References, journal: Journal, resource: str, *, later: bool, kind: WriteKind
) -> None:
    """A link, and any record but a publication: the journal says what failed."""
    planned = book({}, resource=resource, references={"contributor": to_user(9, later=later)})
    with pytest.raises(FailedWriteError, match=r"contributor: users 9, to which it refers, was not created"):
        references.links(planned, []) if later else references.resolve(planned, [])
    [entry] = journal.of_record(resource, 1)
    assert (entry.kind, entry.state) == (kind, WriteState.REFUSED)


@pytest.mark.parametrize("later", [False, True])
def test_a_row_waits_for_a_record_that_nobody_tried_to_create(
    references: References, journal: Journal, *, later: bool
) -> None:
    """An apply with --only or --limit leaves it out: nothing failed, and the journal has nothing of it."""
    planned = book({}, references={"contributor": to_user(7, later=later)})
    with pytest.raises(UntriedReferenceError):
        references.links(planned, []) if later else references.resolve(planned, [])
    assert journal.of_record("publications", 1) == []


def test_links_are_a_change_of_these_fields_alone(references: References) -> None:
    """Its files were sent with the record; what the fields had before is what an undo puts back."""
    before = {"reviewer": {"id": 3}, "title": "Old"}
    planned = book(
        {"title": "A book"},
        before=before,
        files=[PlannedFile(kind=COVER, position=0, action=FileAction.UPLOAD)],
        references={"contributor": to_user(9), "reviewer": to_user(8, later=True)},
    )
    found = references.links(planned, [])
    assert (found.payload, found.before) == ({"reviewer": {"id": 80}}, {"reviewer": {"id": 3}})
    assert ([*found.expected], found.references, found.files) == (["reviewer"], {}, [])


def test_a_publication_is_sent_without_what_the_target_certainly_lacks(references: References, target: Target) -> None:
    """Once for each try, and named once."""
    target.answer = Answer({"error": {"code": "RecordNotFound"}}, status=404)
    problems: list[str] = []
    planned = book({"title": "A book", "contributor": {"id": 9}})
    for _ in range(2):
        found = references.without_missing(planned, NOT_FOUND, problems)
        assert found is not None
        assert (found.payload, found.expected) == ({"title": "A book"}, {"title": "digest"})
    assert problems == ["contributor 9: not sent, the target has no such record (users/9). 404 Not Found"]
    assert target.asked == ["/api/v2/users/9"] * 2


@pytest.mark.parametrize(
    "answer",
    [Answer({"id": 9}), Answer({"error": {"code": "RouteNotFound"}}, status=404), Answer({}, status=403)],
    ids=["it is there", "there is no such address", "it may not be read"],
)
def test_a_reference_that_may_be_good_is_not_blamed(references: References, target: Target, answer: Answer) -> None:
    target.answer = answer
    assert references.without_missing(book({"contributor": {"id": 9}}), NOT_FOUND, []) is None
    assert target.asked == ["/api/v2/users/9"]


@pytest.mark.parametrize(
    ("planned", "refusal"),
    [
        (book({"contributor": {"id": 9}}, resource="tasks"), NOT_FOUND),
        (book({"contributor": {"id": 9}}), RefusedError("404", status=404, code="StorageNotFound")),
        (book({"contributor": {"id": 9}}), RefusedError("422", status=422, code="RecordNotFound")),
        (book({"title": "A book"}), NOT_FOUND),
    ],
    ids=["another resource", "another code", "another status", "no reference"],
)
def test_nothing_is_looked_up_where_no_reference_can_be_the_reason(
    references: References, target: Target, planned: PlanRow, refusal: RefusedError
) -> None:
    """Each look-up costs a request."""
    target.answer = Answer({"error": {"code": "RecordNotFound"}}, status=404)
    assert references.without_missing(planned, refusal, []) is None
    assert target.asked == []

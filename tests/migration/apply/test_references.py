"""References of a row to what was not created, or to what the target lacks (service.md#references)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import RefusedError
from pipelines.migration.apply.references import References
from pipelines.migration.model.actions import Action
from pipelines.migration.model.field_mapping import FieldMapping
from pipelines.migration.model.journal import Journal
from pipelines.migration.model.journal_entries import FailedWriteError, WriteKind, WriteState
from pipelines.migration.model.plan import PlannedReference, PlanRow, Referred
from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.model.resource_types import ResourceType
from pipelines.migration.model.step import Step
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.service.client import LibraryClient
from pipelines.state.local import LocalState
from tests.migration.sample_plans import TYPES, plan_of, row
from tests.service.manual_clock import ManualClock
from tests.service.scripted import Answer, Script, ScriptedServer

NOT_FOUND = RefusedError("404 Not Found", status=404, code="RecordNotFound")


class Target:
    """A library that answers every question about an account in one way. It refused user 9 of the source."""

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
        journal.refused(journal.intend("plan", "users", 9, WriteKind.CREATE), "422")
        yield journal


@pytest.fixture
def references(journal: Journal, target: Target, tmp_path: Path) -> References:
    plan = plan_of(tmp_path / "plan")
    authors = FieldMapping(many=True, entries={"user_id": FieldMapping(leads_to="users")})
    publications = publication_type(STANDARD_KINDS, learned=ResourceType("publications", {"authors": authors}, ()))
    types = {**TYPES, "publications": publications}
    return References(Step(plan, journal, target.client, types, read_listing=pytest.fail, open_blob=pytest.fail))


def book(fields: dict[str, Any], **values: Any) -> PlanRow:
    return row(1, Action.CREATE, payload=fields, expected=dict.fromkeys(fields, "digest"), **values)


@pytest.mark.parametrize(
    ("resource", "later", "kind"),
    [("publications", True, WriteKind.LINK), ("tasks", False, WriteKind.CREATE), ("tasks", True, WriteKind.LINK)],
)
def test_a_record_that_cannot_refer_is_refused_until_the_next_apply(
    references: References, journal: Journal, resource: str, *, later: bool, kind: WriteKind
) -> None:
    """A link, and any record but a publication: the journal says what failed."""
    reference = PlannedReference([Referred("users", 9, None)], {"source": 9}, later=later)
    planned = book({}, resource=resource, references={"contributor": reference})
    with pytest.raises(FailedWriteError, match=r"contributor: users 9, to which it refers, was not created"):
        references.resolve(planned, [], later=later)
    [entry] = journal.of_record(resource, 1)
    assert (entry.kind, entry.state) == (kind, WriteState.REFUSED)


def test_a_publication_is_sent_without_what_the_target_certainly_lacks(references: References, target: Target) -> None:
    """Once for each try, and named once."""
    target.answer = Answer({"error": {"code": "RecordNotFound"}}, status=404)
    problems: list[str] = []
    planned = book({"title": "A book", "contributor": {"id": 9}})
    for _ in range(2):
        reduced = references.without_missing(planned, NOT_FOUND, problems)
        assert reduced is not None
        assert (reduced.payload, reduced.expected) == ({"title": "A book"}, {"title": "digest"})
    assert problems == ["contributor 9: not sent, the target has no such record (users/9). 404 Not Found"]
    assert target.asked == ["/api/v2/users/9"] * 2


def test_authors_are_sent_without_what_the_target_certainly_lacks(references: References, target: Target) -> None:
    target.answer = Answer({"error": {"code": "RecordNotFound"}}, status=404)
    authors = [{"name": "A", "user_id": 9}, {"name": "B"}]
    reduced = references.without_missing(book({"authors": authors}), NOT_FOUND, [])
    assert reduced is not None
    assert (reduced.payload, target.asked) == ({"authors": [{"name": "A"}, {"name": "B"}]}, ["/api/v2/users/9"])
    assert reduced.expected != {"authors": "digest"}


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

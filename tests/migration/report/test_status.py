"""The status of a plan, without a request; and one record from all sides."""

from __future__ import annotations

import pytest

from pipelines.errors import ConfigurationError
from pipelines.migration.apply.run import Selection
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.conftest import RECORDS
from tests.migration.library_pair import LibraryPair
from tests.migration.verify.test_run import target_ids


def test_a_status_has_what_is_done_and_what_remains(pair: LibraryPair, snapshot: Snapshot) -> None:
    plan = pair.plan(snapshot)
    all_of_it = {"create": RECORDS, "patch": 0, "links": 0, "merge": 0, "files": 3, "covers": 2}
    status = pair.status(plan)
    assert (status.planned, status.done, status.complete) == (all_of_it, dict.fromkeys(all_of_it, 0), False)
    assert (status.requests_left, status.last_change, status.verification) == (plan.facts.requests, "", None)
    pair.sandbox.fault("status", pair.target, method="POST", path="^/api/v3/publications", status=422)
    result = pair.apply(plan, selection=Selection(limit=10))
    assert (result.created, result.failed) == (9, 1)
    status = pair.status(plan)
    assert (status.done["create"], status.refused, status.complete) == (9, 1, False)
    assert status.requests_left == plan.facts.requests - 9
    [finding] = status.findings
    assert (finding.field, finding.code) == ("create", "refused")
    assert "422" in finding.problem
    pair.apply(plan)
    verification = pair.verify(plan)
    status = pair.status(plan)
    assert (status.done, status.complete, status.requests_left, status.findings) == (all_of_it, True, 0, [])
    assert status.verification == verification
    asked = pair.requests()
    pair.status(plan)
    assert pair.requests() == asked


def test_a_record_is_displayed_from_all_sides(pair: LibraryPair, snapshot: Snapshot) -> None:
    plan = pair.plan(snapshot)
    with pair.migration() as migration:
        planned = {field.field: field for field in migration.three_way(plan, 3).fields}
    title = planned["title"]
    assert (title.source, title.wanted, title.held, title.live, title.equal) == (
        "The Dead Key",
        "The Dead Key",
        None,
        None,
        False,
    )
    pair.apply(plan)
    number = target_ids(pair, plan)[3]
    pair.call("PATCH", f"publications/{number}", {"title": "Another title"})
    with pair.migration() as migration:
        asked = pair.requests()
        view = migration.three_way(plan, 3)
        assert pair.requests() == asked + 1
        with pytest.raises(ConfigurationError, match="no publication 100000"):
            migration.three_way(plan, 100_000)
    assert (view.target_id, view.action, view.state, view.is_there) == (number, "create", "done", True)
    title, authors = view.fields[0], next(field for field in view.fields if field.field == "authors")
    assert (title.wanted, title.held, title.live, title.equal) == (
        "The Dead Key",
        "The Dead Key",
        "Another title",
        False,
    )
    assert (authors.wanted, authors.live, authors.equal) == (authors.source, authors.source, True)
    pair.call("DELETE", f"publications/{number}")
    later = pair.plan(snapshot)
    with pair.migration() as migration:
        assert not any(migration.three_way(any_plan, 3).is_there for any_plan in (plan, later))

"""A 404 is blamed on a reference only where the target certainly lacks the record that it names (service.md#references)."""

from __future__ import annotations

import pytest

from pipelines.migration.limits import NO_LIMITS
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import RECORDS, contributors, delete_user, records_of


def refuse(pair: LibraryPair, code: str, times: int = 1) -> None:
    """Answer 404 to publications with a contributor; the first three that are created have one."""
    pair.sandbox.fault("status", pair.target, method="POST", path="/publications$", status=404, code=code, times=times)


@pytest.mark.long
@pytest.mark.parametrize("code", ["", "RecordNotFound"])
def test_a_404_that_no_reference_explains_refuses_the_record(pair: LibraryPair, snapshot: Snapshot, code: str) -> None:
    """No record is written without its contributor because the service said something else; every contributor is there."""
    plan = pair.plan(snapshot, resources=["users"])
    refuse(pair, code, times=4)
    applied = pair.apply(plan, limits=NO_LIMITS)  # the first four may be refused before any other is taken
    refused = [failure for failure in applied.failures if failure.resource == "publications"]
    assert len(refused) == 4
    assert all("404" in failure.problem and "no such record" not in failure.problem for failure in refused)
    assert len(records_of(pair, "publications")) == RECORDS - 4
    again = pair.apply(plan)
    assert (again.failed, again.left, again.quarantined) == (0, 0, 0)
    assert again.lacking.total == 1, "the organization, which no endpoint creates"
    assert contributors(pair) == contributors(pair, "library")


def test_an_account_that_cannot_be_looked_up_refuses_the_record(pair: LibraryPair, snapshot: Snapshot) -> None:
    """Without the right to read accounts it stays unclear what was not found."""
    plan = pair.plan(snapshot, resources=["users"])
    delete_user(pair, "Marta")
    pair.sandbox.fault("status", pair.target, method="GET", path="/users/", status=403, code="AccessDenied", times=9)
    applied = pair.apply(plan)
    [failure] = applied.failures
    assert "no such record" not in failure.problem
    assert len(records_of(pair, "publications")) == RECORDS - 1

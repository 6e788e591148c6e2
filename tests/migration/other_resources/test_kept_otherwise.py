"""Other resources than publications in a service that keeps values otherwise than they are sent."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.migration.model.actions import Action
from tests.migration.library_pair import LibraryPair
from tests.migration.other_resources.full_library import records_of
from tests.migration.test_kept_otherwise import ChangingWay

RESOURCES = ["users", "collections"]


class _ShorterWay(ChangingWay):
    """Keeps only the first publication of a collection as well."""

    def keeps(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record as the service keeps it."""
        lists = {"publication_ids": record["publication_ids"][:1]} if "publication_ids" in record else {}
        return super().keeps(record) | lists


@pytest.mark.long
def test_every_later_plan_names_it_and_none_patches_it(pair: LibraryPair) -> None:
    """Of people only the names of fields."""
    with _ShorterWay(pair.sandbox.url, most=12) as way:
        through = pair.through_proxy(way.url)
        user = max(records_of(pair, "users"))
        pair.call("DELETE", f"users/{user}")
        snapshot = through.newest()
        first = through.apply(through.plan(snapshot, resources=RESOURCES))
        assert (first.failed, first.left) == (0, 0), first.failures
        for overwrite in (False, True, False):
            plan = through.plan(snapshot, resources=RESOURCES, overwrite=overwrite)
            assert plan.facts.empty
            kept = {(row.resource, row.source_id): row for row in plan.rows(Action.UNCHANGED) if row.kept}
            assert {resource for resource, _ in kept} >= {"publications", "users", "collections"}
            applied = through.apply(plan)
            assert not applied.complete
            assert {(item.resource, item.source_id) for item in applied.findings} == {*kept}
            assert not [item for item in applied.findings if item.resource == "users" and "«" in item.problem]
            assert through.status(plan).lacking == applied.lacking
            proof = through.verify(plan)
            assert not proof.equal
            assert {(finding.resource, finding.source_id) for finding in proof.findings} == {*kept}
            reason = "the service keeps it otherwise than an earlier plan sent it"
            assert all(finding.lacking or finding.problem.endswith(reason) for finding in proof.findings)
            shortened = [finding for finding in proof.findings if finding.field == "publication_ids"]
            assert shortened
            assert all(finding.found in finding.wanted.split("; ") for finding in shortened), shortened

"""A library is moved into another: exactly what is planned is written, once (I8)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from pipelines.errors import SafetyLimitError, StopError, TemporaryError
from pipelines.migration.apply.run import Selection, check_limits
from pipelines.migration.limits import NO_LIMITS, Limits
from pipelines.migration.model.plan import CONFLICTS, FACTS, ROWS
from pipelines.migration.model.plan_folders import find_plan
from pipelines.records.forms import form_of
from pipelines.store.snapshots.snapshots import Snapshot
from tests.migration.conftest import RECORDS
from tests.migration.library_pair import LibraryPair


def comparable(record: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record that are the same in both libraries."""
    fields = form_of(record).fields
    return {name: value for name, value in fields.items() if name not in {"contributor", "organization"}}


def source_records(snapshot: Snapshot) -> list[dict[str, Any]]:
    raw = pq.read_table(snapshot.path / "raw" / "publications.parquet").sort_by("id")
    return [json.loads(payload) for payload in raw.column("payload").to_pylist()]


def test_a_plan_that_was_altered_is_refused(pair: LibraryPair, snapshot: Snapshot) -> None:
    plan = pair.plan(snapshot)
    rows, facts = plan.path(ROWS), plan.path(FACTS)
    content = rows.read_bytes()
    rows.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(StopError, match="altered"):
        pair.apply(plan)
    rows.write_bytes(content)
    facts.write_text(facts.read_text().replace(f'"create": {RECORDS}', f'"create": {RECORDS - 1}'))
    with pair.migration() as migration, pytest.raises(StopError, match="altered"):
        find_plan(migration.data, plan.name)
    assert pair.writes() == []


def test_a_plan_is_refused_once_the_target_has_what_it_would_create(pair: LibraryPair, snapshot: Snapshot) -> None:
    plan = pair.plan(snapshot)
    fields = comparable(source_records(snapshot)[0])
    pair.call("POST", "publications", fields)
    with pytest.raises(StopError, match=r"stale.*1 of its records.*seems to be there now"):
        pair.apply(plan)
    assert len(pair.publications()) == 1


def test_a_record_of_the_target_that_a_person_gave_to_another_one_makes_no_plan_stale(
    pair: LibraryPair, snapshot: Snapshot
) -> None:
    """It fits one record of the source by its identifiers; a person said that it is another one, so that the first one is new."""
    record, other_record = [comparable(record) for record in source_records(snapshot) if record.get("doi")][:2]
    target = pair.call("POST", "publications", {name: record[name] for name in ("title", "identifiers")})
    table = pair.plan(snapshot).path(CONFLICTS)
    number = next(record["id"] for record in source_records(snapshot) if comparable(record) == other_record)
    table.write_text(f"resource\tsource_id\tdecision\npublications\t{number}\tsource {target['id']}\n")
    plan = pair.plan(snapshot)
    assert plan.facts.counts["publications"] == {"create": RECORDS - 1, "patch": 1}
    assert pair.apply(plan, selection=Selection(limit=10)).failed == 0
    assert pair.apply(plan).complete
    moved = pair.publications()
    assert len(moved) == RECORDS
    assert next(record for record in moved if record["id"] == target["id"])["title"] == other_record["title"]


def test_too_many_failures_stop_an_apply_with_their_number(pair: LibraryPair, snapshot: Snapshot) -> None:
    plan = pair.plan(snapshot)
    pair.sandbox.fault("status", pair.target, method="POST", path="publications$", status=422, times=1000)
    with pytest.raises(
        SafetyLimitError, match=r"4 of \d+ records could not be written .*the limits are 3 and"
    ) as stopped:
        pair.apply(plan, limits=Limits(failures=3))
    assert "This answer was ordered" in str(stopped.value)
    pair.sandbox.reset("faults")
    assert pair.apply(plan).complete


def test_a_service_that_is_down_for_a_while_is_waited_for(pair: LibraryPair, snapshot: Snapshot) -> None:
    """An apply that runs for days survives an outage that outlasts the tries of one request: no record fails, and the run goes on."""

    def goes_down() -> None:
        pair.sandbox.reset("faults")
        pair.sandbox.fault("status", pair.target, method="POST", path="publications$", status=503, times=12)
        pair.sandbox.fault("status", pair.target, method="GET", path=r"publications\?", status=503, times=7)

    plan = pair.plan(snapshot)
    goes_down()
    with pytest.raises(TemporaryError, match="7 tries"):
        pair.apply(plan, limits=Limits(patience=0))
    goes_down()
    applied = pair.apply(plan)
    assert (applied.failed, applied.complete) == (0, True)
    assert len(pair.publications()) == RECORDS


def test_a_plan_that_changes_most_of_the_target_is_refused(pair: LibraryPair, snapshot: Snapshot) -> None:
    plan = pair.plan(snapshot)
    pair.apply(plan)
    facts = msgspec.structs.replace(plan.facts, counts={"publications": {"patch": 150}})
    facts.target.records["publications"] = 200
    plan.facts = facts
    with pytest.raises(SafetyLimitError, match=r"150 of the 200 publications in 'new', 75 %, and the limit is 50 %"):
        check_limits(plan, Limits())
    check_limits(plan, Limits(touched_percent=80))
    check_limits(plan, NO_LIMITS)
    facts.counts["publications"]["patch"] = 90
    check_limits(plan, Limits())

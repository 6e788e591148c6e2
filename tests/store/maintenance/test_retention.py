"""`snapshots prune`: what the policy keeps, what is never removed, and a kill in the middle."""

from __future__ import annotations

import hashlib
import itertools
import shutil
import signal
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import StorageError
from pipelines.settings.retention_and_notify import RetentionSettings
from pipelines.state.local import LocalState
from pipelines.store.catalogue import open_catalogue
from pipelines.store.maintenance.retention import PruneResult, prune, reasons_to_keep
from pipelines.store.maintenance.verification import verify
from pipelines.store.snapshots.facts import FileTotals, ResourceFacts
from pipelines.store.snapshots.manifest import Manifest
from pipelines.store.snapshots.snapshots import DataFolder, Snapshot, blob_key, newest_complete, snapshot_id
from tests.store.maintenance.test_verification import write_files
from tests.store.snapshot_factory import (
    STARTED_AT,
    assert_intact,
    make_snapshot,
    new_capture,
    publication_payloads,
)
from tests.store.worker import Worker

UTC_ZONE = ZoneInfo("UTC")
FACTS = ResourceFacts(
    endpoint="publications/all",
    records=1,
    distinct_ids=1,
    without_id=0,
    pages=1,
    x_total=1,
    requests=1,
    seconds=1,
    complete=True,
    problems=[],
)


def snapshot(moment: datetime, *, complete: bool = True, resources: Sequence[str] = ("publications",)) -> Snapshot:
    """A snapshot with a manifest only."""
    manifest = Manifest(
        tenant="old",
        snapshot=snapshot_id(moment),
        base_url="https://library.example.org",
        api="v3",
        complete=complete,
        problems=[],
        started_at=moment.isoformat(),
        finished_at=moment.isoformat(),
        seconds=1,
        requests=1,
        tool="bookferry",
        resources=dict.fromkeys(resources, FACTS),
        files=FileTotals(),
        tables={},
        residue={},
    )
    return Snapshot(Path(f"/nowhere/{manifest.snapshot}"), manifest)


def days_to_keep(history: Sequence[Snapshot], zone: ZoneInfo = UTC_ZONE, **policy: int) -> list[str]:
    """The days and hours of the snapshots to keep."""
    why = reasons_to_keep(history, RetentionSettings(**policy), zone)
    return [snapshot.manifest.snapshot[4:11] for snapshot in history if snapshot.name in why]


class TestPolicy:
    """One snapshot for each of the newest days, weeks and months: the newest of each."""

    def test_days_weeks_and_months(self) -> None:
        """From the 1st of October to the 9th of November: a Monday."""
        nights = [snapshot(datetime(2026, 10, 1, 2, tzinfo=UTC) + timedelta(days=day)) for day in range(40)]
        assert days_to_keep(nights, keep_daily=2, keep_weekly=3, keep_monthly=12) == [
            "1031T02",
            "1101T02",
            "1108T02",
            "1109T02",
        ]

    def test_a_day_is_one_of_the_librarys_zone(self) -> None:
        """22:30 and 23:30 in UTC are two days in Vienna."""
        history = [snapshot(datetime(2026, 11, 19, hour, 30, tzinfo=UTC)) for hour in (22, 23)]
        assert days_to_keep(history, keep_daily=2) == ["1119T23"]
        assert days_to_keep(history, ZoneInfo("Europe/Vienna"), keep_daily=2) == ["1119T22", "1119T23"]


moments = st.integers(0, 450 * 24).map(lambda hours: datetime(2025, 11, 1, tzinfo=UTC) + timedelta(hours=hours))
any_snapshot = st.builds(
    snapshot,
    moments,
    complete=st.booleans(),
    resources=st.sampled_from([("publications",), ("users",), ("publications", "users")]),
)
histories = st.lists(any_snapshot, max_size=40, unique_by=lambda snapshot: snapshot.name).map(
    lambda history: sorted(history, key=lambda snapshot: snapshot.name)
)
counts = st.integers(0, 6)
policies = (
    st.fixed_dictionaries(dict.fromkeys(("keep_last", "keep_daily", "keep_weekly", "keep_monthly"), counts))
    .filter(lambda policy: any(policy.values()))
    .map(lambda policy: RetentionSettings(**policy))
)
zones = st.sampled_from(["UTC", "Europe/Vienna", "Pacific/Auckland", "America/Los_Angeles"]).map(ZoneInfo)


@pytest.mark.long
class TestProperties:
    """Properties of any history and any policy."""

    @given(histories, policies, zones)
    def test_the_newest_complete_one_stays(
        self, history: list[Snapshot], policy: RetentionSettings, zone: ZoneInfo
    ) -> None:
        """The newest complete snapshot of every resource stays, too: no view loses its rows."""
        why = reasons_to_keep(history, policy, zone)
        newest = newest_complete(history)
        assert newest is None or newest.name in why
        for resource in ("publications", "users"):
            holding = [
                snapshot
                for snapshot in history
                if snapshot.manifest.complete and resource in snapshot.manifest.resources
            ]
            assert not holding or holding[-1].name in why

    @given(histories, policies, zones)
    def test_a_second_run_removes_nothing(
        self, history: list[Snapshot], policy: RetentionSettings, zone: ZoneInfo
    ) -> None:
        """Repeated pruning removes nothing more."""
        first = reasons_to_keep(history, policy, zone)
        remaining = [snapshot for snapshot in history if snapshot.name in first]
        assert set(reasons_to_keep(remaining, policy, zone)) == set(first)

    @given(histories, policies, zones)
    def test_a_partial_one_never_stands_beside_a_complete_one_of_its_day(
        self, history: list[Snapshot], policy: RetentionSettings, zone: ZoneInfo
    ) -> None:
        """A partial snapshot never represents a day with a complete one."""
        why = reasons_to_keep(history, policy, zone)
        for partial, good in itertools.product(history, history):
            if partial.manifest.complete or not (good.manifest.complete and good.holds_publications):
                continue
            shared = {reason for reason in why.get(partial.name, ()) if reason.startswith("daily")}
            moment = datetime.strptime(good.manifest.snapshot, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
            assert f"daily {moment.astimezone(zone):%Y-%m-%d}" not in shared

    @given(histories, policies, zones)
    def test_the_number_of_kept_snapshots(
        self, history: list[Snapshot], policy: RetentionSettings, zone: ZoneInfo
    ) -> None:
        """At most the sum of the rules, twice with partial ones; every requested day with a snapshot is represented."""
        why = reasons_to_keep(history, policy, zone)
        most = 2 * (policy.keep_last + policy.keep_daily + policy.keep_weekly + policy.keep_monthly) + 2
        assert len(why) <= most
        good = [snapshot for snapshot in history if snapshot.manifest.complete and snapshot.holds_publications]
        days = {
            datetime.strptime(snapshot.manifest.snapshot, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).astimezone(zone).date()
            for snapshot in good
        }
        for day in sorted(days, reverse=True)[: policy.keep_daily]:
            assert any(f"daily {day}" in reasons for reasons in why.values())


def pruned(data: DataFolder, *, tenant: str | None = None, dry_run: bool = False, **policy: int) -> PruneResult:
    return prune(data, ["old", "other"], RetentionSettings(**policy), UTC_ZONE, tenant=tenant, dry_run=dry_run)


def names(data: DataFolder) -> list[str]:
    return [f"{snapshot.manifest.tenant} {snapshot.manifest.snapshot[6:8]}" for snapshot in data.snapshots()]


@pytest.fixture
def week(data: DataFolder) -> DataFolder:
    """Four snapshots of one tenant, the last one partial, and one of another."""
    for day in range(4):
        make_snapshot(data, publication_payloads(day + 1), now=STARTED_AT + timedelta(days=day), complete=day < 3)
    make_snapshot(data, publication_payloads(2), tenant="other")
    return data


@pytest.mark.long
def test_a_run_that_lost_its_lease_takes_nothing_from_other_tables(week: DataFolder) -> None:
    """Another machine may have published and registered a snapshot while this process was stopped."""

    class Lost(LocalState):
        def fence(self, tenant: str, data: str) -> int:
            raise StorageError(f"lost {tenant} of {data}")

    week.state = Lost(week.path / "state.db")
    before, taken = names(week), list[object]()
    with pytest.raises(StorageError, match="lost snapshots-prune"):
        prune(
            week, [], RetentionSettings(keep_last=1), UTC_ZONE, tenant=None, dry_run=False, before_removal=taken.append
        )
    assert (names(week), taken) == (before, [])


def test_a_tenant_at_work_is_passed_over(week: DataFolder) -> None:
    """All others are pruned; a second run of another tenant's `prune` in the same minute is not refused either."""
    make_snapshot(week, publication_payloads(1), tenant="other", now=STARTED_AT + timedelta(days=1))
    with week.lease("old"):
        result = pruned(week, keep_last=1)
        assert names(week) == ["old 20", "old 21", "other 21", "old 22", "old 23"]
        assert pruned(week, tenant="other", keep_last=1).removed == []
    assert "The snapshots of old were left as they are" in result.notes[0]


class TestBlobs:
    """Mark and sweep: a blob that a snapshot refers to stays."""

    @pytest.fixture
    def blobs(self, week: DataFolder) -> list[str]:
        """One blob for each snapshot, one for two of them, and one without a reference; in the order of the snapshots."""
        contents = [hashlib.sha256(bytes([number])).hexdigest() for number in range(7)]
        for number, name in enumerate(contents):
            (week.path / blob_key(name)).parent.mkdir(parents=True, exist_ok=True)
            (week.path / blob_key(name)).write_bytes(bytes([number]))
        for number, snapshot in enumerate(week.snapshots()):
            write_files(snapshot, [contents[number], contents[5] if number in (0, 4) else None], [1, None])
        (week.path / "files/sha256/notes.txt").write_text("mine")
        return contents

    def present(self, data: DataFolder, blobs: list[str]) -> list[int]:
        """The indexes of the blobs on the disk, where what is no blob stays."""
        assert (data.path / "files/sha256/notes.txt").exists()
        return [number for number, name in enumerate(blobs) if (data.path / blob_key(name)).exists()]

    @pytest.mark.parametrize("dry_run", [True, False])
    def test_a_snapshot_with_a_damaged_manifest_stays_and_so_do_all_blobs(
        self, week: DataFolder, blobs: list[str], *, dry_run: bool
    ) -> None:
        """Of a library that is pruned, and of another one; the other snapshots go as the policy says."""
        oldest, foreign_snapshot = week.snapshots("old")[0], week.snapshots("other")[0]
        for damaged in (oldest, foreign_snapshot):
            (damaged.path / "manifest.json").write_text("{")
        removed = {snapshot.name for snapshot in week.snapshots("old")[:-2]}  # the newest complete and the newest stay
        result = pruned(week, tenant="old", dry_run=dry_run, keep_last=1)
        assert {entry.snapshot for entry in result.removed} == removed
        assert [entry.why for entry in result.kept if entry.snapshot == oldest.name] == [
            ["its manifest cannot be used"]
        ]
        assert f"the manifest of {oldest.name} cannot be used" in result.notes[0]
        assert (result.blobs_removed, self.present(week, blobs)) == (0, list(range(7)))
        assert oldest.path.exists()

    def test_not_while_a_referring_table_is_damaged(self, week: DataFolder, blobs: list[str]) -> None:
        """The table is readable but wrong: a flipped bit makes it refer to other blobs.

        Snapshots go as the policy says, as beside a damaged manifest: a removed one proves nothing about this one.
        """
        *_, gone, last = (snapshot.path / "publication_files.parquet" for snapshot in week.snapshots("old"))
        content = last.read_bytes()
        last.write_bytes(gone.read_bytes())
        for dry_run in (True, False):
            with pytest.raises(StorageError, match=r"publication_files.parquet (has|was changed).* none was removed"):
                pruned(week, keep_last=1, dry_run=dry_run)
        assert self.present(week, blobs) == list(range(7))
        last.write_bytes(content)
        dry = pruned(week, keep_last=1, dry_run=True)
        assert self.present(week, blobs) == list(range(7))
        real = pruned(week, keep_last=1)
        assert (real.blobs_removed, real.blobs_bytes) == (dry.blobs_removed, dry.blobs_bytes) == (3, 3)
        assert self.present(week, blobs) == [1, 3, 4, 5]
        assert all(verify(week, snapshot.key, now=STARTED_AT).ok for snapshot in week.snapshots())

    @pytest.mark.long
    def test_not_while_another_tenant_is_read(self, week: DataFolder, blobs: list[str]) -> None:
        """Its backup may have stored blobs without a reference yet."""
        with week.lease("other"):
            result = pruned(week, tenant="old", keep_last=1)
        assert "until the next time" in result.notes[0]
        capture = new_capture(week, tenant="other")  # the run that continues it needs its blobs
        assert str(capture.path) in pruned(week, keep_last=1).notes[0]
        assert self.present(week, blobs) == list(range(7))
        shutil.rmtree(capture.path)
        pruned(week, keep_last=1)
        assert self.present(week, blobs) == [1, 3, 4, 5]

    @pytest.mark.long
    def test_not_after_the_lease_was_lost(self, week: DataFolder, blobs: list[str]) -> None:
        """A backup on another machine may have found the next blob, and keep it, while this process was stopped."""
        before = self.present(week, blobs)

        class LosingLease(LocalState):
            def fence(_self, tenant: str, data: str) -> int:  # noqa: N805
                if self.present(week, blobs) != before:
                    raise StorageError("lost")
                return super().fence(tenant, data)

        week.state = LosingLease(week.path / "state.db")
        with pytest.raises(StorageError, match="lost"):
            pruned(week, keep_last=1)
        assert len(self.present(week, blobs)) == len(before) - 1


DEATHS = 8


@pytest.mark.long
def test_killed_at_any_instant(data: DataFolder) -> None:
    """Kill -9 before any call: visible snapshots are complete, the newest complete one is among them, the next run finishes the work."""
    with Worker(data.path) as worker:
        for day in range(5):
            worker(day=day)
        original = data.path.with_name("original")
        shutil.copytree(data.path, original)
        steps = worker(prune=2)["calls"]
        for death in range(DEATHS):
            shutil.rmtree(data.path)
            shutil.copytree(original, data.path)
            assert worker(prune=2, kill_at=1 + steps * death // DEATHS)["exit"] == -signal.SIGKILL
            for snapshot in data.snapshots():
                assert_intact(snapshot)
                assert verify(data, snapshot.key, now=STARTED_AT).ok
            assert names(data)[-2:] == ["old 23", "old 24"]
            assert worker(prune=2)["exit"] == 0
            assert names(data) == ["old 23", "old 24"]
            assert not (data.path / "trash").exists()
            with open_catalogue(data) as database:
                assert database.execute("SELECT count(*) FROM publications_history").fetchone() == (10,)

"""A migration on two machines without a shared disk: planned on one, applied on the other, continued on the first (I8, I9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from pipelines.errors import ConfigurationError, RecordError, StopError, StorageError
from pipelines.migration.model.plan import CONFLICTS, FACTS, ROWS
from pipelines.migration.model.plan_folders import all_plans, find_plan
from pipelines.migration.model.shared_plans import PLANS
from pipelines.scopes import SCOPES
from pipelines.settings.config_file import load_settings
from pipelines.store.stores import open_data
from tests.backup.other_resources.signing import sign_in
from tests.migration.chaos import KillingWay
from tests.migration.library_pair import BASIC, CONFIG, LibraryPair
from tests.sandbox.process import SandboxProcess
from tests.shared_machines import SHARED
from tests.state_places import Place
from tests.store.s3 import S3, shared_s3

__all__ = ["shared_s3"]


@pytest.fixture
def way(sandbox: SandboxProcess) -> Iterator[KillingWay]:
    """A proxy before both libraries, with one address for both machines."""
    with KillingWay(sandbox.url) as proxy:
        yield proxy


@pytest.fixture
def machine(  # noqa: PLR0917  fixtures
    sandbox: SandboxProcess,
    numbers: Iterator[int],
    way: KillingWay,
    shared_s3: S3,
    shared_place: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[str], LibraryPair]:
    """Makes a machine with a folder of its own; all have one bucket, one database, one source and one target."""
    sandbox.reset("faults", "settings")
    for name, value in {**shared_s3.environ, "TEST_USER": sandbox.user, "TEST_PASSWORD": sandbox.password}.items():
        monkeypatch.setenv(name, value)
    bucket, target, signed_in = shared_s3.bucket(), f"empty{next(numbers)}", list[str]()

    def make(name: str) -> LibraryPair:
        config = tmp_path / name / "bookferry.toml"
        config.parent.mkdir()
        source, new = (way.url + urlsplit(sandbox.base_url(tenant)).path for tenant in ("library", target))
        text = CONFIG.format(source=source, target=new, api="v2", signed=BASIC)
        text = text.replace('data = "library-data"\ntokens = "sign-ins"\n', SHARED.format(bucket=bucket))
        config.write_text(text)
        if not signed_in:  # the sign-in is in the database
            signed_in.append(sign_in(config, "new", sandbox, target, SCOPES))
        return LibraryPair(config, sandbox, target, signed_in[0])

    monkeypatch.setenv("TEST_POSTGRES", shared_place.address)
    return make


@pytest.mark.long
def test_what_one_machine_planned_another_applies_and_the_first_verifies(
    machine: Callable[[str], LibraryPair], way: KillingWay
) -> None:
    """The other one is lost in the middle of a creation, after its effect: nothing is there twice."""
    first, second = machine("one"), machine("other")
    plan = first.plan(first.back_up())
    creates = plan.facts.counts["publications"]["create"]
    way.assert_kills(second.config, plan.name, "POST", "/publications$", "after")
    assert 0 < len(first.publications()) < creates
    applied = first.apply(find_plan(open_data(load_settings(first.config)), plan.name))
    assert applied.failed == 0
    assert len(first.publications()) == creates
    with second.migration() as migration:
        fetched = find_plan(migration.data, plan.name)
        assert (fetched.facts.seal, fetched.folder.parents[1]) == (plan.facts.seal, second.config.parent / "work")
        assert migration.verify(fetched).equal
    with first.migration() as migration:
        names = {path.name for path in find_plan(migration.data, plan.name).folder.glob("verif*")}
        assert names == {path.name for path in fetched.folder.glob("verif*")} != set()
    assert second.plan(second.newest()).facts.empty


def test_decisions_of_two_machines_are_put_together_by_a_person(
    machine: Callable[[str], LibraryPair], tmp_path: Path
) -> None:
    first, second = machine("one"), machine("other")
    plan = first.plan(first.back_up())

    def plans(pair: LibraryPair) -> Path:
        """The table of conflicts on a machine, after a command looked at its plans."""
        with pair.migration() as migration:
            [shared_plan] = all_plans(migration.data)
        return shared_plan.path(CONFLICTS)

    second_table = plans(second)
    second_table.write_text(second_table.read_text() + "publications\t1\t\t\t\t\tskip\n")
    plans(second)
    assert plans(first).read_text().endswith("skip\n"), "edited on one side: it is copied"
    first_table = plan.path(CONFLICTS)
    first_table.write_text(first_table.read_text() + "publications\t2\t\t\t\t\tskip\n")
    second_table.write_text(second_table.read_text() + "publications\t3\t\t\t\t\tskip\n")
    plans(first)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="was edited on this machine and on another one"):
            plans(second)
    renamed_table = second_table.rename(tmp_path / "mine.tsv")
    assert "publications\t2" in plans(second).read_text()
    assert renamed_table.read_text().endswith("publications\t3\t\t\t\t\tskip\n")
    second_table.write_text(first_table.read_text() + "publications\t3\t\t\t\t\tskip\n")
    plans(second)
    assert plans(first).read_text() == second_table.read_text()


def test_a_plan_is_there_as_a_whole_or_not_at_all(machine: Callable[[str], LibraryPair]) -> None:
    """Half uploaded or half fetched, it is none; rows that were changed are refused by the seal."""
    first, second = machine("one"), machine("other")
    plan = first.plan(first.back_up())
    bucket = open_data(load_settings(first.config)).objects
    facts = bucket.read(f"{PLANS}/{plan.name}/{FACTS}")
    bucket.delete(f"{PLANS}/{plan.name}/{FACTS}")
    with second.migration() as migration:
        assert all_plans(migration.data) == []
    bucket.replace(f"{PLANS}/{plan.name}/{FACTS}", facts)
    copy = second.config.parent / "work" / PLANS / plan.name
    copy.mkdir(parents=True)
    (copy / ROWS).write_bytes(bucket.read(f"{PLANS}/{plan.name}/{ROWS}"))
    with second.migration() as migration:
        assert [listed.name for listed in all_plans(migration.data)] == [plan.name]
    files = {entry.key.removeprefix(f"{PLANS}/{plan.name}/") for entry in bucket.below(PLANS)}
    assert files == {str(path.relative_to(copy)) for path in copy.rglob("[!.]*") if path.is_file()}
    with (copy / ROWS).open("ab") as file:
        file.write(b"x")
    with pytest.raises(StopError, match="was altered since the plan was made"):
        second.apply(find_plan(open_data(load_settings(second.config)), plan.name))


def test_a_failure_of_the_bucket_at_the_end_hides_no_earlier_error(machine: Callable[[str], LibraryPair]) -> None:
    first = machine("one")
    plan = first.plan(first.back_up())
    bucket = open_data(load_settings(first.config)).objects
    with pytest.raises(RecordError, match="the first") as raised, first.migration() as migration:  # noqa: PT012
        find_plan(migration.data, plan.name)
        bucket.replace(f"{PLANS}/{plan.name}/{CONFLICTS}", b"theirs")
        plan.path(CONFLICTS).write_bytes(b"mine")
        raise RecordError("the first")
    [note] = raised.value.__notes__
    assert "not shared with other machines" in note
    assert "was edited on this machine and on another one" in note


def test_a_run_that_lost_its_lease_uploads_nothing_of_a_plan(
    machine: Callable[[str], LibraryPair], shared_place: Place
) -> None:
    """What its successor wrote counts."""
    first, second = machine("one"), machine("other")
    plan = first.plan(first.back_up())
    with pytest.raises(StorageError, match="has lost the lease"), first.migration() as migration:  # noqa: PT012
        migration.hold("new")
        (find_plan(migration.data, plan.name).folder / "written").write_bytes(b"by the first")
        with psycopg.connect(shared_place.address, autocommit=True) as connection:
            connection.execute("UPDATE bookferry_state.leases SET owner = NULL, fence = fence + 1")
    bucket = open_data(load_settings(first.config)).objects
    assert bucket.size(f"{PLANS}/{plan.name}/written") is None
    with second.migration() as migration:
        migration.hold("new")
        (find_plan(migration.data, plan.name).folder / "written").write_bytes(b"by the successor")
    with first.migration() as migration:
        find_plan(migration.data, plan.name)
    assert bucket.read(f"{PLANS}/{plan.name}/written") == b"by the successor"

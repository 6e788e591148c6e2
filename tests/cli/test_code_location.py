"""The name of the code location of `bookferry ui`, and what a person switched under its earlier name."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import (
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, ScheduleInstigatorData
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from cli.code_location import EARLIER_NAME, NAME, rename
from tests.cli.conftest import BackedUp
from tests.cli.web_interface import WebInterface

STATES = """
{repositoriesOrError {... on RepositoryConnection {nodes {
  location {name} schedules {name scheduleState {status}} sensors {name sensorState {status}}
}}}}
"""


def switched_off(name: str, location: str) -> InstigatorState:
    """A schedule that a person stopped in the pages."""
    target = LoadableTargetOrigin(module_name="assets_defs.definitions", working_directory="/elsewhere")
    repository = RemoteRepositoryOrigin(ManagedGrpcPythonEnvCodeLocationOrigin(target, location), "__repository__")
    data = ScheduleInstigatorData("0 2 * * *")
    return InstigatorState(
        RemoteInstigatorOrigin(repository, name), InstigatorType.SCHEDULE, InstigatorStatus.STOPPED, data
    )


def test_what_a_person_switched_moves_to_the_new_name_once(tmp_path: Path) -> None:
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        for name, location in (("one", EARLIER_NAME), ("two", EARLIER_NAME), ("three", "of others")):
            instance.add_instigator_state(switched_off(name, location))
        assert (rename(instance), rename(instance)) == (2, 0)
        states = {(state.selector.location_name, state.name): state.status for state in instance.all_instigator_state()}
    assert len(states) == 5
    assert states[NAME, "one"] == states[NAME, "two"] == InstigatorStatus.STOPPED


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_schedule_that_was_switched_off_stays_off(library: BackedUp) -> None:
    """Under the name `bookferry`, which `workspace.yaml` has, too."""
    name = "nightly_backup_schedule"
    with dg.DagsterInstance.from_config(str(library.folder / "library-data" / "dagster")) as instance:
        instance.add_instigator_state(switched_off(name, EARLIER_NAME))
    with WebInterface(library, "--json") as interface:
        [location] = interface.ask(STATES)["repositoriesOrError"]["nodes"]
        interface.stop()
    assert location["location"]["name"] == NAME
    assert {one["name"] for one in location["schedules"] if one["scheduleState"]["status"] == "STOPPED"} == {name}
    assert len(location["schedules"]) > 1

"""Nobody else on the machine can open data or state, whatever the umask: folders 0700, files 0600, or those of one group."""

from __future__ import annotations

import grp
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.cli.command import CONFIG, PATIENCE, Installation, run
from tests.cli.modes import modes, open_to_others
from tests.cli.web_interface import WebInterface
from tests.sandbox.process import SandboxProcess
from tests.test_file_access import another_group


@pytest.fixture
def installation(tmp_path: Path, sandbox: SandboxProcess) -> Iterator[Installation]:
    yield Installation.make(tmp_path, sandbox, "small")
    sandbox.reset(tenant="small")


@pytest.mark.parametrize("umask", [0o022, 0])
def test_a_killed_backup_leaves_nothing_open(installation: Installation, umask: int) -> None:
    """Pages, the list of files and the databases with -wal and -shm, as the kill left them."""
    installation.sandbox.fault("hang", "small", path=r"page=2(&|$)", seconds=10_000)
    data = installation.folder / "library-data"
    with installation.start("backup", "small", umask=umask) as process:
        while not list(data.glob("work/*/*/pages/*")):
            assert process.poll() is None, process.communicate()
        process.kill()
        process.communicate(timeout=PATIENCE)
    assert {"state.db-wal", "state.db-shm"} <= modes(data).keys()
    assert open_to_others(data) == {}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_runs_of_the_web_interface(installation: Installation) -> None:
    """Also what Dagster's own processes write."""
    with WebInterface(installation, umask=0) as interface:
        assert interface.wait_for(interface.launch("nightly_backup")) == "SUCCESS"
        assert open_to_others(installation.folder / "library-data") == {}
        interface.stop()


def test_an_open_folder_is_mended_by_the_next_command(installation: Installation) -> None:
    """It says so once; `doctor` says it, too."""
    installation.backup()
    data = installation.folder / "library-data"
    for command in (["snapshots", "list"], ["doctor", "small", "--json"]):
        for path in [data, *data.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o055)
        done = installation.run(*command)
        assert open_to_others(data) == {}
        message = (
            f"{data} was open to other users of this machine (mode 0755). Now only this user can open what is in it"
        )
        if command[0] == "snapshots":
            assert message in " ".join(done.err.split()), done.err
            assert "was open" not in installation.run(*command).err
        else:
            (check,) = [one for one in done.document["tenants"][0]["checks"] if one["name"] == "access"]
            assert (check["status"], check["message"].startswith(message)) == ("note", True)
            assert check["mended"] > 10
    again = installation.run("doctor", "small", "--json")
    (check,) = [one for one in again.document["tenants"][0]["checks"] if one["name"] == "access"]
    assert (check["status"], check["mended"]) == ("ok", 0)


def test_a_data_folder_among_other_files(installation: Installation) -> None:
    """`data = "."`: what is not Bookferry's keeps its permissions."""
    config = installation.folder / "bookferry.toml"
    config.write_text(config.read_text().replace('"library-data"', '"."'))
    other = installation.folder / "other.txt"
    other.touch()
    other.chmod(0o644)
    installation.folder.chmod(0o755)
    assert installation.backup().status == 0
    assert set(open_to_others(installation.folder)) <= {".", "other.txt", "bookferry.toml"}
    (installation.folder / "state.db").chmod(0o644)
    installation.run("snapshots", "list")
    assert modes(installation.folder)["state.db"] == "f600"
    assert modes(installation.folder)["other.txt"] == "f644"


@pytest.mark.long
def test_a_group_shares_the_data(installation: Installation) -> None:
    """Every file can be read and written by the group, those of SQLite, DuckDB and Dagster as well; the sign-ins cannot."""
    group = another_group()
    config = installation.folder / "bookferry.toml"
    config.write_text(f'group = "{grp.getgrgid(group).gr_name}"\n{config.read_text()}')
    data = installation.folder / "library-data"
    for _ in range(2):
        assert installation.backup(before=partial(os.umask, 0o022)).status == 0
        assert {name: mode for name, mode in modes(data).items() if mode not in ("d2770", "f660")} == {}
        assert {path.lstat().st_gid for path in [data, *data.rglob("*")]} == {group}


def test_a_group_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    text = CONFIG.format(tenant="old", base_url="https://library.example.org", requests_per_minute=60)
    (tmp_path / "bookferry.toml").write_text(f'group = "no-such-group"\n{text}')
    run("snapshots", "list", folder=tmp_path).assert_failed(2, 'no group "no-such-group"', "groupadd")
    assert not (tmp_path / "library-data").exists()

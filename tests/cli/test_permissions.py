"""Nobody else on the machine can open data or state, whatever the umask: folders 0700, files 0600, or those of one group."""

from __future__ import annotations

import grp
import os
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import CONFIG, PATIENCE, Installation, run
from tests.cli.modes import modes, open_to_others
from tests.sandbox.process import SandboxProcess

LOG_OF_A_RUN = re.compile(r"dagster/history/runs/[0-9a-f-]{36}\.db(-wal|-shm)?")


def another_group() -> str:
    """A group that this user may give files to."""
    own_groups = [grp.getgrgid(number) for number in os.getgroups() if number != os.getegid()]
    groups = [entry for entry in grp.getgrall() if os.geteuid() == 0 and entry.gr_gid != os.getegid()] or own_groups
    return groups[0].gr_name if groups else pytest.skip("this user is in one group only")


@pytest.fixture
def installation(tmp_path: Path, sandbox: SandboxProcess) -> Iterator[Installation]:
    yield Installation.make(tmp_path, sandbox, "small")
    sandbox.reset(tenant="small")


@pytest.mark.long
def test_a_killed_backup_leaves_nothing_open(installation: Installation) -> None:
    """Pages, the list of files and the databases with -wal and -shm, as the kill left them."""
    installation.sandbox.fault("hang", "small", path=r"page=2(&|$)", seconds=10_000)
    data = installation.folder / "library-data"
    with installation.start("backup", "small", umask=0) as process:
        while not list(data.glob("work/*/*/pages/*")):
            assert process.poll() is None, process.communicate()
        process.kill()
        process.communicate(timeout=PATIENCE)
    assert {"state.db-wal", "state.db-shm"} <= modes(data).keys()
    assert open_to_others(data) == {}


def test_doctor_says_what_others_can_open(installation: Installation) -> None:
    """The command that it names closes it; no command does so by itself. The files of other programs are left alone (`data = "."`)."""
    config = installation.folder / "bookferry.toml"
    config.write_text(config.read_text().replace('"library-data"', '"."'))
    foreign_file = installation.folder / "other.txt"
    foreign_file.touch()
    for path in (foreign_file, config):
        path.chmod(0o644)
    assert installation.backup().status == 0
    installation.folder.chmod(0o755)
    assert set(open_to_others(installation.folder)) == {".", "other.txt", "bookferry.toml"}
    assert access_check(installation)["status"] == "ok"
    (installation.folder / "state.db").chmod(0o644)
    for path in [installation.folder / "snapshots", *(installation.folder / "snapshots").rglob("*")]:
        path.chmod(path.stat().st_mode | 0o055)
    installation.run("snapshots", "list")
    check = access_check(installation)
    assert check["status"] == "warning"
    assert check["message"].startswith("other users of this machine can open snapshots, state.db in ")
    subprocess.run(re.findall("`(.*?)`", check["todo"])[0], shell=True, check=True)
    assert set(open_to_others(installation.folder)) == {".", "other.txt", "bookferry.toml"}
    assert access_check(installation)["status"] == "ok"


def access_check(installation: Installation) -> dict[str, Any]:
    """What doctor says about permissions."""
    document = installation.run("doctor", "small", "--json").document
    (check,) = [check for check in document["tenants"][0]["checks"] if check["name"] == "access"]
    return check


@pytest.mark.long
def test_a_group_shares_the_data(installation: Installation) -> None:
    """The group can read and write every file, those of SQLite, DuckDB and Dagster as well, and read Dagster's log of each run.

    What was there before the setting is given to it by the command that `doctor` names.
    """
    installation.backup()
    group = another_group()
    config = installation.folder / "bookferry.toml"
    config.write_text(f'group = "{group}"\n{config.read_text()}')
    check = access_check(installation)
    assert check["status"] == "warning"
    subprocess.run(re.findall("`(.*?)`", check["todo"])[0], shell=True, check=True)
    data = installation.folder / "library-data"
    for _ in range(2):
        assert installation.backup(before=partial(os.umask, 0o022)).status == 0
        wrong = {name: mode for name, mode in modes(data).items() if mode not in ("d2770", "f660")}
        assert {name: mode for name, mode in wrong.items() if not LOG_OF_A_RUN.fullmatch(name) or mode != "f640"} == {}
        assert {path.lstat().st_gid for path in [data, *data.rglob("*")]} == {grp.getgrnam(group).gr_gid}
    assert access_check(installation)["status"] == "ok"


def test_a_group_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    text = CONFIG.format(tenant="old", base_url="https://library.example.org", requests_per_minute=60)
    (tmp_path / "bookferry.toml").write_text(f'group = "no-such-group"\n{text}')
    run("snapshots", "list", folder=tmp_path).assert_failed(2, 'no group "no-such-group"', "groupadd")
    assert not (tmp_path / "library-data").exists()

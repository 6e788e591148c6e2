"""Permissions of data and state: new files are right, whatever the umask, and what others can open is found."""

from __future__ import annotations

import grp
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines import file_access
from pipelines.errors import ConfigurationError
from pipelines.file_access import make_file, make_folder, restrict_new_files, wrong_entries


@pytest.fixture(autouse=True)
def umask(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The tests begin without any umask."""
    before = os.umask(0)
    monkeypatch.setattr(file_access, "_group", None)
    monkeypatch.setattr(file_access, "_inherited_umask", -1)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def another_group() -> str:
    """A group that this user may give files to."""
    own = [grp.getgrgid(number) for number in os.getgroups() if number != os.getegid()]
    groups = [entry for entry in grp.getgrall() if os.geteuid() == 0 and entry.gr_gid != os.getegid()] or own
    return groups[0].gr_name if groups else pytest.skip("this user is in one group only")


def test_new_files_are_private(tmp_path: Path) -> None:
    """The folder of data also before any umask."""
    make_folder(tmp_path / "early")
    restrict_new_files(None)
    make_folder(tmp_path / "data")
    (tmp_path / "data" / "work").mkdir()
    make_file(tmp_path / "data" / "state.db")
    assert [mode(tmp_path / name) for name in ("early", "data", "data/work", "data/state.db")] == [
        *(0o700, 0o700, 0o700, 0o600)
    ]
    assert file_access.inherited_umask() == 0


def test_what_others_can_open_is_found(tmp_path: Path) -> None:
    """In a folder that they can enter, by the names that are ours; links are left alone."""
    tmp_path.chmod(0o755)
    for name in ("snapshots", "files", "tool"):
        (tmp_path / name).mkdir(0o755)
    (tmp_path / "state.db").touch(0o600)
    (tmp_path / "state.db-wal").touch(0o644)
    (tmp_path / "files").chmod(0o700)
    (tmp_path / "snapshots-link").symlink_to(tmp_path)
    names = ("snapshots", "files", "state.db")
    assert [path.name for path in wrong_entries(tmp_path, names, None)] == ["snapshots", "state.db-wal"]
    tmp_path.chmod(0o700)
    assert wrong_entries(tmp_path, names, None) == wrong_entries(tmp_path / "none", names, None) == []


def test_what_the_group_cannot_use_is_found(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "snapshots").mkdir(0o700)
    assert [path.name for path in wrong_entries(tmp_path, ("snapshots",), another_group())] == ["snapshots"]


def test_a_group_that_does_not_exist() -> None:
    with pytest.raises(ConfigurationError, match='this machine has no group "no-such-group"'):
        restrict_new_files("no-such-group")

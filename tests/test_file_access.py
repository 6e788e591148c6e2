"""Permissions of data and state: what is open is mended, whatever it is, and nothing else is touched."""

from __future__ import annotations

import grp
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines import file_access
from pipelines.errors import ConfigurationError
from pipelines.file_access import FileAccess, make_file, make_folder, mend, named_group, restrict_new_files

PRIVATE = FileAccess()


@pytest.fixture(autouse=True)
def umask(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The tests begin without any umask."""
    before = os.umask(0)
    monkeypatch.setattr(file_access, "_access", PRIVATE)
    monkeypatch.setattr(file_access, "_inherited_umask", None)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def modes(folder: Path) -> dict[str, int]:
    """Path below the folder → permissions."""
    return {str(path.relative_to(folder)): mode(path) for path in [folder, *folder.rglob("*")]}


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """A data folder that everybody may change."""
    folder = tmp_path / "data"
    (folder / "snapshots" / "one").mkdir(parents=True)
    (folder / "snapshots" / "one" / "users.parquet").touch()
    (folder / "state.db").touch()
    return folder


def another_group() -> int:
    """A group that this user may give files to."""
    own = [number for number in os.getgroups() if number != os.getegid()]
    groups = [entry.gr_gid for entry in grp.getgrall() if os.geteuid() == 0 and entry.gr_gid != os.getegid()] or own
    return groups[0] if groups else pytest.skip("this user is in one group only")


def test_an_open_folder_is_closed(open_folder: Path) -> None:
    found = mend(open_folder, PRIVATE)
    assert found is not None
    assert (found.mode, found.mended, found.opened, found.left) == (0o777, 5, 5, [])
    assert modes(open_folder) == {
        ".": 0o700,
        "snapshots": 0o700,
        "snapshots/one": 0o700,
        "snapshots/one/users.parquet": 0o600,
        "state.db": 0o600,
    }
    assert mend(open_folder, PRIVATE) is None


def test_one_open_entry_of_a_closed_folder_is_closed(open_folder: Path) -> None:
    mend(open_folder, PRIVATE)
    (open_folder / "state.db").chmod(0o644)
    (open_folder / "snapshots").chmod(0o755)
    (open_folder / "snapshots" / "one" / "users.parquet").chmod(0o644)
    found = mend(open_folder, PRIVATE)
    assert found is not None
    assert found.mended == 3
    assert set(modes(open_folder).values()) == {0o700, 0o600}


def test_a_killed_mend_is_repeated(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder itself is closed last: until then the next command goes through all of it."""
    with monkeypatch.context() as killed:

        def once(descriptor: int, permissions: int, real=os.fchmod) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
            real(descriptor, permissions)
            raise KeyboardInterrupt

        killed.setattr(os, "fchmod", once)
        with pytest.raises(KeyboardInterrupt):
            mend(open_folder, PRIVATE)
    assert mode(open_folder) == 0o777
    mend(open_folder, PRIVATE)
    assert set(modes(open_folder).values()) == {0o700, 0o600}


def test_what_is_not_ours_is_left(open_folder: Path, tmp_path: Path) -> None:
    """Neither the target of a link, nor other files of a folder that has other files."""
    foreign = tmp_path / "foreign"
    foreign.touch()
    (open_folder / "link").symlink_to(foreign)
    (open_folder / "tool").touch(0o755)
    found = mend(open_folder, PRIVATE, whole=False, known=("snapshots", "state.db", "link"))
    assert found is not None
    assert mode(open_folder) == 0o777
    assert mode(foreign) == 0o666
    assert modes(open_folder)["tool"] == 0o755
    assert modes(open_folder)["snapshots"] == 0o700


def test_a_group_shares_everything(open_folder: Path) -> None:
    """What is made later belongs to the group, too (setgid); SQLite's files are writable for it."""
    access = FileAccess(another_group())
    restrict_new_files(access)
    found = mend(open_folder, access)
    assert found is not None
    assert modes(open_folder)["."] == 0o2770
    assert modes(open_folder)["state.db"] == 0o660
    (open_folder / "work").mkdir()
    (open_folder / "work" / "table.parquet").touch()
    make_file(open_folder / "work" / "files.db")
    assert {path.lstat().st_gid for path in [open_folder, *open_folder.rglob("*")]} == {access.group}
    assert modes(open_folder)["work"] == 0o2770
    assert modes(open_folder)["work/table.parquet"] == modes(open_folder)["work/files.db"] == 0o660
    assert mend(open_folder, access) is None


def test_without_the_group_again(open_folder: Path) -> None:
    mend(open_folder, FileAccess(another_group()))
    mend(open_folder, PRIVATE)
    assert set(modes(open_folder).values()) == {0o700, 0o600}


def test_new_folders_are_right_before_any_umask(tmp_path: Path) -> None:
    make_folder(tmp_path / "data")
    assert mode(tmp_path / "data") == 0o700
    restrict_new_files(FileAccess(another_group()))
    make_folder(tmp_path / "shared")
    assert mode(tmp_path / "shared") == 0o2770
    assert file_access.inherited_umask() == 0


def test_a_group_that_does_not_exist() -> None:
    with pytest.raises(ConfigurationError, match='this machine has no group "no-such-group"'):
        named_group("no-such-group")

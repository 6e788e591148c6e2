"""service.md#shutdown: a backup says that version 2 has ended, and does not say it of anything else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipelines.backup.read import Progress
from pipelines.errors import (
    AccessDeniedError,
    BookferryError,
    ExitStatus,
    ProtocolError,
    RefusedError,
    SignInError,
    TemporaryError,
    VersionEndedError,
)
from tests.backup.runner import BackupRunner
from tests.sandbox.process import SandboxProcess
from tests.service.manual_clock import MIDNIGHT, ManualClock

REMEDY = (
    'Sign in with version 3: in bookferry.toml, replace api = "v2" and the user name and password of \'old\' by api = "v3", then run '
    "`bookferry login old`. The snapshots of version 2 stay, and `bookferry migrate plan SNAPSHOT TARGET` still moves them."
)
BEFORE, LAST_DAY, AFTER = (datetime(*day, tzinfo=UTC) for day in ((2026, 11, 22), (2026, 12, 31), (2027, 1, 1)))


def failure(folder: Path, base_url: str, at: datetime = BEFORE) -> BookferryError:
    """Returns the error of a backup on that day."""
    clock = ManualClock((at - MIDNIGHT) / timedelta(seconds=1))
    with pytest.raises(BookferryError) as caught:
        BackupRunner(folder, base_url, clock=clock).back_up()
    return caught.value


@pytest.mark.parametrize(("status", "answer"), [(410, "410 Gone"), (404, "404 Not Found")])
def test_v2_has_ended(tmp_path: Path, sandbox: SandboxProcess, status: int, answer: str) -> None:
    """Version 3 at the same address shows that base_url is right."""
    sandbox.change(variations={"v2_ended": status})
    error = failure(tmp_path, sandbox.base_url())
    address = f"{sandbox.base_url()}/api/v2/publications"
    assert str(error) == f"Version 2 of the API of 'old' has ended: GET {address} answered {answer}. {REMEDY}"
    assert (type(error), error.exit_status) == (VersionEndedError, ExitStatus.USAGE)


SHOWN = "This version of the API has been shut down"
DUE = "Version 2 was due to be shut down on 31 December 2026."
PAGES, LIST, FIRST = "v2/publications.*[?&]page=", "v2/publications", "v2/publications.per_page=1$"
NO_END: list[tuple[int | None, dict[str, int | None], datetime, type[BookferryError], str | None]] = [
    *(
        (status, {}, AFTER, kind, SHOWN if status in {403, 501} else "")
        for status, kind in (
            (403, AccessDeniedError),
            (200, ProtocolError),
            (501, ProtocolError),
            (503, TemporaryError),
        )
    ),
    (None, {LIST: 404}, AFTER, RefusedError, ""),
    (None, {"/api/": 503}, AFTER, TemporaryError, None),
    *(
        (None, {PAGES: status}, day, kind, "")
        for status, kind in ((401, SignInError), (403, AccessDeniedError))
        for day in (BEFORE, LAST_DAY, AFTER)
    ),
    *((None, {PAGES: 404, FIRST: status}, AFTER, RefusedError, None) for status in (401, 403, 503)),
    (None, {LIST: 404, "/api/v3": None}, BEFORE, RefusedError, None),
]
"""What all of version 2 answers, what some paths answer (None: the connection breaks), the day, the error, and what it says of versions."""


@pytest.mark.parametrize(("version_2", "faults", "day", "kind", "remark"), NO_END)
def test_nothing_else_is_an_end(  # noqa: PLR0917
    tmp_path: Path,
    sandbox: SandboxProcess,
    version_2: int | None,
    faults: dict[str, int | None],
    day: datetime,
    kind: type[BookferryError],
    remark: str | None,
) -> None:
    """What came back is shown. After the last day, a refused sign-in mentions the end as well."""
    if version_2 is not None:
        sandbox.change(variations={"v2_ended": version_2})
    for path, status in faults.items():
        details = {"status": status} if status else {}
        sandbox.fault("status" if status else "reset", path=path, times=50, **details)
    error = failure(tmp_path, sandbox.base_url(), day)
    assert type(error) is kind
    assert "has ended" not in str(error)
    assert (DUE in str(error)) is (day == AFTER and kind in {SignInError, AccessDeniedError})
    assert remark in str(error) if remark is not None else "ersion" not in str(error)


def test_v2_ends_during_a_listing(tmp_path: Path, sandbox: SandboxProcess) -> None:
    """Also where a page was read already: now nothing of it is served."""

    def end(_progress: Progress) -> None:
        sandbox.change(variations={"v2_ended": 404})

    with pytest.raises(VersionEndedError):
        BackupRunner(tmp_path, sandbox.base_url(), clock=ManualClock()).back_up(on_progress=end)


@pytest.mark.parametrize(("day", "kind"), [(LAST_DAY, RefusedError), (AFTER, VersionEndedError)])
def test_a_wrong_base_url(tmp_path: Path, sandbox: SandboxProcess, day: datetime, kind: type[BookferryError]) -> None:
    """Neither version is there: no end before its day. After it nobody can tell, so both are said."""
    base_url = f"{sandbox.url}/nowhere"
    error = failure(tmp_path, base_url, day)
    assert type(error) is kind
    assert str(error).endswith(
        f"Version 3 is not there either (404 Not Found). Is base_url ({base_url}) the library's address, without /api?"
    )

"""service.md#shutdown: a backup says that version 2 has ended, and does not say it of anything else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from pipelines.errors import (
    AccessDeniedError,
    BookferryError,
    ExitStatus,
    RefusedError,
    SignInError,
    TemporaryError,
    VersionEndedError,
)
from pipelines.service.end_of_v2 import v2_has_ended
from tests.backup.runner import BackupRunner
from tests.sandbox.process import SandboxProcess
from tests.service.manual_clock import MIDNIGHT, ManualClock
from tests.service.scripted import Answer, Received, ScriptedServer

REMEDY = (
    'Sign in with version 3: in bookferry.toml, replace api = "v2" and the user name and password of \'old\' by api = "v3", then run '
    "`bookferry login old`. The snapshots of version 2 stay, and `bookferry migrate plan SNAPSHOT TARGET` still moves them."
)
BEFORE, LAST_DAY, AFTER = (datetime(*day, tzinfo=UTC) for day in ((2026, 11, 22), (2026, 12, 31), (2027, 1, 1)))


@pytest.fixture(scope="module")
def shared_sandbox() -> Iterator[SandboxProcess]:
    """One sandbox for the module."""
    with SandboxProcess("--tenant=library=real:120", "--requests-per-minute", "0") as sandbox:
        yield sandbox


def failure(folder: Path, base_url: str, at: datetime = BEFORE) -> BookferryError:
    """Returns the error of a backup on that day."""
    clock = ManualClock((at - MIDNIGHT) / timedelta(seconds=1))
    with pytest.raises(BookferryError) as caught:
        BackupRunner(folder, base_url, clock=clock).back_up()
    return caught.value


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (410, "410 Gone"),
        (404, "404 Not Found"),
        (403, "403 Forbidden"),
        (301, "301 Moved Permanently"),
        (200, "a page that is no list of records"),
        (501, "501 Not Implemented"),
    ],
)
def test_v2_has_ended(tmp_path: Path, sandbox: SandboxProcess, status: int, answer: str) -> None:
    """Whatever all of version 2 answers: version 3 at the same address shows that base_url is right."""
    sandbox.change(variations={"v2_ended": status})
    error = failure(tmp_path, sandbox.base_url())
    address = f"{sandbox.base_url()}/api/v2/publications"
    assert str(error) == f"Version 2 of the API of 'old' has ended: GET {address} answered {answer}. {REMEDY}"
    assert (type(error), error.exit_status) == (VersionEndedError, ExitStatus.USAGE)


def test_v2_ends_during_a_listing(tmp_path: Path, sandbox: SandboxProcess) -> None:
    """Also where a page was read already."""
    sandbox.fault("status", status=404, path="v2/publications.*page=(2|3)(&|$)", times=50)
    sandbox.fault("status", status=404, path="v2/publications.per_page=1$", times=50)
    assert type(failure(tmp_path, sandbox.base_url())) is VersionEndedError


def test_a_version_that_fails_is_no_end(tmp_path: Path, sandbox: SandboxProcess) -> None:
    """503 for a minute is an outage, also where version 3 answers: nothing is said of an end, and the error stays one that may pass."""
    sandbox.change(variations={"v2_ended": 503})
    error = failure(tmp_path, sandbox.base_url())
    assert type(error) is TemporaryError
    assert "shut down" not in str(error)


def test_an_outage_of_both_versions_is_no_end(tmp_path: Path, sandbox: SandboxProcess) -> None:
    """Nothing about versions where the whole service is down."""
    sandbox.fault("status", status=503, path="/api/", times=50)
    error = failure(tmp_path, sandbox.base_url(), AFTER)
    assert type(error) is TemporaryError
    assert "ersion" not in str(error)


@pytest.mark.parametrize("day", [BEFORE, LAST_DAY, AFTER])
@pytest.mark.parametrize(("status", "kind"), [(401, SignInError), (403, AccessDeniedError)])
def test_a_refused_sign_in_is_no_end(
    tmp_path: Path, sandbox: SandboxProcess, status: int, kind: type[BookferryError], day: datetime
) -> None:
    """A wrong password, or an account without rights. After the last day, the end is mentioned as well."""
    sandbox.fault("status", status=status, path="v2/publications.*per_page=50", times=50)
    error = failure(tmp_path, sandbox.base_url(), day)
    assert type(error) is kind
    assert ("Version 2 was due to be shut down on 31 December 2026." in str(error)) is (day == AFTER)


def test_a_wrong_base_url_is_no_end(tmp_path: Path, sandbox: SandboxProcess) -> None:
    """Neither version is there."""
    base_url = f"{sandbox.url}/nowhere"
    error = failure(tmp_path, base_url, AFTER)
    assert type(error) is RefusedError
    assert str(error).endswith(
        f"Version 3 is not there either (404 Not Found). Is base_url ({base_url}) the library's address, without /api?"
    )


def test_a_page_that_is_missing_is_no_end(tmp_path: Path, sandbox: SandboxProcess) -> None:
    """Version 2 lives: its list answers."""
    sandbox.fault("status", status=404, path="v2/publications.*page=2(&|$)", times=50)
    error = failure(tmp_path, sandbox.base_url(), AFTER)
    assert type(error) is RefusedError
    assert "ersion" not in str(error)


@pytest.mark.parametrize("status", [401, 403, 503])
def test_a_list_that_may_come_back_is_no_end(tmp_path: Path, sandbox: SandboxProcess, status: int) -> None:
    """A 404 in the middle, and then a list that asks for a sign-in or is out of order: the 404 alone is told."""
    sandbox.fault("status", status=404, path="v2/publications.*per_page=50", times=50)
    sandbox.fault("status", status=status, path="v2/publications.per_page=1$", times=50)
    error = failure(tmp_path, sandbox.base_url(), AFTER)
    assert type(error) is RefusedError
    assert "ersion" not in str(error)


def test_a_version_3_that_does_not_answer_proves_nothing(tmp_path: Path, sandbox: SandboxProcess) -> None:
    """Version 2 answers 404, and the connection to version 3 breaks: neither an end nor a wrong base_url is certain."""
    sandbox.fault("status", status=404, path="v2/publications", times=50)
    sandbox.fault("reset", path="/api/v3", times=50)
    error = failure(tmp_path, sandbox.base_url(), AFTER)
    assert type(error) is RefusedError
    assert "ersion" not in str(error)


@pytest.mark.parametrize(
    ("status", "ended"),
    [(404, True), (410, True), (501, True), (401, False), (403, False), (408, False), (429, False), (503, False)],
)
def test_an_answer_of_a_living_version_is_no_end(status: int, ended: bool) -> None:
    """Version 3 asks for a sign-in, so base_url is right; version 2 lives if it does so too, or asks to wait."""
    assert v2_has_ended(httpx.Response(status), httpx.Response(401)) is ended


def test_a_site_that_shows_one_page_for_every_address_is_no_end(tmp_path: Path, sandbox: SandboxProcess) -> None:
    """base_url leads to a web site: version 3 is a page there, too."""

    def page(_: Received) -> Answer:
        return Answer(b"<!DOCTYPE html><title>Welcome</title>", headers={"content-type": "text/html"})

    assert sandbox.ready
    with ScriptedServer(page) as site:
        error = failure(tmp_path, site.url)
    assert type(error) is not VersionEndedError
    assert str(error).endswith("Is base_url the library's address?")

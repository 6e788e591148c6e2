"""The table of checks: what it costs, what it cites, and that no check hides another."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.doctor.backup_age import NewestSnapshots
from pipelines.doctor.checks import CHECKS, SIGNED_IN, Check
from pipelines.doctor.examination import examine
from pipelines.doctor.findings import CheckResult, CheckStatus, ok, problem, worst
from pipelines.doctor.look import Look
from pipelines.errors import ExitStatus, SignInError, StorageError
from pipelines.service.probe import ProbeResponse
from pipelines.settings.config_file import load_settings

DAY = datetime(2026, 11, 26, tzinfo=UTC)
CONFIG = '[tenants.old]\nbase_url = "https://library.example.org"\napi = "v2"\nusername_env = "U"\npassword_env = "P"\n'


SHOWN_FIELDS = ("id", "published_on", "categories", "identifiers", "doi", "assets", "import_state", "shelf")
LINKS = ("<::>; rel=next", "</api/v3/publications?page=2>; rel=next", "<https://elsewhere.example/>; rel=next", "?")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "2020-02-30", "2020-01-01", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["id", "name", "type", "value", "url"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """A look at a tenant whose library nobody asks."""
    (tmp_path / "bookferry.toml").write_text(CONFIG)
    return Look(load_settings(tmp_path / "bookferry.toml"), "old")


def test_no_check_hides_another(look: Look) -> None:
    """Neither an error nor a mistake of ours; what cannot be checked because of it says so, with what to solve first."""

    def refused(_: Look) -> CheckResult:
        raise SignInError("The library refuses the sign-in.")

    def mistaken(_: Look) -> CheckResult:
        raise KeyError("a-value-of-a-record")

    def good(_: Look) -> CheckResult:
        return ok("fine")

    checks = [
        Check("first", refused),
        Check("second", mistaken),
        Check("elsewhere", good, when=lambda _: False),
        Check("third", good, needs=("first",)),
        Check("fourth", good, needs=("third",)),
        Check("fifth", good, needs=("second", "elsewhere")),
        Check("last", lambda _: problem("not so", exit_status=ExitStatus.FAILED)),
    ]
    findings = examine(look, checks).findings
    assert [(finding.name, finding.status) for finding in findings] == [
        ("first", CheckStatus.PROBLEM),
        ("second", CheckStatus.WARNING),
        ("third", CheckStatus.NOTE),
        ("fourth", CheckStatus.NOTE),
        ("fifth", CheckStatus.OK),
        ("last", CheckStatus.PROBLEM),
    ]
    assert {finding.unchecked for finding in findings[2:4]} == {"first solve the problem of first"}
    assert "a-value-of-a-record" not in str([finding.document for finding in findings])
    assert worst(findings) is ExitStatus.SIGN_IN


def test_snapshots_that_cannot_be_read_are_one_problem(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a bucket that does not answer: the disk is checked all the same."""

    def unreadable(*_: object) -> NewestSnapshots:
        raise StorageError("The bucket does not answer.")

    monkeypatch.setattr("pipelines.doctor.look.newest_snapshots", unreadable)
    chosen = [check for check in CHECKS if check.name in ("disk", "last backup")]
    disk, last_backup = examine(look, chosen).findings
    assert ("newest" in disk.message, last_backup.message) == (False, "The bucket does not answer.")


class Shown(Look):
    """A library that answers everything alike, whatever it is."""

    answer: ProbeResponse

    def ask(self, *_: object, **__: object) -> ProbeResponse:
        """The answer."""
        return self.answer


@pytest.mark.parametrize("title", [b'"\\ud800"', b"NaN", b'"a\tb"', b"9" * 5000])
def test_records_that_a_backup_takes_are_a_list_for_doctor_too(title: bytes) -> None:
    request = httpx.Request("GET", "https://library.example.org/api/v3/publications")
    body = b'{"records": [{"id": 1, "title": ' + title + b"}]}"
    answer = ProbeResponse(httpx.Response(200, content=body, request=request), DAY, DAY)
    assert [record["id"] for record in answer.records or []] == [1]


@given(
    records=st.lists(st.dictionaries(st.sampled_from(SHOWN_FIELDS), JSON, max_size=6), max_size=3),
    headers=st.fixed_dictionaries(
        {}, optional={"X-Total": st.sampled_from(["3", "x", "-1"]), "Link": st.sampled_from(LINKS)}
    ),
    api=st.sampled_from(["v2", "v3"]),
)
def test_checks_are_total(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]], headers: dict[str, str], api: str
) -> None:
    """Whatever a library answers, each check of it says something (I7, I13)."""
    config = tmp_path_factory.getbasetemp() / f"{api}.toml"
    config.write_text(CONFIG.replace('"v2"', f'"{api}"'))
    shown = Shown(load_settings(config), "old")
    request = httpx.Request("GET", "https://library.example.org/api/v3/publications")
    response = httpx.Response(200, json={"records": records}, headers=headers, request=request)
    shown.answer = ProbeResponse(response, DAY, DAY)
    checks = [replace(check, needs=()) for check in CHECKS if check.needs == SIGNED_IN]
    assert [finding for finding in examine(shown, checks).findings if "in Bookferry" in finding.message] == []

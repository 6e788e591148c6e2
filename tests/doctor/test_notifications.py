"""Doctor says whether anybody hears of a backup that fails, and calls nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.doctor.checks import notify as checked
from pipelines.doctor.findings import CheckStatus
from pipelines.doctor.look import Look
from pipelines.settings.config_file import load_settings
from tests.variables import with_variables

SECRET = "3f0c9d6e-the-address-is-a-secret"
TENANT = '[tenants.{name}]\nbase_url = "https://{name}.example.org"\napi = "v3"\n'


@pytest.mark.parametrize(
    ("notify", "variables", "status", "message"),
    [
        ("", {}, CheckStatus.NOTE, "nobody is notified of a backup that failed"),
        (
            '[notify]\nsuccess = "ALIVE"\nfailure = ["sh"]',
            {"ALIVE": f"https://h/{SECRET}"},
            CheckStatus.OK,
            "on success the address at h, on failure the command sh",
        ),
        ('[notify]\nsuccess = "ALIVE"', {}, CheckStatus.WARNING, "ALIVE, which is not set"),
        ('[notify]\nsuccess = "ALIVE"', {"ALIVE": f"http://h/{SECRET}"}, CheckStatus.WARNING, "must be https://"),
        ('[notify]\nfailure = ["no-such-command"]', {}, CheckStatus.WARNING, "no such command: no-such-command"),
        ('[notify]\nfailure = ["./tell"]', {}, CheckStatus.WARNING, "no such command: ./tell"),
        ('[notify]\nfailure = ["sh"]', {}, CheckStatus.NOTE, "on success nobody, on failure the command sh"),
    ],
)
def test_the_targets_of_notifications(
    tmp_path: Path, notify: str, variables: dict[str, str], status: CheckStatus, message: str
) -> None:
    """The address is a secret: the message has only its host (I10)."""
    (tmp_path / "bookferry.toml").write_text(f"{notify}\n{TENANT.format(name='old')}")
    look = Look(load_settings(tmp_path / "bookferry.toml"), "old")
    finding = with_variables({"PATH": "/usr/bin:/bin", **variables}, checked, look)
    assert (finding.status, message in finding.message) == (status, True), finding
    assert SECRET not in str(finding.document)


def test_one_address_for_two_libraries(tmp_path: Path) -> None:
    """Each would hide a missing run of the other. A tenant with a table of its own is not affected."""
    own_table = f'[tenants.third.notify]\nsuccess = "THIRD"\nfailure = "THIRD"\n{TENANT.format(name="third")}'
    text = '[notify]\nsuccess = "ALIVE"\nfailure = "FAILED"\n'
    text += TENANT.format(name="old") + TENANT.format(name="new") + own_table
    (tmp_path / "bookferry.toml").write_text(text)
    settings = load_settings(tmp_path / "bookferry.toml")
    variables = dict.fromkeys(("ALIVE", "FAILED", "THIRD"), f"https://h/{SECRET}")
    finding = with_variables(variables, checked, Look(settings, "old"))
    assert (finding.status, "new and old share one address" in finding.message) == (CheckStatus.WARNING, True)
    assert with_variables(variables, checked, Look(settings, "third")).status is CheckStatus.OK
    assert SECRET not in str(finding.document)

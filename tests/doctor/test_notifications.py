"""Doctor reports whether a failed backup leads to a notification, and makes no call itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.doctor.findings import CheckStatus
from pipelines.doctor.notifications import check_notifications
from pipelines.settings.loading import load_settings

SECRET = "3f0c9d6e-the-address-is-a-secret"
TENANT = '[tenants.{name}]\nbase_url = "https://{name}.example.org"\napi = "v3"\n'


@pytest.mark.parametrize(
    ("notify", "variables", "status", "expected"),
    [
        ("", {}, CheckStatus.NOTE, "no notification of a backup that fails"),
        (
            '[notify]\nsuccess_env = "ALIVE"\nfailure = ["sh"]',
            {"ALIVE": f"https://h/{SECRET}"},
            CheckStatus.OK,
            "on success the address at h, on failure the command sh",
        ),
        ('[notify]\nsuccess_env = "ALIVE"', {}, CheckStatus.WARNING, "ALIVE, which is not set"),
        ('[notify]\nsuccess_env = "ALIVE"', {"ALIVE": f"http://h/{SECRET}"}, CheckStatus.WARNING, "must be https://"),
        ('[notify]\nfailure = ["no-such-command"]', {}, CheckStatus.WARNING, "no such command: no-such-command"),
        ('[notify]\nfailure = ["./tell"]', {}, CheckStatus.WARNING, "no such command: ./tell"),
        ('[notify]\nfailure = ["sh"]', {}, CheckStatus.NOTE, "on success nobody, on failure the command sh"),
    ],
)
def test_the_receivers_are_named(
    tmp_path: Path, notify: str, variables: dict[str, str], status: CheckStatus, expected: str
) -> None:
    """The address is a secret: the message has only its host (I10)."""
    (tmp_path / "bookferry.toml").write_text(f"{notify}\n{TENANT.format(name='old')}")
    found = check_notifications(
        load_settings(tmp_path / "bookferry.toml"), "old", {"PATH": "/usr/bin:/bin", **variables}
    )
    assert (found.status, expected in found.message) == (status, True), found
    assert SECRET not in str(found.document)


def test_one_switch_for_two_libraries(tmp_path: Path) -> None:
    """Either would hide that the other does not run; one with a table of its own is not meant."""
    own = (
        f'[tenants.third.notify]\nsuccess = "https://h/3"\nfailure = "https://h/3/fail"\n{TENANT.format(name="third")}'
    )
    text = f'[notify]\nsuccess = "https://h/{SECRET}"\nfailure = "https://h/{SECRET}/fail"\n'
    text += TENANT.format(name="old") + TENANT.format(name="new") + own
    (tmp_path / "bookferry.toml").write_text(text)
    settings = load_settings(tmp_path / "bookferry.toml")
    found = check_notifications(settings, "old", {})
    assert (found.status, "new and old share one switch" in found.message) == (CheckStatus.WARNING, True)
    assert check_notifications(settings, "third", {}).status is CheckStatus.OK
    assert SECRET not in str(found.document)

"""Certificates that the environment names and that are not there: one sentence with the variable, and no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import run

CONFIG = """
data = "library-data"
[tenants.old]
base_url = "{base_url}"
api = "v2"
username_env = "BOOKFERRY_TEST_USER"
password_env = "BOOKFERRY_TEST_PASSWORD"
"""


@pytest.mark.parametrize("command", ["backup", "doctor"])
@pytest.mark.parametrize("place", ["missing.pem", "empty.pem", "folder"])
def test_certificates_that_are_not_there(tmp_path: Path, command: str, place: str) -> None:
    (tmp_path / "bookferry.toml").write_text(CONFIG.format(base_url="https://127.0.0.1:9"))
    (tmp_path / "empty.pem").touch()
    (tmp_path / "folder").mkdir()
    environ = {
        "BOOKFERRY_TEST_USER": "u",
        "BOOKFERRY_TEST_PASSWORD": "p",
        "SSL_CERT_FILE": str(tmp_path / place),
    }
    outcome = run(command, "old", folder=tmp_path, variables=environ)
    assert outcome.status == 2
    assert "SSL_CERT_FILE" in outcome.out + outcome.err
    assert "Traceback" not in outcome.err


def test_plain_http_on_this_machine_needs_none(tmp_path: Path) -> None:
    """A rehearsal goes on, whatever the environment names."""
    (tmp_path / "bookferry.toml").write_text(CONFIG.format(base_url="http://127.0.0.1:9"))
    environ = {
        "BOOKFERRY_TEST_USER": "u",
        "BOOKFERRY_TEST_PASSWORD": "p",
        "SSL_CERT_FILE": str(tmp_path / "missing.pem"),
    }
    outcome = run("doctor", "old", folder=tmp_path, variables=environ)
    assert "SSL_CERT_FILE" not in outcome.out + outcome.err

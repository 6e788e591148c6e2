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
@pytest.mark.parametrize(
    ("variable", "place"),
    [
        ("SSL_CERT_FILE", "missing.pem"),
        ("SSL_CERT_FILE", "empty.pem"),
        ("SSL_CERT_FILE", "folder"),
        ("SSL_CERT_DIR", "folder"),
        ("SSL_CERT_DIR", "missing"),
        ("SSL_CERT_DIR", "by their own names"),
    ],
)
def test_certificates_that_are_not_there(tmp_path: Path, command: str, variable: str, place: str) -> None:
    (tmp_path / "bookferry.toml").write_text(CONFIG.format(base_url="https://127.0.0.1:9"))
    (tmp_path / "empty.pem").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "by their own names").mkdir()
    (tmp_path / "by their own names" / "ca.pem").write_text("as nobody looks for it")
    environ = {
        "BOOKFERRY_TEST_USER": "u",
        "BOOKFERRY_TEST_PASSWORD": "p",
        "SSL_CERT_FILE": "",
        variable: str(tmp_path / place),
    }
    outcome = run(command, "old", folder=tmp_path, variables=environ)
    assert outcome.status == 2
    assert variable in outcome.out + outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("place", ["missing.pem", ""])
def test_a_bucket_behind_tls_needs_them_too(tmp_path: Path, place: str) -> None:
    config = CONFIG.format(base_url="http://127.0.0.1:9").replace("library-data", "s3://bucket/library")
    (tmp_path / "bookferry.toml").write_text(config)
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "r"}
    named = {"SSL_CERT_FILE": str(tmp_path / place) if place else "", "SSL_CERT_DIR": ""}
    environ = {**keys, "AWS_ENDPOINT_URL": "https://127.0.0.1:9", **named}
    outcome = run("snapshots", "list", folder=tmp_path, variables=environ)
    assert outcome.status == 2
    assert "SSL_CERT_FILE" in outcome.err
    assert "Traceback" not in outcome.err


def test_one_of_several_folders_has_certificates(tmp_path: Path) -> None:
    """OpenSSL takes a list, and passes over what is not there: the server is asked."""
    (tmp_path / "bookferry.toml").write_text(CONFIG.format(base_url="https://127.0.0.1:9"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "0123abcd.0").touch()
    environ = {
        "BOOKFERRY_TEST_USER": "u",
        "BOOKFERRY_TEST_PASSWORD": "p",
        "SSL_CERT_FILE": "",
        "SSL_CERT_DIR": f"{tmp_path / 'missing'}:{tmp_path / 'folder'}",
    }
    outcome = run("doctor", "old", folder=tmp_path, variables=environ)
    assert "SSL_CERT_DIR" not in outcome.out + outcome.err
    assert "cannot connect" in outcome.out + outcome.err


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

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


def test_a_bucket_behind_tls_needs_them_too(tmp_path: Path) -> None:
    config = CONFIG.format(base_url="http://127.0.0.1:9").replace("library-data", "s3://bucket/library")
    (tmp_path / "bookferry.toml").write_text(config)
    keys = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "r"}
    named = {"SSL_CERT_FILE": str(tmp_path / "missing.pem"), "SSL_CERT_DIR": ""}
    environ = {**keys, "AWS_ENDPOINT_URL": "https://127.0.0.1:9", **named}
    outcome = run("snapshots", "list", folder=tmp_path, variables=environ)
    assert outcome.status == 2
    assert "SSL_CERT_FILE" in outcome.err
    assert "Traceback" not in outcome.err


UNUSABLE = [
    ("SSL_CERT_FILE", "missing.pem"),
    ("SSL_CERT_FILE", "empty.pem"),
    ("SSL_CERT_FILE", "folder"),
    ("SSL_CERT_DIR", "folder"),
    ("SSL_CERT_DIR", "missing"),
]
PLAIN = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("command", "base_url", "variable", "place", "is_told"),
    [
        *(("backup", "https://127.0.0.1:9", variable, place, True) for variable, place in UNUSABLE),
        ("doctor", "https://127.0.0.1:9", "SSL_CERT_FILE", "missing.pem", True),
        ("doctor", "https://127.0.0.1:9", "SSL_CERT_DIR", "missing:{tmp_path}/hashed", False),
        ("doctor", PLAIN, "SSL_CERT_FILE", "missing.pem", False),
    ],
)
def test_certificates_that_are_not_there(
    tmp_path: Path, command: str, base_url: str, variable: str, place: str, *, is_told: bool
) -> None:
    """OpenSSL takes a list of folders, and passes over what is not there; plain http on this machine needs none: a rehearsal goes on."""
    (tmp_path / "bookferry.toml").write_text(CONFIG.format(base_url=base_url))
    (tmp_path / "empty.pem").touch()
    for folder in ("folder", "hashed"):
        (tmp_path / folder).mkdir()
    (tmp_path / "folder" / "ca.pem").write_text("as nobody looks for it")
    (tmp_path / "hashed" / "0123abcd.0").touch()
    environ = {"BOOKFERRY_TEST_USER": "u", "BOOKFERRY_TEST_PASSWORD": "p", "SSL_CERT_FILE": ""}
    named = f"{tmp_path}/{place.format(tmp_path=tmp_path)}"
    outcome = run(command, "old", folder=tmp_path, variables={**environ, variable: named})
    said = outcome.out + outcome.err
    assert (variable in said, "cannot connect" in said) == (is_told, not is_told)
    assert (outcome.status == 2 or not is_told, "Traceback" in said) == (True, False)

"""Certificates that the environment names and that are not there: one sentence with the variable, and no traceback."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from pipelines.errors import ConfigurationError
from pipelines.service.http.network import NetworkTransport
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files and folders that the environment may name."""
    (tmp_path / "empty.pem").touch()
    for name in ("folder", "hashed"):
        (tmp_path / name).mkdir()
    (tmp_path / "folder" / "ca.pem").write_text("as nobody looks for it")
    (tmp_path / "hashed" / "0123abcd.0").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("base_url", "variable", "place", "is_told"),
    [
        *(("https://127.0.0.1:9", "SSL_CERT_FILE", name, True) for name in ("missing.pem", "empty.pem", "folder")),
        *(("https://127.0.0.1:9", "SSL_CERT_DIR", name, True) for name in ("folder", "missing")),
        ("https://127.0.0.1:9", "SSL_CERT_DIR", "missing:{folder}/hashed", False),
        ("http://127.0.0.1:9", "SSL_CERT_FILE", "missing.pem", False),
    ],
)
def test_certificates_that_are_not_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, base_url: str, variable: str, place: str, *, is_told: bool
) -> None:
    """OpenSSL takes a list of folders, and passes over what is not there; plain http on this machine needs none: a rehearsal goes on."""
    monkeypatch.setenv("SSL_CERT_FILE", "")
    monkeypatch.setenv(variable, f"{folder}/{place.format(folder=folder)}")
    with pytest.raises(ConfigurationError, match=variable) if is_told else nullcontext():
        NetworkTransport(base_url).close()


def test_doctor_says_it_like_a_backup(tmp_path: Path) -> None:
    (tmp_path / "bookferry.toml").write_text(CONFIG.format(base_url="https://127.0.0.1:9"))
    variables = {"BOOKFERRY_TEST_USER": "u", "BOOKFERRY_TEST_PASSWORD": "p", "SSL_CERT_FILE": f"{tmp_path}/missing.pem"}
    for command in ("backup", "doctor"):
        outcome = run(command, "old", folder=tmp_path, variables=variables)
        output = outcome.out + outcome.err
        assert (outcome.status, "SSL_CERT_FILE" in output, "Traceback" in output) == (2, True, False)

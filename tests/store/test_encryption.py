"""The key for personal data: sealed data cannot be read or changed without it, and nothing reveals it (I10)."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import ConfigurationError, StorageError
from pipelines.settings.settings import Settings
from pipelines.store.encryption import PersonalKey, personal_keys
from tests.store.snapshot_factory import KEY, OTHER
from tests.variables import with_variables


def settings(variable: str | None) -> Settings:
    return Settings(Path("/etc/bookferry.toml"), Path("/data"), "UTC", "02:00", tenants={}, personal_key_env=variable)


@given(st.binary(max_size=300))
def test_sealed_content_is_unsealed_and_differs_each_time(content: bytes) -> None:
    sealed = KEY.seal(content)
    assert KEY.unseal(sealed) == content
    assert len(sealed) == len(content) + 32
    assert sealed != KEY.seal(content)


@given(st.binary(max_size=60), st.data())
def test_changed_or_cut_content_is_refused(content: bytes, data: st.DataObject) -> None:
    sealed = bytearray(KEY.seal(content))
    at = data.draw(st.integers(0, len(sealed) - 1))
    cut = bytes(sealed[:at])
    sealed[at] ^= 1 << data.draw(st.integers(0, 7))
    for changed in (bytes(sealed), cut):
        with pytest.raises(StorageError, match="sealed under another key, or damaged"):
            KEY.unseal(changed)


def test_another_key_does_not_open_it() -> None:
    with pytest.raises(StorageError, match=OTHER.fingerprint) as caught:
        OTHER.unseal(KEY.seal(b"ann@example.org"))
    assert KEY.text not in str(caught.value)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="this machine has no openssl")
def test_a_key_of_openssl_is_accepted_and_not_revealed() -> None:
    """The command is the documented one."""
    encoded = subprocess.run(["openssl", "rand", "-base64", "32"], capture_output=True, text=True, check=True).stdout
    keys = with_variables({"BOOKFERRY_PERSONAL_KEY": encoded}, personal_keys, settings("BOOKFERRY_PERSONAL_KEY"))
    key = keys.to_write()
    assert key is not None
    assert key.text == encoded.strip()
    assert encoded.strip() not in f"{key!r} {key} {keys!r} {key.fingerprint}"
    assert key.fingerprint == PersonalKey(base64.b64decode(encoded)).fingerprint
    assert len(key.fingerprint) == 16


def test_the_first_key_encrypts_and_all_of_them_read() -> None:
    """Rotation: the new key goes in front of the old one."""
    keys = with_variables({"KEYS": f"{KEY.text} {OTHER.text}\n"}, personal_keys, settings("KEYS"))
    assert keys.to_write() == KEY
    assert keys.to_read(OTHER.fingerprint, "A file") == OTHER
    assert keys.fingerprints == [KEY.fingerprint, OTHER.fingerprint]


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, "names the environment variable KEYS, which is not set"),
        ({"KEYS": " "}, "names the environment variable KEYS, which is empty"),
        ({"KEYS": "c2VjcmV0LXNlY3JldA=="}, "holds no key of 32 bytes in base64"),
        ({"KEYS": KEY.text[:-1]}, "holds no key of 32 bytes in base64"),
        ({"KEYS": f"{KEY.text} not-base64!"}, "holds no key of 32 bytes in base64"),
        ({"KEYS": KEY.text + "é"}, "holds no key of 32 bytes in base64"),
    ],
)
def test_a_variable_without_a_key_is_an_error_where_the_key_is_needed(environ: dict[str, str], message: str) -> None:
    """Everything else works without it. The message has the remedy and never the value (I10)."""
    keys = with_variables(environ, personal_keys, settings("KEYS"))
    for need in (keys.to_write, lambda: keys.to_read("0011223344556677", "A file")):
        with pytest.raises(ConfigurationError, match=message) as caught:
            need()
        assert "openssl rand -base64 32" in str(caught.value)
        assert not [word for word in environ.get("KEYS", "").split() if word in str(caught.value)]


def test_a_key_in_the_place_of_a_variables_name_is_not_shown() -> None:
    with pytest.raises(ConfigurationError, match="never the key") as caught:
        with_variables({}, personal_keys, settings("abcDEF0123abcDEF")).to_write()
    assert "abcDEF" not in str(caught.value)

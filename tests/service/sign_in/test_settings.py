"""The keys of a v3 tenant in bookferry.toml; every mistake names file, key and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import ConfigurationError
from pipelines.settings.config_file import load_settings
from pipelines.settings.credentials import OAuthClient
from pipelines.settings.settings import Settings
from tests.variables import with_variables

SECRET = "not-a-secret-by-chance"


def load(folder: Path, *lines: str) -> Settings:
    """A file with a v3 tenant that has these lines."""
    path = folder / "bookferry.toml"
    path.write_text("\n".join(["[tenants.new]", 'base_url = "https://library.example.org"', 'api = "v3"', *lines]))
    return load_settings(path)


@pytest.mark.parametrize("auth", ["client_secret_basic", "client_secret_post"])
def test_an_issued_client(tmp_path: Path, auth: str) -> None:
    """service.md#clients: an issued client is always confidential."""
    settings = load(tmp_path, 'client_id = "abc"', 'client_secret_env = "NEW_SECRET"', f'client_auth = "{auth}"')
    assert with_variables({"NEW_SECRET": SECRET}, settings.oauth_client, "new") == OAuthClient("abc", SECRET, auth)  # type: ignore[arg-type]
    assert SECRET not in repr(with_variables({"NEW_SECRET": SECRET}, settings.oauth_client, "new"))
    with pytest.raises(ConfigurationError, match="NEW_SECRET, which is not set"):
        with_variables({}, settings.check_sign_in, "new")
    with pytest.raises(ConfigurationError, match="no client secret has"):
        with_variables({"NEW_SECRET": "two\nlines"}, settings.check_sign_in, "new")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (['client_secret_env = "S"'], "has client_secret_env but no client_id"),
        (['redirect_uri = "https://h/cb"'], "has redirect_uri but no client_id"),
        (['client_id = "abc"'], "has client_id but no client_secret_env"),
        (
            ['client_id = "abc"', 'client_secret_env = "S"', 'client_auth = "none"'],
            "a public client: it has no client_secret_env",
        ),
        (['client_auth = "basic"'], "client_auth: "),
        ([f'client_secret_env = "{SECRET}"'], "must be the name of an environment variable"),
        (
            ['client_id = "abc"', 'client_secret_env = "S"', 'redirect_uri = "http://localhost/cb"'],
            "`localhost` is refused",
        ),
        (['client_id = "abc"', 'client_secret_env = "S"', 'redirect_uri = "http://127.0.0.1/cb"'], "with its port"),
        (['client_id = "abc"', 'client_secret_env = "S"', 'redirect_uri = "http://h.example/cb"'], "must be https"),
        (
            ['client_id = "abc"', 'client_secret_env = "S"', 'redirect_uri = "https://me:x@h/cb"'],
            "a user name or a password",
        ),
        (['client_id = "abc"', 'client_secret_env = "S"', 'redirect_uri = "nonsense"'], "must be an address"),
    ],
)
def test_a_mistake_names_key_and_remedy(tmp_path: Path, lines: list[str], expected: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, *lines)
    assert expected in str(caught.value)
    assert f"{tmp_path / 'bookferry.toml'}: tenants.new" in str(caught.value)
    assert SECRET not in str(caught.value)

"""The checked settings: what bookferry.toml says (config_file.py has the keys and reads it), and what the environment adds.

The file names secrets by environment variable, and they are read only when a tenant is signed in, so that commands on snapshots need no
password. A mistake is a `ConfigurationError` that names the file, the key and the remedy.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipelines.errors import ConfigurationError
from pipelines.settings.addresses import library_key
from pipelines.settings.credentials import BasicCredentials, OAuthClient, SessionCookie
from pipelines.settings.password_command import first_line
from pipelines.settings.postgres_address import SCHEME
from pipelines.settings.retention_and_notify import NotifySettings, RetentionSettings
from pipelines.settings.storage import IcebergSettings, PostgresSettings, state_home
from pipelines.settings.tenant import TenantSettings
from pipelines.settings.validation_messages import did_you_mean
from pipelines.settings.value_types import variable_state, variable_value


@dataclass(frozen=True)
class Settings:
    """Everything that a person configured; paths are absolute."""

    path: Path
    data: Path
    """The folder on this machine: for all data or, if the data is in a bucket, for the working files of runs."""
    timezone: str
    nightly_at: str
    tenants: Mapping[str, TenantSettings]
    postgres_env: str | None = None
    tokens: Path | None = None
    personal_key_env: str | None = None
    """The variable with the key that encrypts personal data; without it, personal data is stored like all other data."""
    retention: RetentionSettings | None = None
    notify: NotifySettings = field(default_factory=NotifySettings)
    bucket: str | None = None
    """The bucket for snapshots and stored files, if they are not in the folder: s3://bucket/prefix."""
    identifiers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Types of identifiers beside the documented ones, by name."""
    staging: PostgresSettings = field(default_factory=PostgresSettings)
    """How tables are staged into the database."""
    state: str = "local"
    """Where budget, journal and leases are: `local`, in the data folder, or `postgres`, in the database of `postgres_env`."""
    group: str | None = None
    """The group whose members share the files of data and state; without one, this user alone can open them."""
    iceberg: IcebergSettings | None = None
    """The catalogue of Iceberg tables; without one, there are none."""

    def tenant(self, name: str) -> TenantSettings:
        """Return the settings of one tenant; an unknown name is a `ConfigurationError` that lists the known ones."""
        if name in self.tenants:
            return self.tenants[name]
        tenants = ", ".join(sorted(self.tenants)) or "none"
        raise ConfigurationError(
            f"{self.path}: there is no tenant '{name}'{did_you_mean(name, self.tenants)}. Tenants in this file: {tenants}."
        )

    def credentials(self, name: str) -> BasicCredentials | SessionCookie:
        """Return the v2 sign-in of a tenant, read from the environment now."""
        tenant = self.tenant(name)
        if tenant.session_cookie_env:
            return SessionCookie(self._variable(name, "session_cookie_env", tenant.session_cookie_env))
        if not (tenant.username_env and (tenant.password_env or tenant.password_command)):
            raise ConfigurationError(
                f"{self.path}: tenants.{name} has no sign-in for v2. Name the variables that hold it: "
                "username_env and password_env, or session_cookie_env; password_command can take the place of password_env."
            )
        user = self._variable(name, "username_env", tenant.username_env)
        if tenant.password_env:
            return BasicCredentials(user, self._variable(name, "password_env", tenant.password_env))
        return BasicCredentials(user, self._printed_password(name, tenant.password_command or ()))

    def oauth_client(self, name: str) -> OAuthClient | None:
        """Return the client that an administrator issued for a v3 tenant: it belongs to the account. `None` if there is none.

        Its secret is read from the environment now.
        """
        tenant = self.tenant(name)
        if tenant.client_id is None:
            return None
        if tenant.client_secret_env is None:
            return OAuthClient(tenant.client_id, None, "none")
        secret = self._variable(name, "client_secret_env", tenant.client_secret_env)
        return OAuthClient(tenant.client_id, secret, tenant.client_auth or "client_secret_basic")

    def check_sign_in(self, name: str) -> None:
        """Raise `ConfigurationError` if a variable of the sign-in is missing, before anything starts."""
        if self.tenant(name).api == "v2":
            self.credentials(name)
        else:
            self.oauth_client(name)

    def tokens_folder(self) -> Path:
        """Return the folder of v3 sign-ins: `tokens` of the file, else the user's folder for state.

        It is not the data folder, which is shared with analysts, copied and restored: an old refresh token from a copy may end the sign-in
        for everybody.
        """
        return state_home(self.path) if self.tokens is None else self.tokens

    def postgres(self) -> str | None:
        """Return the address of the database that `postgres_env` names; `None` if there is none."""
        if self.postgres_env is None:
            return None
        where = f"{self.path}: postgres_env"
        address = variable_value(self.postgres_env, where, "postgresql://host/database")
        if not SCHEME.match(address.strip()):
            raise ConfigurationError(
                f"{where} names the environment variable {self.postgres_env}, whose value is not an address such as "
                "postgresql://host/database. Correct it."
            )
        return address

    def state_database(self) -> str:
        """Return the address of the database with the shared state; without one, this is a `ConfigurationError`."""
        if (address := self.postgres()) is None:
            raise ConfigurationError(
                f"{self.path}: the state in Postgres needs a database, and postgres_env names none. Add "
                'postgres_env = "BOOKFERRY_POSTGRES", '
                "the name of the variable with its address."
            )
        return address

    @property
    def stages(self) -> bool:
        """Whether tables are staged into a database."""
        return self.postgres_env is not None and self.staging.load

    @property
    def fingerprints(self) -> dict[str, str]:
        """For each tenant, a digest of all that concerns it: its own table, and the rest of the file."""
        rest = repr(replace(self, tenants={}))
        return {
            name: hashlib.sha256(f"{rest} {tenant!r}".encode()).hexdigest() for name, tenant in self.tenants.items()
        }

    def notify_of(self, name: str) -> NotifySettings:
        """Return the receivers of reports about this tenant: its own table, else the table of the whole file."""
        own = self.tenants[name].notify if name in self.tenants else None
        return own or self.notify

    def budget_of(self, name: str) -> tuple[str, int]:
        """Return the key of a tenant's budget and its requests a minute.

        The service grants the budget to a library, over both API versions (I1). Therefore tenants with the same base_url share it, and the
        lowest of their limits counts.
        """
        library = library_key(self.tenant(name).base_url)
        sharing = [tenant for tenant in self.tenants.values() if library_key(tenant.base_url) == library]
        return library, min(tenant.requests_per_minute for tenant in sharing)

    def _printed_password(self, tenant: str, command: tuple[str, ...]) -> str:
        """Return what the command of a tenant prints. Messages show neither that nor the arguments."""
        where = f"{self.path}: tenants.{tenant}.password_command"
        password = first_line(command, self.path.parent, where)
        allowed, problem = _ALLOWED_VALUES["password_env"]
        if not re.fullmatch(allowed, password):
            problem = f"contains {problem}" if password else "is empty"
            raise ConfigurationError(f"{where}: the first line that {command[0]} prints {problem}.")
        return password

    def _variable(self, tenant: str, key: str, variable: str) -> str:
        """Return the value of the variable that a key names. Messages show neither the value nor a name that may be the secret itself."""
        where, value = f"{self.path}: tenants.{tenant}.{key}", os.environ.get(variable, "")
        allowed, problem = _ALLOWED_VALUES[key]
        if re.fullmatch(allowed, value):
            return value
        if value:
            raise ConfigurationError(
                f"{where}: the environment variable that it names contains {problem}. Correct its value."
            )
        if key != "username_env" and not variable.isupper():
            raise ConfigurationError(
                f"{where} must be the name of an environment variable with the secret, never the secret itself. The variable it names is "
                f"{variable_state(variable)}. Name it in capitals, for example {key.upper()}, and export it."
            )
        return variable_value(variable, where)


_ALLOWED_VALUES = {
    "username_env": (
        r"[^\x00-\x1f\x7f:]+",
        "a colon or a control character, which no user name of HTTP Basic authentication has",
    ),
    "password_env": (r"[^\x00-\x1f\x7f]+", "a line break or another control character"),
    "client_secret_env": (
        r"[\x20-\x7e]+",
        "a line break or a character that no client secret has (RFC 6749, appendix A)",
    ),
    "session_cookie_env": (
        r"[!#-+\--:<-\[\]-~]+",
        "a blank, quote, comma, semicolon or other character that no cookie has",
    ),
}
"""Key → the pattern of its variable's value (RFC 7617, RFC 6265), and the probable mistake in any other value."""

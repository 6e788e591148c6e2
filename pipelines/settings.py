"""bookferry.toml and the environment, as one checked `Settings`; nothing else in the project reads either.

Secrets are named by environment variable in the file and looked up only when a tenant is signed in, so that looking at snapshots needs
no password. A mistake is a `ConfigurationError` that names the file, the key and the remedy.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from pipelines.addresses import checked_base_url, checked_redirect_uri
from pipelines.errors import ConfigurationError
from pipelines.identifier_types import IdentifierSettings, TypeName, with_fields_of_their_own
from pipelines.inventory import resource_mistake
from pipelines.mistakes import did_you_mean, explain
from pipelines.nights import Monthly, NotifySettings, RetentionSettings, TimeZone, VariableName, WeeklyOrDaily
from pipelines.places import PostgresSettings, folder_of, places_of, state_home

CONFIG_VARIABLE = "BOOKFERRY_CONFIG"
CONFIG_FILE = "bookferry.toml"
TOKENS_VARIABLE = "BOOKFERRY_TOKENS"

TenantName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
"""Becomes a folder (`tenant=old`), a prefix of asset keys and a word in the log: lower case letters, digits and `_`."""

Scope = Literal[
    "library:read",
    "library:write",
    "assets:read",
    "assets:write",
    "users:read",
    "users:write",
    "tasks:read",
    "tasks:write",
]
"""service-api.md, v3 scopes."""

SCOPES: tuple[str, ...] = get_args(Scope)
"""All scopes of v3, in the document's order."""

ClientAuth = Literal["none", "client_secret_basic", "client_secret_post"]
"""How a client authenticates at the token endpoint; `none` is a public client."""


class TenantSettings(BaseModel):
    """One library at one base_url, and how to sign in there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: Annotated[str, AfterValidator(checked_base_url)]
    api: Literal["v2", "v3"]
    username_env: VariableName | None = None
    password_env: VariableName | None = None
    session_cookie_env: VariableName | None = None
    client_id: Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$")] | None = None
    client_secret_env: VariableName | None = None
    client_auth: ClientAuth | None = None
    redirect_uri: Annotated[str, AfterValidator(checked_redirect_uri)] | None = None
    pkce: bool = Field(default=True, strict=True)
    scopes: tuple[Scope, ...] | None = None
    resources: tuple[str, ...] | None = None
    files: bool = Field(default=True, strict=True)
    requests_per_minute: int = Field(default=60, ge=1, le=1_000_000, strict=True)
    notify: NotifySettings | None = None
    walks: int = Field(default=3, ge=1, le=10, strict=True)
    resume_hours: int = Field(default=12, ge=0, le=168, strict=True)
    send_invalid_identifiers: bool = Field(default=False, strict=True)
    """Whether a migration into this library sends identifiers, too, that break the rules of their type."""
    files_with_record: bool = Field(default=False, strict=True)
    """Whether a migration into this library sends a record's files with it, which saves a request for each file (service-api.md:
    `assets_attributes`); tried on the first record, proved by reading it back."""

    @model_validator(mode="after")
    def _identifiers_are_sent_to_v3(self) -> Self:
        for key in ("send_invalid_identifiers", "files_with_record"):
            if getattr(self, key) and self.api == "v2":
                raise ValueError(f'has {key}, which is for a library that is migrated into: one with api = "v3"')
        return self

    @model_validator(mode="after")
    def _one_sign_in(self) -> Self:
        if self.session_cookie_env and (self.username_env or self.password_env):
            raise ValueError("has two sign-ins: keep either username_env and password_env, or session_cookie_env")
        return self

    @model_validator(mode="after")
    def _known_resources(self) -> Self:
        if self.resources is not None and not self.resources:
            raise ValueError("has resources = [], so nothing would be backed up: name some, or remove the key")
        if mistake := resource_mistake(self.api, self.resources or ()):
            raise ValueError(f"has resources with {mistake}")
        return self

    @model_validator(mode="after")
    def _one_client(self) -> Self:
        """What belongs to a client issued by an administrator comes together; service-api.md: such a client is "always confidential"."""
        issued = [key for key in ("client_secret_env", "redirect_uri") if getattr(self, key)]
        issued += [] if self.pkce else ["pkce"]
        if issued and not self.client_id:
            raise ValueError(
                f"has {issued[0]} but no client_id: add the client_id that the administrator gave you, or remove {issued[0]}, and "
                "`bookferry login` registers a client of its own"
            )
        if self.client_id and self.client_auth != "none" and not self.client_secret_env:
            raise ValueError(
                'has client_id but no client_secret_env: name the variable that holds the secret, or set client_auth = "none" for a '
                "public client, which has none"
            )
        if self.client_auth == "none" and (self.client_secret_env or not self.pkce):
            raise ValueError(
                'has client_auth = "none", a public client: it has no client_secret_env and always needs PKCE. Remove the other key'
            )
        return self


class _ConfigFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    data: str = "library-data"
    work: str | None = None
    postgres_env: VariableName | None = None
    postgres: PostgresSettings = Field(default_factory=PostgresSettings)
    personal_key_env: VariableName | None = None
    tokens: str | None = None
    timezone: TimeZone = "UTC"
    nightly_at: Annotated[str, StringConstraints(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")] = "02:00"
    verify_at: WeeklyOrDaily = "sun 12:00"
    drill_at: Monthly = "1 18:00"
    retention: RetentionSettings | None = None
    notify: NotifySettings = Field(default_factory=NotifySettings)
    identifiers: Annotated[dict[TypeName, IdentifierSettings], AfterValidator(with_fields_of_their_own)] = Field(
        default_factory=dict
    )
    tenants: dict[TenantName, TenantSettings] = Field(default_factory=dict)


@dataclass(frozen=True)
class BasicCredentials:
    """User name and password of a v2 account (service-api.md, v2: "HTTP Basic authentication")."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class SessionCookie:
    """Value of `_library_session` (service-api.md, v2: "from an already signed-in browser session")."""

    value: str = field(repr=False)


@dataclass(frozen=True)
class IssuedClient:
    """A client that an administrator issued (service-api.md, Clients: "owned by the account, not by a person")."""

    client_id: str
    secret: str | None = field(repr=False)
    auth: ClientAuth
    pkce: bool


@dataclass(frozen=True)
class Settings:
    """All that a person configured; paths are absolute."""

    path: Path
    data: Path
    """The folder on this machine: of everything, or, where the data is in a bucket, of what only the runs need."""
    timezone: str
    nightly_at: str
    tenants: Mapping[str, TenantSettings]
    postgres_env: str | None = None
    tokens: Path | None = None
    verify_at: str = "sun 12:00"
    """When the newest snapshots are verified: a weekday and a time, or a time of every day."""
    personal_key_env: str | None = None
    """Variable with the key that personal data is encrypted with; without it, it is kept like all else."""
    retention: RetentionSettings | None = None
    notify: NotifySettings = field(default_factory=NotifySettings)
    bucket: str | None = None
    """Where snapshots and stored files are, unless they are in the folder: s3://bucket/prefix."""
    identifiers: Mapping[str, IdentifierSettings] = field(default_factory=dict)
    """Types of identifiers beside those that service-api.md names, by name."""
    drill_at: str = "1 18:00"
    """When the newest snapshots are restored into a sandbox: a day of the month and a time."""
    staging: PostgresSettings = field(default_factory=PostgresSettings)
    """How tables are staged into the database."""

    def tenant(self, name: str) -> TenantSettings:
        """Settings of one tenant; an unknown name is a `ConfigurationError` that lists the known ones."""
        if name in self.tenants:
            return self.tenants[name]
        known = ", ".join(sorted(self.tenants)) or "none"
        raise ConfigurationError(
            f"{self.path}: there is no tenant '{name}'{did_you_mean(name, self.tenants)}. Tenants in this file: {known}."
        )

    def credentials(self, name: str, environ: Mapping[str, str] = os.environ) -> BasicCredentials | SessionCookie:
        """The v2 sign-in of a tenant, read from the environment now."""
        tenant = self.tenant(name)
        if tenant.session_cookie_env:
            return SessionCookie(self._variable(name, "session_cookie_env", tenant.session_cookie_env, environ))
        if not (tenant.username_env and tenant.password_env):
            raise ConfigurationError(
                f"{self.path}: tenants.{name} has no sign-in for v2. Name the variables that hold it: "
                "username_env and password_env, or session_cookie_env."
            )
        return BasicCredentials(
            self._variable(name, "username_env", tenant.username_env, environ),
            self._variable(name, "password_env", tenant.password_env, environ),
        )

    def oauth_client(self, name: str, environ: Mapping[str, str] = os.environ) -> IssuedClient | None:
        """The client that an administrator issued for a v3 tenant, its secret read from the environment now; None where none was."""
        tenant = self.tenant(name)
        if tenant.client_id is None:
            return None
        if tenant.client_secret_env is None:
            return IssuedClient(tenant.client_id, None, "none", pkce=True)
        secret = self._variable(name, "client_secret_env", tenant.client_secret_env, environ)
        return IssuedClient(tenant.client_id, secret, tenant.client_auth or "client_secret_basic", pkce=tenant.pkce)

    def check_sign_in(self, name: str, environ: Mapping[str, str] = os.environ) -> None:
        """Raise `ConfigurationError` where a variable that the sign-in needs is missing, before anything starts."""
        if self.tenant(name).api == "v2":
            self.credentials(name, environ)
        else:
            self.oauth_client(name, environ)

    def tokens_folder(self, environ: Mapping[str, str] = os.environ) -> Path:
        """Where sign-ins to v3 are kept: `tokens` of the file, else $BOOKFERRY_TOKENS, else the user's folder for such state.

        Not the data folder: that one is shared with analysts, copied and restored, and an old refresh token that comes back from a copy
        may end the sign-in for everybody.
        """
        if self.tokens is not None:
            return self.tokens
        if environ.get(TOKENS_VARIABLE):
            return Path(environ[TOKENS_VARIABLE]).expanduser().absolute()
        try:
            return state_home(environ)
        except RuntimeError:
            raise ConfigurationError(
                f'{self.path}: this user has no home folder to keep sign-ins in. Name a folder with `tokens = "..."` at the top of the '
                f"file, or in ${TOKENS_VARIABLE}."
            ) from None

    def postgres(self, environ: Mapping[str, str] = os.environ) -> str | None:
        """The address of the database that `postgres_env` names, or None where there is none."""
        if self.postgres_env is None:
            return None
        address, where = environ.get(self.postgres_env, ""), f"{self.path}: postgres_env"
        if not address:
            state = "empty" if self.postgres_env in environ else "not set"
            raise ConfigurationError(
                f"{where} names the environment variable {self.postgres_env}, which is {state}. Set it, for example: "
                f"export {self.postgres_env}=postgresql://user:password@host/database"
            )
        if not re.match(r"postgres(ql)?(\+\w+)?://", address):
            raise ConfigurationError(
                f"{where} names the environment variable {self.postgres_env}, whose value is no address such as "
                "postgresql://user:password@host/database. Correct it."
            )
        return address

    @property
    def stages(self) -> bool:
        """Whether tables are staged into a database."""
        return self.postgres_env is not None and self.staging.load

    def notify_of(self, name: str) -> NotifySettings:
        """Who is told how a run of this tenant ended: its own table, else that of the whole file."""
        own = self.tenants[name].notify if name in self.tenants else None
        return own or self.notify

    def budget_of(self, name: str) -> tuple[str, int]:
        """What the budget of a tenant is kept under, and its requests a minute.

        The service grants the budget to a library, not to an entry of this file (I1: "counted over both API versions"), so entries
        with one base_url share it, and the lowest of their limits holds.
        """
        library = self.tenant(name).base_url.lower()
        sharing = [tenant for tenant in self.tenants.values() if tenant.base_url.lower() == library]
        return library, min(tenant.requests_per_minute for tenant in sharing)

    def _variable(self, tenant: str, key: str, variable: str, environ: Mapping[str, str]) -> str:
        """The value of the variable that a key names; messages never show it, nor a name that may be the secret itself."""
        where, value = f"{self.path}: tenants.{tenant}.{key}", environ.get(variable, "")
        allowed, fault = _FIT[key]
        if re.fullmatch(allowed, value):
            return value
        if value:
            raise ConfigurationError(
                f"{where}: the environment variable that it names holds {fault}. Correct its value."
            )
        state = "empty" if variable in environ else "not set"
        if key != "username_env" and not variable.isupper():
            raise ConfigurationError(
                f"{where} must be the name of an environment variable that holds the secret, never the secret. The variable it names is "
                f"{state}. Name it in capitals, for example {key.upper()}, and export it."
            )
        raise ConfigurationError(
            f"{where} names the environment variable {variable}, which is {state}. Set it, for example: export {variable}=..."
        )


_FIT = {
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
"""Key → what a value of its variable may consist of (RFC 7617, RFC 6265), and what else it seems to hold."""


def find_config(given: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """The configuration file: `given` (--config), else $BOOKFERRY_CONFIG, else bookferry.toml in the working folder."""
    if given is not None:
        path, source = given, "--config"
    elif environ.get(CONFIG_VARIABLE):
        path, source = Path(environ[CONFIG_VARIABLE]), f"${CONFIG_VARIABLE}"
    else:
        path, source = Path(CONFIG_FILE), "the working folder"
    if not path.is_file():
        raise ConfigurationError(
            f"{path}: no such configuration file (looked for by {source}). "
            "Make one with `bookferry init`, or name one with --config."
        )
    return path.absolute()


def load_settings(path: Path, environ: Mapping[str, str] = os.environ) -> Settings:
    """Read and check one configuration file. Relative paths in it are relative to it, wherever the command is run."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        checked = _ConfigFile.model_validate(content)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read ({error}).") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: is not valid TOML: {error}. Mend that line.") from None
    except ValidationError as error:
        raise ConfigurationError(explain(path, error, _known_keys)) from None
    bucket, folder = places_of(path, checked.data, checked.work, environ)
    return Settings(
        path.absolute(),
        folder,
        checked.timezone,
        checked.nightly_at,
        checked.tenants,
        checked.postgres_env,
        None if checked.tokens is None else folder_of(path, "tokens", checked.tokens),
        checked.verify_at,
        checked.personal_key_env,
        retention=checked.retention,
        notify=checked.notify,
        bucket=bucket,
        identifiers=checked.identifiers,
        drill_at=checked.drill_at,
        staging=checked.postgres,
    )


def _known_keys(table: Sequence[str]) -> Iterable[str]:
    models: dict[str, type[BaseModel]] = {
        "retention": RetentionSettings,
        "notify": NotifySettings,
        "postgres": PostgresSettings,
    }
    inside = table[2:] if table[:1] == ["tenants"] else table
    if table[:1] == ["identifiers"]:
        return IdentifierSettings.model_fields
    if not table:
        return _ConfigFile.model_fields
    return models.get(inside[0], TenantSettings).model_fields if inside else TenantSettings.model_fields

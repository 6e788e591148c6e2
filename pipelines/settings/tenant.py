"""The table of one tenant in bookferry.toml: one library at one base_url, and its sign-in."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from pipelines.inventory import default_resources, nested_problem, resource_problem
from pipelines.service_limits import REQUESTS_PER_MINUTE
from pipelines.settings.addresses import checked_base_url, checked_record_url, checked_redirect_uri
from pipelines.settings.retention_and_notify import NotifySettings
from pipelines.settings.value_types import VariableName
from pipelines.settings.write_requests import RequestForm, request_problem

TenantName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
"""Becomes a folder (`tenant=old`), a prefix of asset keys and a word in the log: lower case letters, digits and `_`."""


ClientAuth = Literal["none", "client_secret_basic", "client_secret_post"]
"""How a client authenticates at the token endpoint; `none` is a public client."""


Word = Annotated[str, StringConstraints(min_length=1, strict=True)]


class TenantSettings(BaseModel):
    """One library at one base_url, and its sign-in."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    base_url: Annotated[str, AfterValidator(checked_base_url)]
    api: Literal["v2", "v3"]
    username_env: VariableName | None = None
    password_env: VariableName | None = None
    password_command: Annotated[tuple[Word, ...], Field(min_length=1)] | None = None
    """Instead of `password_env`: a command whose first line of output is the password."""
    session_cookie_env: VariableName | None = None
    client_id: Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$")] | None = None
    client_secret_env: VariableName | None = None
    client_auth: ClientAuth | None = None
    redirect_uri: Annotated[str, AfterValidator(checked_redirect_uri)] | None = None
    resources: tuple[str, ...] | None = None
    nested: tuple[str, ...] = ()
    """Lists that each record has at an address of its own: `collections/publications`. Each record costs a request or more."""
    files: bool = Field(default=True, strict=True)
    requests_per_minute: int = Field(default=REQUESTS_PER_MINUTE, ge=1, le=1_000_000, strict=True)
    notify: NotifySettings | None = None
    record_url: Annotated[str, AfterValidator(checked_record_url)] | None = None
    """Address of a publication's page in the library, with `{id}` for its number: lists of issues link to it."""
    requests: dict[str, RequestForm] = Field(default_factory=dict)
    """Resource → how the library takes its writes, where nothing describes that."""

    @model_validator(mode="after")
    def _one_sign_in(self) -> Self:
        if self.password_env and self.password_command:
            raise ValueError("has two passwords: keep either password_env or password_command")
        if self.session_cookie_env and (self.username_env or self.password_env or self.password_command):
            raise ValueError("has two sign-ins: keep either username_env and password_env, or session_cookie_env")
        return self

    @model_validator(mode="after")
    def _known_resources(self) -> Self:
        if self.resources is not None and not self.resources:
            raise ValueError("has resources = [], so nothing would be backed up: name some, or remove the key")
        if mistake := resource_problem(self.api, self.resources or ()):
            raise ValueError(f"has resources with {mistake}")
        if mistake := nested_problem(self.resources or default_resources(self.api), self.nested):
            raise ValueError(f"has nested with {mistake}")
        if mistake := request_problem(self.requests):
            raise ValueError(f"has requests with {mistake}")
        return self

    @model_validator(mode="after")
    def _one_client(self) -> Self:
        """The keys of a client that an administrator issued come together; such a client is confidential (service.md#clients)."""
        issued = [key for key in ("client_secret_env", "redirect_uri") if getattr(self, key)]
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
        if self.client_auth == "none" and self.client_secret_env:
            raise ValueError(
                'has client_auth = "none", a public client: it has no client_secret_env. Remove one of the two'
            )
        return self

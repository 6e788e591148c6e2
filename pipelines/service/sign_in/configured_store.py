"""Chooses the token store of a tenant: a file of this user, or a row of a Postgres database."""

from __future__ import annotations

from pipelines.service.sign_in.file_tokens import FileTokens
from pipelines.service.sign_in.token_store import (
    TokenStore,
)
from pipelines.settings.settings import Settings


def open_tokens(settings: Settings, tenant: str) -> TokenStore:
    """Returns the store of a tenant's sign-in: in the database if one is configured, else in the user's folder. Opens nothing yet."""
    base_url = settings.tenant(tenant).base_url
    address = settings.postgres()
    if address is None:
        return FileTokens(settings.tokens_folder(), tenant, base_url)
    from pipelines.service.sign_in.postgres_tokens import PostgresTokens  # noqa: PLC0415  most users have no database

    return PostgresTokens(address, tenant, base_url)

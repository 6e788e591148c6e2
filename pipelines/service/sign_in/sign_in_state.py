"""The state of a sign-in, from its store alone: no request is sent."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.errors import ConfigurationError, SignInError
from pipelines.service.clock import Clock
from pipelines.service.sign_in.token_refresh import (
    no_refresh_token,
    usable_grant,
)
from pipelines.service.sign_in.token_store import open_tokens
from pipelines.settings.settings import Settings


@dataclass(frozen=True)
class SignInState:
    """What is known of a sign-in without a request: for `doctor`, `whoami` and the warnings of the nightly job."""

    place: str
    problem: str | None
    """Why it cannot be used, and the remedy; None if all seems well."""
    scopes: tuple[str, ...] = ()
    signed_in_at: float | None = None
    renewed_at: float | None = None
    """When the tokens in use were issued; both times in seconds since 1970."""
    refreshing_since: float | None = None
    renewable: bool = False


def sign_in_state(settings: Settings, tenant: str, clock: Clock) -> SignInState:
    """Returns the state of a v3 tenant's sign-in. Sends nothing and refreshes nothing.

    Raises `StorageError` if the store cannot be read.
    """
    store = open_tokens(settings, tenant)
    try:
        stored = store.read()
        grant = usable_grant(settings, tenant, stored)
    except (SignInError, ConfigurationError) as error:
        return SignInState(store.place, str(error))
    is_over = grant.refresh_token is None and grant.left(clock) <= 0
    return SignInState(
        place=store.place,
        problem=no_refresh_token(tenant) if is_over else None,
        scopes=grant.scopes,
        signed_in_at=grant.signed_in_at,
        renewed_at=grant.obtained,
        refreshing_since=stored.refreshing_since,
        renewable=grant.refresh_token is not None,
    )

"""A person's sign-in to v3 in two steps: the request for the browser, and the exchange of its response. Prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from pipelines.errors import ConfigurationError, SignInError
from pipelines.scopes import SCOPES
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.http.budget import Budget
from pipelines.service.sign_in.authorization_code import Challenge, authorization_code
from pipelines.service.sign_in.authorization_server import AuthorizationServer
from pipelines.service.sign_in.loopback_redirect import is_free, redirect_addresses
from pipelines.service.sign_in.oauth_errors import ClientRefusedError, GrantRefusedError, LostResponseError
from pipelines.service.sign_in.stored_sign_in import Grant, Registration, StoredSignIn
from pipelines.service.sign_in.token_refresh import current_client, issued_client_refused
from pipelines.service.sign_in.token_store import LeasedSignIn, TokenStore, open_tokens
from pipelines.settings.credentials import OAuthClient
from pipelines.settings.settings import Settings
from pipelines.settings.tenant import TenantSettings
from pipelines.state.store import State

DEFAULT_REDIRECT_URI = "http://127.0.0.1:8421/callback"
"""The redirect URI that an administrator registers for an issued client, unless `redirect_uri` names another."""


@dataclass(frozen=True)
class AuthorizationRequest:
    """The authorization request for the person's browser, and the data for checking its response."""

    url: str
    redirect_uri: str
    scopes: tuple[str, ...]
    client: OAuthClient
    challenge: Challenge


class Login:
    """One sign-in of a tenant. Create it with `signing_in`."""

    def __init__(self, settings: Settings, tenant: str, server: AuthorizationServer, clock: Clock) -> None:
        self._settings = settings
        self._tenant = tenant
        self._chosen: TenantSettings = settings.tenant(tenant)
        self._server = server
        self._clock = clock
        self._store: TokenStore = open_tokens(settings, tenant)

    @property
    def place(self) -> str:
        """Where the sign-in is stored."""
        return self._store.place

    @property
    def is_issued(self) -> bool:
        """Whether an administrator issued the client."""
        return self._chosen.client_id is not None

    def ask(self, scopes: Sequence[str], *, new_client: bool = False) -> AuthorizationRequest:
        """Register if necessary, and return the request for the browser. A registration is stored before anything else happens."""
        client, redirect_uri = self._client(new_client=new_client)
        challenge = Challenge()
        url = self._server.authorize_url(client, redirect_uri, scopes, challenge)
        return AuthorizationRequest(url, redirect_uri, tuple(scopes), client, challenge)

    def finish(
        self, request: AuthorizationRequest, parameters: Mapping[str, str], *, code_alone: bool = False
    ) -> Grant:
        """Exchange the response for tokens and store them. The old sign-in is replaced only now, and as a whole.

        `code_alone`: a person pasted the code without the rest of the address, so there is no `state` to compare.
        """
        if code_alone:
            parameters = {**parameters, "state": request.challenge.state}  # PKCE ties the code to us
        code = authorization_code(parameters, request.challenge, self._chosen.base_url)
        grant = self._exchanged(request, code)
        self._change(lambda old, _: replace(old, grant=grant, refreshing_since=None, ended=None))
        return grant

    def _exchanged(self, request: AuthorizationRequest, code: str) -> Grant:
        again = f"Run `bookferry login {self._tenant}` again"
        try:
            return self._server.exchange(request.client, code, request.redirect_uri, request.challenge, request.scopes)
        except GrantRefusedError as error:
            raise SignInError(f"{error} A code is valid once, and not for long. {again}.") from None
        except LostResponseError as error:
            raise LostResponseError(f"{error} The code is used up with it. {again}.") from None
        except ClientRefusedError as error:
            if self._chosen.client_id is not None:
                raise issued_client_refused(self._settings, self._tenant, error) from None
            raise SignInError(
                f"{error} The library does not accept the client that Bookferry registered. {again}, with --new-client."
            ) from None

    def _client(self, *, new_client: bool) -> tuple[OAuthClient, str]:
        if (issued := self._settings.oauth_client(self._tenant)) is not None:
            return issued, self._chosen.redirect_uri or DEFAULT_REDIRECT_URI
        stored = self._change(lambda old, leased: self._registered(old, leased, new_client=new_client))
        registration = stored.registration
        address = next(filter(is_free, registration.redirect_uris), None) if registration else None
        if address is None:
            raise ConfigurationError(
                "No port could be opened on 127.0.0.1 for the browser's response. Free one, then run this again."
            )
        return current_client(self._settings, self._tenant, stored), address

    def _registered(self, old: StoredSignIn, leased: LeasedSignIn, *, new_client: bool) -> StoredSignIn:
        """Return the stored sign-in with a usable registration.

        Registrations are limited, so a stored one is reused (service.md#clients).
        """
        auth = self._chosen.client_auth or "none"
        if not new_client and old.registration is not None and _fits(old.registration, auth):
            return old
        leased.write(old)  # on a full disk, a registration that cannot be stored would waste one of the day's few
        try:
            registration = self._server.register(redirect_addresses(), SCOPES, auth)
        except LostResponseError as error:
            raise LostResponseError(
                f"{error} Nobody was signed in. Run `bookferry login {self._tenant}` again."
            ) from None
        return replace(old, registration=registration)

    def _change(self, change: Callable[[StoredSignIn, LeasedSignIn], StoredSignIn]) -> StoredSignIn:
        with self._store.leased(self._clock) as leased:
            try:
                old = leased.read()
            except SignInError:  # damaged: this sign-in replaces it
                old = StoredSignIn(self._chosen.base_url, self._tenant)
            changed = change(old, leased)
            if changed != old:
                leased.write(changed)
        return changed


def _fits(registration: Registration, auth: str) -> bool:
    """Whether an earlier registration can be used again. The server may have granted fewer scopes than it was asked for."""
    enough = registration.auth == auth and set(SCOPES) <= set(registration.asked)
    return enough and any(map(is_free, registration.redirect_uris))


@contextmanager
def signing_in(settings: Settings, tenant: str, *, state: State, clock: Clock | None = None) -> Iterator[Login]:
    """Yields a sign-in on the tenant's own budget. Nothing is sent yet."""
    chosen = settings.tenant(tenant)
    if chosen.api != "v3":
        raise ConfigurationError(
            f"{settings.path}: tenants.{tenant}.api is 'v2', which signs in with user name and password (username_env, password_env) or "
            "a session cookie (session_cookie_env); there is nothing to log in to. Only v3 tenants are signed in with `bookferry login`."
        )
    library, limit = settings.budget_of(tenant)
    clock = clock or SystemClock()
    with ExitStack() as stack:
        budget = Budget(state, library, limit, clock)
        stack.callback(budget.close)
        server = AuthorizationServer(chosen.base_url, budget=budget, clock=clock)
        stack.callback(server.close)
        yield Login(settings, tenant, server, clock)

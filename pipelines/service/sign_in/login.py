"""A person's sign-in to v3, in two steps around the browser: what to ask for, and what to do with the answer. Shows nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.errors import ConfigurationError, SignInError
from pipelines.service.clock import Clock, SystemClock
from pipelines.service.http.budget import Budget
from pipelines.service.sign_in.authorization_response import Challenge, authorization_code
from pipelines.service.sign_in.authorization_server import AuthorizationServer, OAuthClient
from pipelines.service.sign_in.configured_store import open_tokens
from pipelines.service.sign_in.loopback_redirect import free_addresses, is_free
from pipelines.service.sign_in.oauth_errors import ClientRefusedError, GrantRefusedError, LostResponseError
from pipelines.service.sign_in.stored_sign_in import Grant, Registration, StoredSignIn
from pipelines.service.sign_in.token_refresh import current_client, issued_client_refused, refresh_token_end
from pipelines.service.sign_in.token_response import TokenResponse
from pipelines.service.sign_in.token_store import LockedSignIn, TokenStore
from pipelines.settings.settings import Settings
from pipelines.settings.tenant import SCOPES, TenantSettings

DEFAULT_REDIRECT_URI = "http://127.0.0.1:8421/callback"
"""What an administrator registers for an issued client, unless `redirect_uri` says otherwise."""

REDIRECT_ADDRESSES = 3
"""Redirect addresses of a registration: service-api.md wants "an explicit port", and a port may be taken at the next sign-in."""


@dataclass(frozen=True)
class AuthorizationRequest:
    """What the person's browser is sent to, and where it will bring the answer."""

    url: str
    redirect_uri: str
    scopes: tuple[str, ...]
    client: OAuthClient
    challenge: Challenge


class Login:
    """One sign-in of a tenant. Make it with `signing_in`."""

    def __init__(self, settings: Settings, tenant: str, server: AuthorizationServer, clock: Clock) -> None:
        self._settings = settings
        self._tenant = tenant
        self._chosen: TenantSettings = settings.tenant(tenant)
        self._server = server
        self._clock = clock
        self._store: TokenStore = open_tokens(settings, tenant)

    @property
    def place(self) -> str:
        """Where the sign-in is kept."""
        return self._store.place

    @property
    def is_issued(self) -> bool:
        """Whether the client is one that an administrator issued."""
        return self._chosen.client_id is not None

    def ask(self, scopes: Sequence[str], *, new_client: bool = False) -> AuthorizationRequest:
        """Register if need be, and say where to send the person. A registration is kept before anything else happens."""
        client, redirect_uri = self._client(new_client=new_client)
        challenge = Challenge()
        url = self._server.authorize_url(client, redirect_uri, scopes, challenge)
        return AuthorizationRequest(url, redirect_uri, tuple(scopes), client, challenge)

    def finish(self, question: AuthorizationRequest, answer: Mapping[str, str]) -> Grant:
        """Change the answer for tokens and keep them. What was kept before is replaced only now, and as a whole."""
        if "state" not in answer and "error" not in answer and question.client.pkce:
            answer = {**answer, "state": question.challenge.state}  # a code that was pasted alone: PKCE ties it to us
        code = authorization_code(answer, question.challenge, self._chosen.base_url)
        got = self._exchanged(question, code)
        grant = Grant(
            client_id=question.client.client_id,
            access_token=got.access_token,
            refresh_token=got.refresh_token,
            scopes=got.scopes if got.scopes is not None else question.scopes,
            lifetime=got.lifetime,
            obtained=got.obtained,
            signed_in_at=self._clock.now().timestamp(),
            ends_at=refresh_token_end(got),
        )
        self._change(lambda kept, _: replace(kept, grant=grant, refreshing_since=None, ended=None))
        return grant

    def _exchanged(self, question: AuthorizationRequest, code: str) -> TokenResponse:
        again = f"Run `bookferry login {self._tenant}` again"
        try:
            return self._server.exchange(question.client, code, question.redirect_uri, question.challenge)
        except GrantRefusedError as error:
            raise SignInError(f"{error} A code is good once, and not for long. {again}.") from None
        except LostResponseError as error:
            raise LostResponseError(f"{error} The code is used up with it. {again}.") from None
        except ClientRefusedError as error:
            if self._chosen.client_id is not None:
                raise issued_client_refused(self._settings, self._tenant, error) from None
            raise SignInError(
                f"{error} The library does not accept the client that Bookferry registered. {again}, with --new-client."
            ) from None

    def _client(self, *, new_client: bool) -> tuple[OAuthClient, str]:
        issued = self._settings.oauth_client(self._tenant)
        if issued is not None:
            client = OAuthClient(issued.client_id, issued.secret, issued.auth, issued.pkce)
            return client, self._chosen.redirect_uri or DEFAULT_REDIRECT_URI
        stored = self._change(lambda kept, locked: self._registered(kept, locked, new_client=new_client))
        registration = stored.registration
        address = next((each for each in registration.redirect_uris if is_free(each)), None) if registration else None
        if address is None:
            raise ConfigurationError(
                "No port could be opened on 127.0.0.1 for the browser's answer. Free one, then run this again."
            )
        return current_client(self._settings, self._tenant, stored), address

    def _registered(self, kept: StoredSignIn, locked: LockedSignIn, *, new_client: bool) -> StoredSignIn:
        """With a registration that can be used now. service-api.md: registrations are "bounded"; "store the `client_id` and reuse it"."""
        auth = self._chosen.client_auth or "none"
        wanted = self._chosen.scopes or SCOPES
        if not new_client and kept.registration is not None and _fits(kept.registration, auth, wanted):
            return kept
        locked.write(kept)  # a registration that cannot be kept, on a full disk, would be one of the day's few wasted
        try:
            registration = self._server.register(free_addresses(REDIRECT_ADDRESSES), wanted, auth)
        except LostResponseError as error:
            raise LostResponseError(
                f"{error} Nobody was signed in. Run `bookferry login {self._tenant}` again."
            ) from None
        return replace(kept, registration=registration)

    def _change(self, change: Callable[[StoredSignIn, LockedSignIn], StoredSignIn]) -> StoredSignIn:
        with self._store.locked(self._clock) as locked:
            try:
                kept = locked.read()
            except SignInError:  # damaged: this sign-in replaces it
                kept = StoredSignIn(self._chosen.base_url, self._tenant)
            changed = change(kept, locked)
            if changed != kept:
                locked.write(changed)
        return changed


def _fits(registration: Registration, auth: str, wanted: Sequence[str]) -> bool:
    """Whether a client that was registered earlier will do. That it was given fewer scopes than it asked for was the server's decision."""
    enough = registration.auth == auth and set(wanted) <= set(registration.asked)
    return enough and any(is_free(each) for each in registration.redirect_uris)


@contextmanager
def signing_in(settings: Settings, tenant: str, *, state: Path, clock: Clock | None = None) -> Iterator[Login]:
    """A sign-in on the tenant's own budget. Nothing is sent yet."""
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

"""Keeps a sign-in alive: which access token to use, and how the rotating refresh token is exchanged (I3, service.md#tokens).

lease → read again → return it if it is fresh → mark "refreshing" → exchange → store the response → give the lease back. So there is one
refresh at a time over all threads, processes and machines that share a state, and new tokens are durable before they are used.

If the response to a refresh is lost, the state of the old refresh token is unknown. It is tried again at once, or after the lease of a
process that died has ended, so that its request cannot arrive second. This is right
under every policy of a server. If the request was never processed, if old tokens stay valid until the new ones are used, or if there is a
leeway of seconds, the sign-in recovers. If an old token ends the whole grant, or is refused, the new tokens were lost with the response.
Waiting would only save the rest of an access token that is about to expire, and would use up the leeway. Then the message says that a
person must sign in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from functools import partial

from tenacity import retry_if_exception_type, stop_after_attempt

from pipelines.errors import (
    BookferryError,
    ConfigurationError,
    ProtocolError,
    SignInError,
    StorageError,
    TemporaryError,
)
from pipelines.service.clock import Clock
from pipelines.service.http.retries import retrying
from pipelines.service.sign_in.authorization_server import AuthorizationServer
from pipelines.service.sign_in.oauth_errors import (
    ClientRefusedError,
    GrantRefusedError,
    LostResponseError,
    RenewalError,
)
from pipelines.service.sign_in.stored_sign_in import Grant, StoredSignIn, local_time
from pipelines.service.sign_in.token_store import (
    LEASE_SECONDS,
    WRITE_TRIES,
    LeasedSignIn,
    LeaseTakenError,
    TokenStore,
    open_tokens,
)
from pipelines.service.threads import in_thread
from pipelines.settings.credentials import OAuthClient
from pipelines.settings.settings import Settings

MARGIN_SECONDS = 300.0
MARGIN_SHARE = 0.2
"""A token is refreshed `MARGIN_SECONDS` before it expires, or this share of its lifetime before if that is less: tokens of two seconds
work, too."""

TURN_SECONDS = 5.0
"""Seconds to wait for another refresh while the old access token is still valid."""

CACHE_SECONDS = 1.0
"""Seconds for which a read sign-in is used without reading the store again: another process may refresh it."""

PAUSE_SECONDS = 15.0
"""Seconds until the next try to refresh a token that is still valid, after a try that failed."""

MOST_TRIES = 7
"""Tries of a refresh whose response was lost, if the old token is of no use any more: about a minute, as for any request."""


MAX_REJECTED = 3
"""Tokens in a row that may be rejected before any was accepted: one of several requests may end a token that the others were sent with."""


def refresh_margin(grant: Grant) -> float:
    """Returns the seconds before its end at which an access token is refreshed."""
    return min(MARGIN_SECONDS, MARGIN_SHARE * grant.lifetime)


class TokenRefresher:
    """The valid access token of one tenant. Safe to use from several threads; close it when done."""

    def __init__(self, settings: Settings, tenant: str, *, server: AuthorizationServer, clock: Clock) -> None:
        self.tenant = tenant
        self._settings = settings
        self._store: TokenStore = open_tokens(settings, tenant)
        self._server = server
        self._clock = clock
        self._turn = threading.Lock()
        self._closed = False
        self._running: list[Future[Grant]] = []
        self._rejected = 0
        self._seen: Grant | None = None
        self._seen_at = self._again_at = float("-inf")

    def access_token(self) -> str:
        """Return an access token that stays valid for a while, refreshed if necessary. Raises `SignInError` if a person must sign in."""
        grant = self._current()
        seconds_left = grant.left(self._clock)
        if seconds_left > refresh_margin(grant):
            return grant.access_token
        if seconds_left > 0 and (grant.refresh_token is None or self._clock.monotonic() < self._again_at):
            return grant.access_token
        try:
            return self._renewed(
                self._is_old, TURN_SECONDS if seconds_left > 0 else LEASE_SECONDS, last=seconds_left <= 0
            ).access_token
        except TemporaryError:
            if grant.left(self._clock) <= 0:
                raise
        self._again_at = self._clock.monotonic() + min(PAUSE_SECONDS, seconds_left / 4)
        return grant.access_token

    def replacement_for(self, rejected: str) -> str:
        """Return the token to use after `rejected` got a 401.

        It is the stored one if it differs, else a new one; after `MAX_REJECTED` rejected tokens, the same one.
        """
        grant = self._look()
        alive = grant.left(self._clock) > 0
        if alive and (grant.access_token != rejected or self._rejected >= MAX_REJECTED):
            return grant.access_token

        def is_needed(stored_grant: Grant) -> bool:
            self._rejected += stored_grant.access_token == rejected
            return stored_grant.access_token == rejected or self._is_old(stored_grant)

        return self._renewed(is_needed, last=True).access_token

    def accepted(self) -> None:
        """Note that a request got another response than 401."""
        self._rejected = 0

    def keep_alive(self) -> Grant:
        """Refresh now, so that an unused sign-in does not lapse; a refresh by somebody else a moment ago is enough."""
        before = self._look()
        if before.refresh_token is None:
            raise SignInError(no_refresh_token(self.tenant))
        return self._renewed(lambda stored_grant: stored_grant.refreshes == before.refreshes, last=True)

    def close(self) -> None:
        """Wait for a running refresh: its response comes only once, and must be stored."""
        with self._turn:
            self._closed = True
        wait(self._running)  # that of a caller who was stopped
        self._server.close()

    def _is_old(self, grant: Grant) -> bool:
        return grant.left(self._clock) <= refresh_margin(grant)

    def _current(self) -> Grant:
        seen, at = self._seen, self._seen_at
        if seen is not None and self._clock.monotonic() - at < CACHE_SECONDS and not self._is_old(seen):
            return seen
        try:
            return self._look()
        except StorageError:
            if seen is None or self._is_old(seen):
                raise
            return seen  # the database is away for a moment

    def _look(self) -> Grant:
        return self._saw(self._store.read())

    def _saw(self, stored: StoredSignIn) -> Grant:
        grant = usable_grant(self._settings, self.tenant, stored)
        self._seen_at, self._seen = self._clock.monotonic(), grant
        return grant

    def _renewed(self, is_needed: Callable[[Grant], bool], seconds: float = LEASE_SECONDS, *, last: bool) -> Grant:
        if not self._turn.acquire(timeout=seconds):
            raise LeaseTakenError(f"Renewing the sign-in of '{self.tenant}' takes more than {seconds:.0f} s.")
        try:
            # No signal interrupts this thread, and the end of the program waits for it
            renewal = in_thread(partial(self._renew, is_needed, seconds, last=last), "renewal", daemon=False)
            self._running = [running for running in (*self._running, renewal) if not running.done()]
            return renewal.result()
        except (TemporaryError, ProtocolError) as error:
            raise RenewalError(str(error)) from None
        finally:
            self._turn.release()

    def _renew(self, is_needed: Callable[[Grant], bool], seconds: float, *, last: bool) -> Grant:
        if self._closed:
            raise TemporaryError("The run was stopped before its sign-in was renewed. Run the same command again.")
        with self._store.leased(self._clock, seconds) as leased:
            stored = leased.read()
            grant = self._saw(stored)
            if not is_needed(grant):
                return grant
            return self._saw(self._exchanged(leased, stored, grant, last=last))

    def _exchanged(self, leased: LeasedSignIn, stored: StoredSignIn, grant: Grant, *, last: bool) -> StoredSignIn:
        """Return the sign-in with new tokens, stored. `last`: the old tokens are of no use, so more tries are worth it.

        The mark "refreshing" is stored just before a request leaves. It stays where a response is lost, perhaps by a process that died.
        """
        if grant.refresh_token is None:
            raise SignInError(no_refresh_token(self.tenant))
        client, lost_at = current_client(self._settings, self.tenant, stored), stored.refreshing_since
        marked = replace(stored, refreshing_since=lost_at or self._clock.now().timestamp())

        def leaving() -> None:
            leased.check()
            leased.write(marked)

        def ask() -> Grant:
            nonlocal lost_at
            try:
                return self._server.refresh(client, grant, leaving)
            except LostResponseError:
                lost_at = marked.refreshing_since
                raise

        lost, enough = retry_if_exception_type(LostResponseError), stop_after_attempt(MOST_TRIES if last else 2)
        try:
            new = retrying(self._clock.sleep, retry=lost, stop=enough)(ask)
        except LostResponseError as error:
            raise LostResponseError(
                f"{error} The sign-in may still be good: run the same command again. If it is not, that command will say so."
            ) from None
        except BookferryError as error:
            after, explained = self._refused(error, replace(stored, refreshing_since=lost_at))
            with suppress(StorageError):  # the next process finds out for itself
                leased.check()
                leased.write(after)
            raise explained from None
        renewed = replace(stored, grant=replace(new, refreshes=grant.refreshes + 1), refreshing_since=None)
        self._keep(leased, renewed)
        return renewed

    def _keep(self, leased: LeasedSignIn, stored: StoredSignIn) -> None:
        """Store the response. It comes only once, so a disk that is full for a moment is waited for."""

        def sleep(seconds: float) -> None:
            with suppress(TemporaryError):  # the run is being stopped: no wait
                self._clock.sleep(seconds)

        full, enough = retry_if_exception_type(StorageError), stop_after_attempt(WRITE_TRIES)
        retrying(sleep, retry=full, stop=enough, asked=lambda _: 1.0)(leased.write, stored)

    def _refused(self, error: BookferryError, stored: StoredSignIn) -> tuple[StoredSignIn, BookferryError]:
        """Return what is stored after a request without effect, and the error with its remedy."""
        ended = ""
        if isinstance(error, GrantRefusedError):
            ended = _grant_ended(self.tenant, error, stored.refreshing_since)
        elif isinstance(error, ClientRefusedError):
            if self._settings.tenant(self.tenant).client_id is not None:
                return stored, issued_client_refused(self._settings, self.tenant, error)
            run = f"{error} Run `bookferry login {self.tenant}`."
            if not error.forgotten:
                return stored, SignInError(run)
            ended, stored = (
                f"The library no longer knows the client that Bookferry registered. {run}",
                replace(stored, registration=None),
            )
        return (replace(stored, ended=ended, refreshing_since=None), SignInError(ended)) if ended else (stored, error)


def usable_grant(settings: Settings, tenant: str, stored: StoredSignIn) -> Grant:
    """Returns the grant in use; raises `SignInError` with the remedy if there is none, or if it belongs to another client."""
    grant, run = stored.grant, f"Run `bookferry login {tenant}`."
    if stored.ended is not None:
        raise SignInError(stored.ended)
    if grant is None:
        raise SignInError(f"Nobody has signed in to '{tenant}' ({stored.base_url}) yet. {run}")
    client = current_client(settings, tenant, stored)
    if grant.client_id != client.client_id:
        raise SignInError(
            f"The sign-in of '{tenant}' belongs to another client ({grant.client_id}) than the one in use now ({client.client_id}). {run}"
        )
    return grant


def current_client(settings: Settings, tenant: str, stored: StoredSignIn) -> OAuthClient:
    """Returns our OAuth client: the one that an administrator issued, else the registered one."""
    registered = stored.registration
    if (issued := settings.oauth_client(tenant)) is not None:
        return issued
    if registered is None:
        raise SignInError(f"Bookferry is not registered with '{tenant}'. Run `bookferry login {tenant}`.")
    return OAuthClient(registered.client_id, registered.client_secret, registered.auth)


def issued_client_refused(settings: Settings, tenant: str, error: ClientRefusedError) -> ConfigurationError:
    """Returns the error for a refused client that an administrator issued, with the remedy."""
    return ConfigurationError(
        f"{error} The library does not accept the client {settings.tenant(tenant).client_id} of tenants.{tenant} in {settings.path}, or "
        f"not with its secret. Was the secret rotated, or the client revoked? Correct client_id, the variable that "
        f"client_secret_env names, or client_auth; then, if need be, run `bookferry login {tenant}`."
    )


def _grant_ended(tenant: str, error: GrantRefusedError, lost_at: float | None) -> str:
    run = f"Run `bookferry login {tenant}`."
    if lost_at is not None:
        return (
            f"The sign-in of '{tenant}' is over: the answer to a refresh on {local_time(lost_at)} was lost (the connection broke, or the "
            f"process was killed), new tokens with it, and the library does not take the old one again. {error} {run}"
        )
    return (
        f"The sign-in of '{tenant}' is over: the library takes its refresh token no more. {error} Somebody may have revoked it, it may "
        f"have lapsed, or a copy of it was used elsewhere. {run}"
    )


def no_refresh_token(tenant: str) -> str:
    """Returns the message for an expired sign-in without a refresh token."""
    return f"The sign-in of '{tenant}' has ended, and the library gave no refresh token with it. Run `bookferry login {tenant}`."

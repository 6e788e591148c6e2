"""Who calls and what that caller may do: the one place where scopes and roles are asked for.

A version's sign-in makes the ``Caller``; the application asks ``require`` for the endpoint's scope, and a rule asks again
when a payload needs more than the endpoint does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sandbox.errors import access_denied, insufficient_scope
from sandbox.state.accounts import User

SCOPES = {
    "library:read": "read publications, hard copies, collections, authorities, hard copy locations",
    "library:write": "create and change library data; delete publications, hard copies, collections; cover presign",
    "assets:read": "read assets; see url, thumb_url and preview_url",
    "assets:write": "create, change and delete assets; asset presign; file content sent with a publication",
    "users:read": "read users",
    "users:write": "create, change and delete users; avatar presign",
    "tasks:read": "read tasks",
    "tasks:write": "create, edit and complete tasks",
}

# Assumption: what the roles mean. Whoever is signed in may read; a role that is not known adds nothing.
_EVERYBODY = frozenset({"library:read", "assets:read", "tasks:read"})
_ROLES = {
    "librarian": frozenset(SCOPES) - {"users:write"},
    "admin": frozenset(SCOPES),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """A person, and the scopes that the way of signing in carries: ``all`` where a version knows no scopes.

    Whatever the way, a person may do what the roles allow and no more.
    """

    person: User
    scopes: frozenset[str] | Literal["all"] = "all"

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the person."""
        return self.person.roles

    def may(self, scope: str) -> bool:
        """Whether this scope is granted, and the person's roles allow it."""
        return self._carries(scope) and self._is_allowed(scope)

    def require(self, scope: str) -> None:
        """Raise a 403 where the token lacks the scope, which it names, or the person's roles do not allow it."""
        if not self._carries(scope):
            raise insufficient_scope(scope)
        if not self._is_allowed(scope):
            raise access_denied()

    def _carries(self, scope: str) -> bool:
        return self.scopes == "all" or scope in self.scopes

    def _is_allowed(self, scope: str) -> bool:
        return scope in _EVERYBODY.union(*(_ROLES.get(role, ()) for role in self.roles))

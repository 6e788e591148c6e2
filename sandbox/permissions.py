"""The caller of a request, and the only place that checks scopes and roles.

The sign-in of a version makes the ``Caller``. The application requires the endpoint's scope; an endpoint requires another
scope when the payload needs one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sandbox.errors import access_denied, insufficient_scope
from sandbox.state.records import Document

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

# Assumption: what the roles allow (service.md#v2). An unknown role adds nothing.
_EVERYBODY = frozenset({"library:read", "assets:read", "tasks:read"})
_ROLES = {
    "librarian": frozenset(SCOPES) - {"users:write"},
    "admin": frozenset(SCOPES),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """A person and the scopes of the sign-in: ``all`` in a version without scopes.

    The roles of the person limit both.
    """

    person: Document
    scopes: frozenset[str] | Literal["all"] = "all"

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the person."""
        return tuple(self.person["roles"])

    def may(self, scope: str) -> bool:
        """Returns whether the token has the scope and the roles allow it."""
        return self._carries(scope) and self._is_allowed(scope)

    def require(self, scope: str) -> None:
        """Raises 403: for a scope that the token lacks, which the error names, or for one that the roles do not allow."""
        if not self._carries(scope):
            raise insufficient_scope(scope)
        if not self._is_allowed(scope):
            raise access_denied()

    def _carries(self, scope: str) -> bool:
        return self.scopes == "all" or scope in self.scopes

    def _is_allowed(self, scope: str) -> bool:
        return scope in _EVERYBODY.union(*(_ROLES.get(role, ()) for role in self.roles))

"""The one error tree, sorted by what the caller should do next.

    BookferryError                      exit 1   something failed; nothing good was replaced
    ├── ConfigurationError              exit 2   mend bookferry.toml, the environment or the command
    ├── SignInError                     exit 4   a person must sign in
    │   └── AccessDeniedError           exit 4   signed in, but this account may not do that
    │       └── InsufficientScopeError           the token lacks a scope that the person can release at the next sign-in
    ├── TemporaryError                  exit 1   the service or the network may recover; run it again
    ├── UnclearError                    exit 1   a write may have had its effect; look it up before it is repeated (I8)
    └── StopError                       exit 1   going on would be wrong; a person must look
        ├── ProtocolError                        the service answered what its document does not allow
        │   ├── ForeignOriginError               credentials would have left the tenant's own origin (I2)
        │   └── PagingLoopError                  the listing would never end (I13)
        ├── RefusedError                         the service refused this very request (4xx)
        ├── TenantBusyError                      another run reads this tenant
        ├── StorageError                         the data folder is full, read-only or damaged
        └── SafetyLimitError            exit 5   a safety limit stopped it

A message says what was tried, what came back and what to do, and never holds a secret: whoever builds one from outside text passes
that text through `pipelines.service.redaction` first.
"""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """What a command tells the shell; an unknown status is a failure."""

    COMPLETE = 0
    FAILED = 1
    USAGE = 2
    PARTIAL = 3
    SIGN_IN = 4
    SAFETY_LIMIT = 5
    DIFFERENCES = 6


class BookferryError(Exception):
    """Something failed and nothing good was replaced."""

    exit_status = ExitStatus.FAILED


class ConfigurationError(BookferryError):
    """The configuration, the environment or the command has to be mended by a person."""

    exit_status = ExitStatus.USAGE


class SignInError(BookferryError):
    """The service does not accept who we say we are; a person must sign in or correct the credentials."""

    exit_status = ExitStatus.SIGN_IN


class AccessDeniedError(SignInError):
    """Signed in, but this account may not do that."""


class InsufficientScopeError(AccessDeniedError):
    """The token lacks the scopes `scopes`; empty where the service does not name them."""

    def __init__(self, message: str, *, scopes: tuple[str, ...]) -> None:
        super().__init__(message)
        self.scopes = scopes


class TemporaryError(BookferryError):
    """The service or the network failed in a way that may pass; the same command may succeed later."""


class UnclearError(BookferryError):
    """A write was sent, and what came back does not tell whether it had its effect: look it up before it is repeated (I8, trap A5).

    No kind of `TemporaryError`: whoever just runs it again may do it twice.
    """


class StopError(BookferryError):
    """Going on would be wrong; a person must look."""


class ProtocolError(StopError):
    """The service answered something its document does not allow."""


class ForeignOriginError(ProtocolError):
    """A request would have carried credentials away from the tenant's own origin (I2)."""


class PagingLoopError(ProtocolError):
    """A listing repeats itself or never ends (I13)."""


class RefusedError(StopError):
    """The service refused this very request; `status` is its HTTP status.

    `code` and `said` are what its body calls the error, and says of it, fit for a message; empty where it does not.
    """

    def __init__(self, message: str, *, status: int, code: str = "", said: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.said = said


class TenantBusyError(StopError):
    """Another run reads this tenant; one tenant is never read by two runs at once."""


class StorageError(StopError):
    """The data folder cannot be written or read: full, read-only, damaged or made by a newer version."""


class SafetyLimitError(StopError):
    """A safety limit stopped the run before harm was done."""

    exit_status = ExitStatus.SAFETY_LIMIT

"""The error tree, sorted by what the caller does next.

    BookferryError                      exit 1   something failed; earlier results are intact
    ├── ConfigurationError              exit 2   a person corrects bookferry.toml, the environment or the command
    │   └── VersionEndedError                    version 2 of the API has ended: the tenant needs version 3
    ├── SignInError                     exit 4   a person must sign in
    │   └── AccessDeniedError           exit 4   signed in, but this account may not do that
    │       ├── SignInPageError                  the service leads to a page for people to sign in
    │       └── InsufficientScopeError           the token lacks a scope that the person can grant at the next sign-in
    ├── TemporaryError                  exit 1   the service or the network may recover: run the command again
    ├── UnclearError                    exit 1   a write may have had its effect: look it up before you repeat it (I8)
    │   └── UnnamedRecordError                   it had its effect, and the answer does not name the record: never repeat it
    ├── RecordError                     exit 1   this record only: a run reports it and goes on with the next record
    │   └── RefusedError                         the service refused this request (4xx)
    └── StopError                       exit 1   going on would be wrong: a person must look
        ├── ProtocolError                        the service broke its own API
        │   ├── ForeignOriginError               credentials would have left the tenant's own origin (I2)
        │   └── PagingLoopError                  the listing would never end (I13)
        ├── TenantBusyError                      another run reads this tenant
        ├── StorageError                         the data folder is full, read-only or damaged
        └── SafetyLimitError            exit 5   a safety limit stopped the run

A message says what was tried, what came back and what to do. It never contains a secret: code that quotes outside text passes the text
through `pipelines.service.redaction` first.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from http import HTTPStatus


class ExitStatus(IntEnum):
    """Exit status of a command; callers treat an unknown status as a failure."""

    COMPLETE = 0
    FAILED = 1
    USAGE = 2
    PARTIAL = 3
    SIGN_IN = 4
    SAFETY_LIMIT = 5
    DIFFERENCES = 6
    INTERRUPTED = 130
    """Stopped by Ctrl-C (SIGINT)."""
    CLOSED_PIPE = 141
    """The reader of the output, such as `head`, has closed it."""
    TERMINATED = 143
    """Stopped by a service manager (SIGTERM)."""


_BY_HARM = (
    ExitStatus.COMPLETE,
    ExitStatus.PARTIAL,
    ExitStatus.DIFFERENCES,
    ExitStatus.SAFETY_LIMIT,
    ExitStatus.FAILED,
    ExitStatus.SIGN_IN,
    ExitStatus.USAGE,
)


def worst(statuses: Iterable[ExitStatus]) -> ExitStatus:
    """Of the statuses of several steps or checks that with which a person begins: the configuration, then the sign-in, then the rest."""
    return max(statuses, key=_BY_HARM.index, default=ExitStatus.COMPLETE)


class BookferryError(Exception):
    """Something failed; earlier results are intact."""

    exit_status = ExitStatus.FAILED


class ConfigurationError(BookferryError):
    """A person must correct the configuration, the environment or the command."""

    exit_status = ExitStatus.USAGE


class VersionEndedError(ConfigurationError):
    """The version of the API that the configuration names has been shut down."""


class SignInError(BookferryError):
    """The service does not accept our identity; a person must sign in or correct the credentials."""

    exit_status = ExitStatus.SIGN_IN


class AccessDeniedError(SignInError):
    """Signed in, but this account may not do that."""


class SignInPageError(AccessDeniedError):
    """The service redirects to a page for people to sign in: perhaps for this address only, perhaps for all."""


class InsufficientScopeError(AccessDeniedError):
    """The token lacks the scopes `scopes`; empty if the service does not name them."""

    def __init__(self, message: str, *, scopes: tuple[str, ...]) -> None:
        super().__init__(message)
        self.scopes = scopes


class TemporaryError(BookferryError):
    """The service or the network failed in a way that may pass; the same command may succeed later."""


class UnclearError(BookferryError):
    """A write was sent, and the response does not say whether it had its effect: look it up before you repeat it (I8).

    This is no subclass of `TemporaryError`, because running the same command again could write twice.
    """


class UnnamedRecordError(UnclearError):
    """A POST was answered with success (`status`), and the answer does not name what it made: look it up, and never send it again (I8)."""

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class RecordError(BookferryError):
    """One record cannot be processed. A run reports it and goes on with the next record."""


class RefusedError(RecordError):
    """The service refused this request; `status` is the HTTP status.

    `code` and `detail` are the error code and the error message of the response, safe for a message; empty if the response has none.
    A run that needs the response to go on, such as a listing, ends with this error.
    """

    def __init__(self, message: str, *, status: int, code: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.detail = detail

    @property
    def is_about_content(self) -> bool:
        """Whether the service refused the content of the request."""
        return self.status in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY}


class StopError(BookferryError):
    """Going on would be wrong; a person must look."""


class ProtocolError(StopError):
    """The service sent a response that its API does not allow."""


class ForeignOriginError(ProtocolError):
    """A request would have carried credentials away from the tenant's own origin (I2)."""


class PageAddressError(ProtocolError):
    """A list named the address of a further page, and it cannot be understood: that is no matter of a record."""


class PagingLoopError(ProtocolError):
    """A listing repeats itself or never ends (I13)."""


class TenantBusyError(StopError):
    """Another run reads this tenant; only one run may read a tenant at a time."""


class StorageError(StopError):
    """The data folder cannot be written or read: it is full, read-only, damaged or from a newer version."""


class SafetyLimitError(StopError):
    """A safety limit stopped the run before harm was done."""

    exit_status = ExitStatus.SAFETY_LIMIT

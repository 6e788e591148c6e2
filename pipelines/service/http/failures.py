"""What a failed request means, and how messages name it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from http import HTTPStatus

import httpx

from pipelines.service.redaction import outside_text


class GarbledBodyError(httpx.TransportError):
    """The answer is not what it says it is: cut or garbled on the way. It may be whole the next time."""


FOR_GOOD = frozenset({HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED})
"""Statuses of the 500s that no waiting mends."""


PASSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
"""Statuses of the 400s that waiting may mend."""


def is_passing(status: int) -> bool:
    """Whether waiting may mend what a status says."""
    return status in PASSING or (status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in FOR_GOOD)


_NEVER_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.LocalProtocolError,
    httpx.UnsupportedProtocol,
)


def was_never_sent(error: BaseException | None) -> bool:
    """Whether a transport error came before anything could leave: there was no connection, or our own rules forbade it."""
    return isinstance(error, _NEVER_SENT)


def is_for_good(error: BaseException) -> bool:
    """Whether a transport error will be the same next time: our own mistake, or a certificate that is not trusted."""
    return isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol) or is_untrusted(error)


def is_untrusted(error: BaseException) -> bool:
    """Whether the certificate of whoever answered is not one that this machine trusts."""
    return any(isinstance(one, ssl.SSLCertVerificationError) for one in _chain(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def what_went_wrong(error: BaseException | None) -> str:
    """A transport's error in plain words."""
    return f"{_PLAIN_NAMES.get(type(error), type(error).__name__)}: {outside_text(error)}".removesuffix(": ")


def status_line(response: httpx.Response) -> str:
    """Status and reason for a message: `503 Service Unavailable`."""
    reason = httpx.codes.get_reason_phrase(response.status_code) or outside_text(response.reason_phrase, 60)
    return f"{response.status_code} {reason}".strip()


_PLAIN_NAMES: dict[type, str] = {
    httpx.ConnectError: "cannot connect",
    httpx.ConnectTimeout: "connecting took too long",
    httpx.ProxyError: "the proxy refused",
    httpx.ReadError: "the connection broke while reading",
    httpx.ReadTimeout: "the answer took too long",
    httpx.RemoteProtocolError: "the connection broke",
    httpx.WriteError: "the connection broke while sending",
    httpx.WriteTimeout: "sending took too long",
    GarbledBodyError: "garbled answer",
}

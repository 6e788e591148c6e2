"""Sorts failed requests into temporary and permanent ones, and names them in messages."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from http import HTTPStatus

import httpx
import msgspec

from pipelines.service.redaction import outside_text


class GarbledBodyError(httpx.TransportError):
    """The body was cut short or garbled on the way. A new try may bring the whole body."""


PERMANENT = frozenset({HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED})
"""Statuses from 500 on that waiting does not change."""


TEMPORARY = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
"""Statuses below 500 that waiting may change."""


def is_temporary(status: int) -> bool:
    """Whether the same request may succeed later, by its status."""
    return status in TEMPORARY or (status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in PERMANENT)


_NEVER_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.LocalProtocolError,
    httpx.UnsupportedProtocol,
)


def was_never_sent(error: BaseException | None) -> bool:
    """Whether a transport error came before anything left this machine: no connection was opened, or a rule of ours forbade the request."""
    return isinstance(error, _NEVER_SENT)


def is_permanent(error: BaseException) -> bool:
    """Whether a transport error would come again: our own mistake, or a certificate that this machine does not trust."""
    return isinstance(error, httpx.LocalProtocolError | httpx.UnsupportedProtocol) or is_untrusted(error)


def is_untrusted(error: BaseException) -> bool:
    """Whether this machine does not trust the certificate of the server."""
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def transport_error_text(error: BaseException | None) -> str:
    """Returns the text of a transport error for a message."""
    return f"{_PLAIN_NAMES.get(type(error), type(error).__name__)}: {outside_text(error)}".removesuffix(": ")


def describe_request(request: httpx.Request) -> str:
    """Method and address of a request, for a message; no secret."""
    return f"{request.method} {outside_text(request.url)}"


def status_line(response: httpx.Response) -> str:
    """Returns status and reason for a message: `503 Service Unavailable`."""
    reason = httpx.codes.get_reason_phrase(response.status_code) or outside_text(response.reason_phrase, 60)
    return f"{response.status_code} {reason}".strip()


class _ErrorBody(msgspec.Struct):
    """The error body of the API (service.md#errors), or that of RFC 6749, 5.2."""

    error: object = None
    error_description: object = None


def error_and_description(response: httpx.Response) -> tuple[str, str]:
    """Returns code and message of an error body as they came; empty if there are none."""
    try:
        body = _ERROR_BODY_DECODER.decode(response.content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return "", ""
    if isinstance(body.error, dict):
        return str(body.error.get("code") or ""), str(body.error.get("message") or "")
    return str(body.error or ""), str(body.error_description or "")


_ERROR_BODY_DECODER = msgspec.json.Decoder(_ErrorBody)

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

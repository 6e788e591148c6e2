"""Turns the errors of a bucket's service into ours: what was tried, what came back, what to do; without secrets (I10).

The kind of an error follows from obstore's type, the status of the answer and, where these do not tell, the code of the service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from obstore.exceptions import BaseError, GenericError, PermissionDeniedError, UnauthenticatedError

from pipelines.errors import BookferryError, ConfigurationError, StorageError, TemporaryError

_VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION and AWS_ENDPOINT_URL",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
"""Scheme → the environment variables with the credentials."""

_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
"""Codes with status 404, as for a missing object."""
_FORBIDDEN = ("AccessDenied", "ExpiredToken", "InvalidToken", "TokenRefreshRequired")
"""Codes of S3 with status 400, or without one in the answer to a deletion."""
_SLOW = "RequestTimeout"
"""The code of S3 with status 400 after which another try may succeed."""
_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS)
"""Statuses with which a service asks for another try; likewise each one from 500 on, except 501."""
_NOT_SUPPORTED = (HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)


class UnreachableError(TemporaryError):
    """No answer came."""


@contextmanager
def bucket_errors(trying: str, address: str) -> Iterator[None]:
    """Converts errors of obstore. A missing object stays a `FileNotFoundError`; a missing bucket does not."""
    try:
        yield
    except (BaseError, FileNotFoundError) as error:
        if isinstance(error, FileNotFoundError) and _code(str(error)) not in _NO_BUCKET:
            raise
        # the rest of obstore's message may show how a request was signed
        raise _error_from(error, trying, address) from None


def opening_error(error: BaseError, address: str) -> ConfigurationError:
    """A bucket cannot even be opened, before any request: a variable is missing or has no usable value."""
    return ConfigurationError(
        f"Cannot open {address}: {_summary(str(error))}. Set {_variables(address)} in the environment of this command."
    )


def _error_from(error: Exception, trying: str, address: str) -> BookferryError:
    text = str(error)
    status, code, answer = _status(text), _code(text), _summary(text)
    tried = f"Cannot {trying} {address}"
    if code in _NO_BUCKET or status == HTTPStatus.NOT_FOUND:
        return ConfigurationError(
            f"{tried}: there is no such bucket ({answer}). Make it, or correct `data` in bookferry.toml or the region and endpoint in "
            "the environment."
        )
    refused = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or status in refused or code in _FORBIDDEN:
        return ConfigurationError(
            f"{tried}: this is not permitted ({answer}). Correct {_variables(address)} in the environment of this command, or let the "
            "owner of the bucket permit listing, reading, writing and deleting of objects below that address."
        )
    if isinstance(error, GenericError) and status is None and code is None:
        return UnreachableError(
            f"{tried}: no answer came ({answer}). Check the endpoint, the region and the credentials in the environment "
            f"({_variables(address)}), and the network, then run the command again. For a certificate authority of your own, name its "
            "file in SSL_CERT_FILE. What was published before is untouched."
        )
    if code == _SLOW or (
        _is_passing(status) if status else code
    ):  # a code alone: the failure came after the first status
        return TemporaryError(
            f"{tried}: the service fails ({answer}). Run the command again later. What was published before is untouched."
        )
    remedy = (
        "If the store cannot delete many objects with one request, set AWS_DISABLE_BULK_DELETE=true in the environment"
        if status in _NOT_SUPPORTED
        else "Solve this"
    )
    return StorageError(
        f"{tried}: {answer}. {remedy} and run the command again. What was published before is untouched."
    )


def _is_passing(status: int) -> bool:
    server_fails = status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in _NOT_SUPPORTED
    return server_fails or status in _PASSING


def _variables(address: str) -> str:
    return _VARIABLES.get(address.partition(":")[0], "its variables in the environment")


def _code(text: str) -> str | None:
    """The code of the service in its answer, or in obstore's words about the one to a deletion."""
    code = re.search(r"<Code>([A-Za-z0-9.]{1,60})</Code>|\bcode: ([A-Za-z]{1,60})\b", text)
    return (code[1] or code[2]) if code else None


def _status(text: str) -> int | None:
    """The status of the answer, which obstore has in its text only."""
    status = re.search(r"status code: (\d{3})", text)
    return int(status[1]) if status else None


def _summary(text: str) -> str:
    """The service's code and first sentence. Of other texts, the end of the first line, which has the cause."""
    code, message = _code(text), re.search(r"<Message>([^<.]{1,200})", text)
    if code:
        return f"{code}: {message[1].strip()}" if message else code
    first = text.partition("\n")[0]
    status = re.search(r"status code: (\d{3}[A-Za-z ]*)", first)
    return status[1].strip() if status else first.rpartition(" - ")[2].rpartition("error: ")[2].strip()[:200]

"""Turns the errors of a bucket's service into ours: what was tried, what came back, what to do; without secrets (I10)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

from pipelines.errors import BookferryError, ConfigurationError, StorageError, TemporaryError

_VARIABLES = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION and AWS_ENDPOINT_URL",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
"""Scheme → the environment variables with the credentials."""

_NO_BUCKET = ("NoSuchBucket", "bucket does not exist", "ContainerNotFound")
_BAD_CREDENTIALS = (
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "AuthenticationFailed",
    "TokenRefreshRequired",
)
_NOT_PERMITTED = ("AccessDenied", "AllAccessDisabled", "AuthorizationPermissionMismatch", "AuthorizationFailure")
_NOT_SUPPORTED = ("NotImplemented", "MethodNotAllowed")
_PASSING = (
    "SlowDown",
    "InternalError",
    "ServiceUnavailable",
    "RequestTimeout",
    "OperationAborted",
    "Throttling",
    "ThrottlingException",
    "TooManyRequests",
    "RequestLimitExceeded",
    "ServerBusy",
    "OperationTimedOut",
)
"""Codes with which a service asks for another try; likewise each status from 500 on, except 501."""
_PASSING_STATUSES = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_BULK_DELETE_REMEDY = (
    "If the store cannot delete many objects with one request, set AWS_DISABLE_BULK_DELETE=true in the environment"
)
_NO_ANSWER = (
    "error sending request",
    "operation timed out",
    "error decoding response body",
    "connection closed",
)
"""The words of obstore about an answer that did not come, or not to its end: it has no type for that."""
_NO_CREDENTIALS = (
    "169.254.169.254",
    "metadata.google.internal",
    "Account must be specified",
    "MissingAccount",
    "CredentialProvider",
)


class UnreachableError(TemporaryError):
    """No answer came."""


@contextmanager
def bucket_errors(trying: str, address: str) -> Iterator[None]:
    """Converts errors of obstore. A missing object stays a `FileNotFoundError`; a missing bucket does not."""
    try:
        yield
    except (BaseError, FileNotFoundError, PermissionError) as error:
        text = str(error)
        if isinstance(error, FileNotFoundError) and not _is_any(text, _NO_BUCKET):
            raise
        raise _error_from(
            error, text, trying, address
        ) from None  # the rest of obstore's message may show how a request was signed


def _error_from(error: Exception, text: str, trying: str, address: str) -> BookferryError:
    tried = f"Cannot {trying} {address}"
    variables = _VARIABLES.get(address.partition(":")[0], "its variables in the environment")
    answer = _summary(text)
    if _is_any(text, _NO_BUCKET):
        return ConfigurationError(
            f"{tried}: there is no such bucket ({answer}). Make it, or correct `data` in bookferry.toml or the region and endpoint in "
            "the environment."
        )
    if _is_any(text, _NO_CREDENTIALS):
        return ConfigurationError(
            f"{tried}: no credentials ({answer}). Set {variables} in the environment of this command, or give this machine a role."
        )
    if _is_any(text, _BAD_CREDENTIALS) or isinstance(error, UnauthenticatedError):
        return ConfigurationError(
            f"{tried}: the service does not accept the credentials ({answer}). Correct {variables} in the environment of this "
            "command."
        )
    if _is_any(text, _NOT_PERMITTED) or isinstance(error, PermissionDeniedError | PermissionError):
        return ConfigurationError(
            f"{tried}: this is not permitted ({answer}). The owner of the bucket must permit listing, reading, writing and deleting of "
            "objects below that address."
        )
    status = _status(text)
    unknown = _is_any(text, _NOT_SUPPORTED) or status == HTTPStatus.NOT_IMPLEMENTED
    is_passing = _is_any(text, _PASSING) or status in _PASSING_STATUSES or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    is_answered = status > 0 or _code(text) is not None
    if (is_passing if is_answered else _is_any(text, _NO_ANSWER)) and not unknown:
        return (TemporaryError if is_answered else UnreachableError)(
            f"{tried}: the service cannot be reached or fails ({answer}). Check the endpoint and region in the environment, and the "
            "network, then run the command again. What was published before is untouched."
        )
    remedy = _BULK_DELETE_REMEDY if unknown else "Solve this"
    return StorageError(
        f"{tried}: {answer}. {remedy} and run the command again. What was published before is untouched."
    )


def _is_any(text: str, words: tuple[str, ...]) -> bool:
    """Whether the code of the service is one of these; without a code, whether obstore's text has one."""
    code = _code(text)
    return code in words if code is not None else any(word in text for word in words)


def _code(text: str) -> str | None:
    code = re.search(r"<Code>([A-Za-z0-9.]{1,60})</Code>|\bcode: ([A-Za-z]{1,60})\b", text)
    return (code[1] or code[2]) if code else None


def _status(text: str) -> int:
    """The status of the answer that obstore's text names; 0 without one."""
    status = re.search(r"status code: (\d{3})", text)
    return int(status[1]) if status else 0


def _summary(text: str) -> str:
    """The service's code and first sentence. Of other texts, the end of the first line, which has the cause."""
    code = re.search(r"<Code>([A-Za-z0-9.]{1,60})</Code>", text)
    message = re.search(r"<Message>([^<.]{1,200})", text)
    if code:
        return f"{code[1]}: {message[1].strip()}" if message else code[1]
    first = text.partition("\n")[0]
    status = re.search(r"status code: (\d{3}[A-Za-z ]*)", first)
    return status[1].strip() if status else first.rpartition(" - ")[2].rpartition("error: ")[2].strip()[:200]

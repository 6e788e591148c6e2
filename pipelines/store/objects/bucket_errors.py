"""Turns the errors of a bucket's service into ours: what was tried, what came back, what to do; without secrets (I10)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

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
_BULK_DELETE_REMEDY = (
    "If the store cannot delete many objects with one request, set AWS_DISABLE_BULK_DELETE=true in the environment"
)
_UNREACHABLE = (
    "error sending request",
    "operation timed out",
    "Server returned non-2xx status code: 5",
    "5xx",
    "SlowDown",
    "error decoding response body",
    "connection closed",
)
_NO_CREDENTIALS = (
    "169.254.169.254",
    "metadata.google.internal",
    "Account must be specified",
    "MissingAccount",
    "CredentialProvider",
)


@contextmanager
def bucket_errors(trying: str, address: str) -> Iterator[None]:
    """Converts errors of obstore. A missing object stays a `FileNotFoundError`; a missing bucket does not."""
    try:
        yield
    except (BaseError, FileNotFoundError, PermissionError) as error:
        text = str(error)
        if isinstance(error, FileNotFoundError) and not _contains_any(text, _NO_BUCKET):
            raise
        raise _error_from(
            error, text, trying, address
        ) from None  # the rest of obstore's message may show how a request was signed


def _error_from(error: Exception, text: str, trying: str, address: str) -> BookferryError:
    tried = f"Cannot {trying} {address}"
    variables = _VARIABLES.get(address.partition(":")[0], "its variables in the environment")
    answer = _summary(text)
    if _contains_any(text, _NO_BUCKET):
        return ConfigurationError(
            f"{tried}: there is no such bucket ({answer}). Make it, or correct `data` in bookferry.toml or the region and endpoint in "
            "the environment."
        )
    if _contains_any(text, _NO_CREDENTIALS):
        return ConfigurationError(
            f"{tried}: no credentials ({answer}). Set {variables} in the environment of this command, or give this machine a role."
        )
    if _contains_any(text, _BAD_CREDENTIALS) or isinstance(error, UnauthenticatedError):
        return ConfigurationError(
            f"{tried}: the service does not accept the credentials ({answer}). Correct {variables} in the environment of this "
            "command."
        )
    if _contains_any(text, _NOT_PERMITTED) or isinstance(error, PermissionDeniedError | PermissionError):
        return ConfigurationError(
            f"{tried}: this is not permitted ({answer}). The owner of the bucket must permit listing, reading, writing and deleting of "
            "objects below that address."
        )
    unknown = _contains_any(text, _NOT_SUPPORTED)
    if _contains_any(text, _UNREACHABLE) and not unknown:
        return TemporaryError(
            f"{tried}: the service cannot be reached or fails ({answer}). Check the endpoint and region in the environment, and the "
            "network, then run the command again. What was published before is untouched."
        )
    remedy = _BULK_DELETE_REMEDY if unknown else "Solve this"
    return StorageError(
        f"{tried}: {answer}. {remedy} and run the command again. What was published before is untouched."
    )


def _contains_any(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


def _summary(text: str) -> str:
    """The service's code and first sentence. Of other texts, the end of the first line, which has the cause."""
    code = re.search(r"<Code>([A-Za-z0-9.]{1,60})</Code>", text)
    message = re.search(r"<Message>([^<.]{1,200})", text)
    if code:
        return f"{code[1]}: {message[1].strip()}" if message else code[1]
    first = text.partition("\n")[0]
    status = re.search(r"status code: (\d{3}[A-Za-z ]*)", first)
    return status[1].strip() if status else first.rpartition(" - ")[2].rpartition("error: ")[2].strip()[:200]

"""What a bucket's service answers, as one of our errors: what was tried, what came back, what to do; without a secret (I10)."""

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
"""Scheme → the environment variables that say who we are."""

_NO_BUCKET = ("NoSuchBucket", "bucket does not exist", "ContainerNotFound")
_WHO = (
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "AuthenticationFailed",
    "TokenRefreshRequired",
)
_MAY = ("AccessDenied", "AllAccessDisabled", "AuthorizationPermissionMismatch", "AuthorizationFailure")
_UNKNOWN = ("NotImplemented", "MethodNotAllowed")
_ONE_BY_ONE = (
    "If the store cannot delete many objects with one request, set AWS_DISABLE_BULK_DELETE=true in the environment"
)
_AWAY = (
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
    """That an object is missing stays a `FileNotFoundError`; that the bucket is missing does not."""
    try:
        yield
    except (BaseError, FileNotFoundError, PermissionError) as error:
        text = str(error)
        if isinstance(error, FileNotFoundError) and not _says(text, _NO_BUCKET):
            raise
        raise _told(
            error, text, trying, address
        ) from None  # what obstore says beside may show how a request was signed


def _told(error: Exception, text: str, trying: str, address: str) -> BookferryError:
    tried = f"Cannot {trying} {address}"
    variables = _VARIABLES.get(address.partition(":")[0], "its variables in the environment")
    came = _came_back(text)
    if _says(text, _NO_BUCKET):
        return ConfigurationError(
            f"{tried}: there is no such bucket ({came}). Make it, or correct `data` in bookferry.toml or the region and endpoint in "
            "the environment."
        )
    if _says(text, _NO_CREDENTIALS):
        return ConfigurationError(
            f"{tried}: nothing says who we are ({came}). Set {variables} in the environment of this command, or give this machine a role."
        )
    if _says(text, _WHO) or isinstance(error, UnauthenticatedError):
        return ConfigurationError(
            f"{tried}: the credentials are not accepted ({came}). Correct {variables} in the environment of this command."
        )
    if _says(text, _MAY) or isinstance(error, PermissionDeniedError | PermissionError):
        return ConfigurationError(
            f"{tried}: that is not permitted ({came}). Whoever owns the bucket has to permit listing it, and reading, writing and deleting "
            "objects below that address."
        )
    unknown = _says(text, _UNKNOWN)
    if _says(text, _AWAY) and not unknown:
        return TemporaryError(
            f"{tried}: the service cannot be reached, or fails ({came}). Look whether the endpoint and region in the environment are right "
            "and the network is there, then run the command again. What was published before is untouched."
        )
    mend = _ONE_BY_ONE if unknown else "Mend that"
    return StorageError(f"{tried}: {came}. {mend} and run the command again. What was published before is untouched.")


def _says(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


def _came_back(text: str) -> str:
    """The service's code and first sentence; of other texts the end of the first line, which tells the cause."""
    code = re.search(r"<Code>([A-Za-z0-9.]{1,60})</Code>", text)
    message = re.search(r"<Message>([^<.]{1,200})", text)
    if code:
        return f"{code[1]}: {message[1].strip()}" if message else code[1]
    first = text.partition("\n")[0]
    status = re.search(r"status code: (\d{3}[A-Za-z ]*)", first)
    return status[1].strip() if status else first.rpartition(" - ")[2].rpartition("error: ")[2].strip()[:200]

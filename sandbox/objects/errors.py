"""Errors of the object store: status and XML document as in Amazon S3's list of error responses."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape

from werkzeug.wrappers import Response


class S3Error(Exception):
    """An error response; ``details`` are elements beside code and message."""

    def __init__(self, status: int, code: str, message: str, details: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = dict(details or {})

    def response(self) -> Response:
        """Returns the HTTP response."""
        elements = {"Code": self.code, "Message": self.message, **self.details}
        inside = "".join(f"<{name}>{_text(value)}</{name}>" for name, value in elements.items())
        body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error>{inside}</Error>'
        return Response(body.encode(), status=self.status, content_type="application/xml")


def _text(value: object) -> str:
    """Escapes a value for XML; unprintable characters become question marks."""
    return escape("".join(sign if sign.isprintable() or sign in "\t\n" else "?" for sign in str(value)))


def access_denied(message: str = "Access Denied") -> S3Error:
    """Returns 403 for what signature or policy do not allow."""
    return S3Error(403, "AccessDenied", message)


def invalid_argument(message: str, name: str, value: object = "") -> S3Error:
    """Returns 400 for an invalid part of the request."""
    return S3Error(400, "InvalidArgument", message, {"ArgumentName": name, "ArgumentValue": value})


def signature_does_not_match() -> S3Error:
    """Returns 403 for a signature of another key or request."""
    message = "The request signature we calculated does not match the signature you provided. Check your key and signing method."
    return S3Error(403, "SignatureDoesNotMatch", message)


def invalid_access_key(access_key_id: str) -> S3Error:
    """Returns 403 for an unknown key."""
    message = "The AWS Access Key Id you provided does not exist in our records."
    return S3Error(403, "InvalidAccessKeyId", message, {"AWSAccessKeyId": access_key_id})


def invalid_token() -> S3Error:
    """Returns 400 for a wrong or missing security token."""
    return S3Error(400, "InvalidToken", "The provided token is malformed or otherwise invalid.")


def only_one_mechanism() -> S3Error:
    """Returns 400 for a request that is signed in two ways."""
    message = (
        "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string parameter "
        "or the Authorization header should be specified"
    )
    return invalid_argument(message, "Authorization")


def malformed_form(why: str) -> S3Error:
    """Returns 400 for a body that is no form as in RFC 7578 and RFC 2046."""
    message = f"The body of your POST request is not well-formed multipart/form-data. {why}"
    return S3Error(400, "MalformedPOSTRequest", message)


def no_such_key(key: str) -> S3Error:
    """Returns 404 for a missing object."""
    return S3Error(404, "NoSuchKey", "The specified key does not exist.", {"Key": key})


def no_such_bucket(bucket: str) -> S3Error:
    """Returns 404 for a missing bucket."""
    return S3Error(404, "NoSuchBucket", "The specified bucket does not exist", {"BucketName": bucket})


def method_not_allowed(method: str) -> S3Error:
    """Returns 405 for what this store does not support."""
    message = "The specified method is not allowed against this resource."
    return S3Error(405, "MethodNotAllowed", message, {"Method": method})

"""Errors of the object store: status and XML document as in Amazon S3's list of error responses."""

from __future__ import annotations

from xml.sax.saxutils import escape

from werkzeug.wrappers import Response

from sandbox.errors import ApiError


class S3Error(ApiError):
    """An error response."""

    def response(self) -> Response:
        """Returns the HTTP response. In the message unprintable characters become question marks."""
        message = escape("".join(sign if sign.isprintable() else "?" for sign in self.message))
        body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{self.code}</Code><Message>{message}</Message></Error>'
        return Response(body.encode(), status=self.status, content_type="application/xml")


def access_denied(message: str = "Access Denied") -> S3Error:
    """Returns 403 for what signature or policy do not allow."""
    return S3Error(403, "AccessDenied", message)


def signature_does_not_match() -> S3Error:
    """Returns 403 for a signature of another key or request."""
    message = "The request signature we calculated does not match the signature you provided. Check your key and signing method."
    return S3Error(403, "SignatureDoesNotMatch", message)


def invalid_argument(message: str) -> S3Error:
    """Returns 400 for an invalid part of the request."""
    return S3Error(400, "InvalidArgument", message)


def malformed_form(reason: str) -> S3Error:
    """Returns 400 for a body that is no form as in RFC 7578 and RFC 2046."""
    message = f"The body of your POST request is not well-formed multipart/form-data. {reason}"
    return S3Error(400, "MalformedPOSTRequest", message)


def no_such_key() -> S3Error:
    """Returns 404 for a missing object."""
    return S3Error(404, "NoSuchKey", "The specified key does not exist.")


def no_such_bucket() -> S3Error:
    """Returns 404 for a missing bucket."""
    return S3Error(404, "NoSuchBucket", "The specified bucket does not exist")

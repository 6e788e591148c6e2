"""The object store: a form uploads one file, an address downloads one object."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Protocol
from urllib.parse import parse_qsl, quote, urlencode
from xml.sax.saxutils import escape

from werkzeug.http import parse_options_header, quote_etag
from werkzeug.wrappers import Request, Response

from sandbox.objects.errors import (
    S3Error,
    access_denied,
    invalid_argument,
    malformed_form,
    method_not_allowed,
    no_such_key,
    only_one_mechanism,
)
from sandbox.objects.multipart import MultipartReader, Part, boundary_of
from sandbox.objects.policy import Policy, check_signature, read_policy
from sandbox.objects.sigv4 import Keys, SignableRequest, check_headers, check_presigned_url

# S3's limit for the fields before the file
_MAX_FIELD_BYTES = 20_000
# A client that sends its whole body first would miss a refusal, so up to this much of the body is read before it
_MAX_DRAINED_BYTES = 1 << 30
_CHUNK = 64 * 1024
_UPLOADS = "cache/"
_MAX_KEY_BYTES = 1024
_DEFAULT_TYPE = "binary/octet-stream"
_STATUSES = {"200", "201", "204"}
_RESPONSE_HEADERS = {
    "response-content-type": "Content-Type",
    "response-content-disposition": "Content-Disposition",
    "response-content-encoding": "Content-Encoding",
    "response-cache-control": "Cache-Control",
}
_HEADER_TEXT = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")


class Writer(Protocol):
    """Writes an object, which is visible after ``finish``."""

    def write(self, data: bytes) -> int:
        """Writes bytes."""

    def finish(self, key: str, *, filename: str, content_type: str | None, content_disposition: str | None) -> str:
        """Stores the object under this key, replacing an older one; returns its MD5."""

    def discard(self) -> None:
        """Discards the bytes if they were not stored."""


class Object(Protocol):
    """A stored object."""

    @property
    def size(self) -> int:
        """Size in bytes."""

    @property
    def md5(self) -> str:
        """MD5 in hexadecimal digits."""

    @property
    def content_type(self) -> str | None:
        """Media type."""

    @property
    def content_disposition(self) -> str | None:
        """Content-Disposition."""

    def chunks(self, start: int, stop: int) -> Iterator[bytes]:
        """Yields the bytes from ``start`` to ``stop`` (exclusive)."""


class Bucket(Protocol):
    """A bucket."""

    @property
    def name(self) -> str:
        """Name in addresses."""

    def begin_upload(self) -> Writer:
        """Begins an object."""

    def find(self, key: str) -> Object | None:
        """Returns the object of a key."""


def respond(request: Request, key: str, bucket: Bucket, keys: Keys, now: float, *, head_with_get: bool) -> Response:
    """Answers a request for ``key``, or for the bucket itself if the key is empty."""
    try:
        if request.method == "POST" and not key:
            return _upload(request, bucket, keys, now)
        if request.method in {"GET", "HEAD"} and key:
            _check_reader(request, keys, now, head_with_get=head_with_get)
            return _download(request, key, bucket)
        raise method_not_allowed(request.method)
    except S3Error as refusal:
        _drain(request)
        return refusal.response()


def _drain(request: Request) -> None:
    remaining = _MAX_DRAINED_BYTES
    with suppress(OSError):
        while remaining > 0 and (data := request.stream.read(_CHUNK)):
            remaining -= len(data)


def _check_reader(request: Request, keys: Keys, now: float, *, head_with_get: bool) -> None:
    query = tuple(parse_qsl(request.query_string.decode("latin-1"), keep_blank_values=True, errors="surrogateescape"))
    headers = {name.lower(): value for name, value in request.headers.items()}
    signable = SignableRequest(request.method, request.path, query, headers)
    in_query = any(name.startswith("X-Amz-") for name, _ in query)
    if "authorization" in headers:
        if in_query:
            raise only_one_mechanism()
        check_headers(keys, signable, now)
    else:
        methods = [request.method, "GET"] if head_with_get else [request.method]
        check_presigned_url(keys, signable, now, methods=methods)


def _download(request: Request, key: str, bucket: Bucket) -> Response:
    found = bucket.find(key)
    if found is None:
        raise no_such_key(key)
    selected = _range(request, found)
    start, stop = selected or (0, found.size)
    chunks = () if request.method == "HEAD" else found.chunks(start, stop)
    response = Response(chunks, status=206 if selected else 200)
    response.headers["Content-Type"] = found.content_type or _DEFAULT_TYPE
    if found.content_disposition is not None:
        response.headers["Content-Disposition"] = found.content_disposition
    for name, header in _RESPONSE_HEADERS.items():
        if (value := request.args.get(name)) is not None:
            if not _HEADER_TEXT.fullmatch(value):
                raise invalid_argument("Header value cannot be represented", name, value)
            response.headers[header] = value
    response.headers["ETag"] = quote_etag(found.md5)
    response.headers["Accept-Ranges"] = "bytes"
    response.content_length = stop - start
    if selected:
        response.headers["Content-Range"] = f"bytes {start}-{stop - 1}/{found.size}"
        return response
    return response.make_conditional(request)


def _range(request: Request, found: Object) -> tuple[int, int] | None:
    """Returns the requested range, None for the whole object. Several or invalid ranges mean the whole object."""
    requested = request.range
    if requested is None or requested.units != "bytes" or len(requested.ranges) != 1:
        return None
    if request.if_range.etag is not None and request.if_range.etag != found.md5:
        return None
    selected = requested.range_for_length(found.size)
    if selected is None:
        message = "The requested range is not satisfiable"
        details = {"RangeRequested": request.headers["Range"], "ActualObjectSize": found.size}
        raise S3Error(416, "InvalidRange", message, details)
    start, stop = selected
    return start, stop


def _upload(request: Request, bucket: Bucket, keys: Keys, now: float) -> Response:
    """Stores the file of a signed form."""
    if "Authorization" in request.headers:
        raise only_one_mechanism()
    boundary = boundary_of(request.headers.get("Content-Type", ""))
    if boundary is None:
        message = "At least one of the pre-conditions you specified did not hold"
        details = {"Condition": "Bucket POST must be of the enclosure-type multipart/form-data"}
        raise S3Error(412, "PreconditionFailed", message, details)
    if request.content_length is None or "Transfer-Encoding" in request.headers:
        raise S3Error(411, "MissingContentLength", "You must provide the Content-Length HTTP header.")
    parts = MultipartReader(request.stream, boundary).parts()
    form, file = _fields(parts)
    form["bucket"] = bucket.name
    key = _key(form, file)
    form["key"] = key
    policy = _checked_policy(form, keys, now)
    writer = bucket.begin_upload()
    try:
        _receive_file(file, policy, writer)
        _check_last_part(parts)
        filename = _filename(form) or _base_name(file.filename or key)
        md5 = writer.finish(
            key,
            filename=filename,
            content_type=_header(form, "content-type"),
            content_disposition=_header(form, "content-disposition"),
        )
    finally:
        writer.discard()
    return _upload_response(request, form, key, md5)


def _fields(parts: Iterator[Part]) -> tuple[dict[str, str], Part]:
    """Returns the fields before the file, with names in small letters, and the file."""
    form: dict[str, str] = {}
    size = 0
    for part in parts:
        name = part.name.lower()
        if name == "file":
            return form, part
        value = b""
        for chunk in part.chunks:
            value += chunk
            size += len(chunk)
            if size > _MAX_FIELD_BYTES:
                message = "Your POST request fields preceding the upload file were too large."
                raise S3Error(
                    400, "MaxPostPreDataLengthExceeded", message, {"MaxPostPreDataLengthBytes": _MAX_FIELD_BYTES}
                )
        if name in form:
            raise invalid_argument("A field must not come twice.", part.name)
        form[name] = value.decode("utf-8", "replace")
    raise invalid_argument("POST requires exactly one file upload per request.", "file", 0)


def _key(form: Mapping[str, str], file: Part) -> str:
    """Returns the key, with the file name in place of ``${filename}``."""
    if "key" not in form:
        message = (
            "Bucket POST must contain a field named 'key'.  If it is specified, please check the order of the fields."
        )
        raise invalid_argument(message, "key")
    key = form["key"].replace("${filename}", _base_name(file.filename or ""))
    if not 0 < len(key.encode("utf-8", "replace")) <= _MAX_KEY_BYTES:
        raise S3Error(400, "KeyTooLongError", "Your key is empty or too long")
    return key


def _filename(form: Mapping[str, str]) -> str | None:
    """Returns the file name of the Content-Disposition."""
    return parse_options_header(form.get("content-disposition", ""))[1].get("filename")


def _base_name(filename: str) -> str:
    """Returns the file name without folders, which some browsers send."""
    return re.split(r"[/\\]", filename)[-1]


def _checked_policy(form: Mapping[str, str], keys: Keys, now: float) -> Policy:
    """Returns the policy if it allows the form. The bucket of the address is checked like a field."""
    check_signature(keys, form)
    policy = read_policy(form["policy"])
    policy.check(form, now)
    if not form["key"].startswith(_UPLOADS):
        raise access_denied(f"These keys may only write below {_UPLOADS}")
    return policy


def _receive_file(file: Part, policy: Policy, writer: Writer) -> None:
    size = 0
    for chunk in file.chunks:
        size += len(chunk)
        policy.check_max_size(size)
        writer.write(chunk)
    policy.check_min_size(size)


def _check_last_part(parts: Iterator[Part]) -> None:
    """Raises if a part follows the file, which has to be the last one (service.md#upload)."""
    for part in parts:
        raise malformed_form(f"The file must be the last part; {part.name} comes after it.")


def _header(form: Mapping[str, str], name: str) -> str | None:
    """Returns a field that becomes a header of the object."""
    value = form.get(name)
    if value is not None and not _HEADER_TEXT.fullmatch(value):
        raise invalid_argument("Header value cannot be represented", name, value)
    return value


def _upload_response(request: Request, form: Mapping[str, str], key: str, md5: str) -> Response:
    etag = quote_etag(md5)
    location = f"{request.host_url}{quote(form['bucket'])}/{quote(key)}"
    headers = {"ETag": etag, "Location": location}
    if redirect := _header(form, "success_action_redirect"):
        query = urlencode({"bucket": form["bucket"], "key": key, "etag": etag})
        return Response(status=303, headers={"Location": f"{redirect}{'&' if '?' in redirect else '?'}{query}"})
    status = form.get("success_action_status", "")
    if status != "201":
        return Response(status=int(status) if status in _STATUSES else 204, headers=headers)
    elements = {"Location": location, "Bucket": form["bucket"], "Key": key, "ETag": etag}
    inside = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in elements.items())
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<PostResponse>{inside}</PostResponse>'
    return Response(body, status=201, headers=headers, content_type="application/xml")

"""The object store: a form uploads one file, an address downloads one object."""

from __future__ import annotations

import shutil
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from urllib.parse import quote

from werkzeug.http import parse_options_header, quote_etag
from werkzeug.wrappers import Request, Response
from werkzeug.wsgi import FileWrapper

from sandbox.objects.disposition import inline
from sandbox.objects.errors import S3Error, invalid_argument, malformed_form, no_such_key
from sandbox.objects.forms import Form, boundary_of, read_form
from sandbox.objects.signatures import check_address, check_form
from sandbox.state.blobs import Blobs, StoredObject


def respond(request: Request, key: str, bucket: Blobs, signing_key: bytes, now: float) -> Response:
    """Answers a request for ``key``, or for the bucket itself if the key is empty."""
    if request.method not in ({"GET", "HEAD"} if key else {"POST"}):
        raise S3Error(405, "MethodNotAllowed", "The specified method is not allowed against this resource.")
    if "Authorization" in request.headers:
        raise invalid_argument("Only one auth mechanism allowed; the form or the address has its own signature")
    if not key:
        return _upload(request, bucket, signing_key, now)
    check_address(signing_key, request.path, request.args, now)
    return _download(request, bucket.find(key))


def _download(request: Request, stored: StoredObject | None) -> Response:
    """Answers with the object, or that it is still the one that a client has."""
    if stored is None:
        raise no_such_key()
    response = Response(FileWrapper(stored.open()))
    response.headers["Content-Type"] = stored.mime_type or "binary/octet-stream"
    response.headers["Content-Disposition"] = inline(stored.filename)
    response.headers["ETag"] = quote_etag(stored.etag)
    response.content_length = stored.size
    return response.make_conditional(request)


def _upload(request: Request, bucket: Blobs, signing_key: bytes, now: float) -> Response:
    """Stores the file of a signed form. The whole body is read first: many a client reads no answer before it has sent everything."""
    boundary = boundary_of(request.headers.get("Content-Type", ""))
    if request.content_length is None or "Transfer-Encoding" in request.headers:
        raise S3Error(411, "MissingContentLength", "You must provide the Content-Length HTTP header.")
    with TemporaryFile() as received:
        shutil.copyfileobj(request.stream, received)
        if not received.tell():
            raise malformed_form("It is empty.")
        received.flush()
        with mmap(received.fileno(), 0, access=ACCESS_READ) as body:
            form = read_form(body, boundary)
            key, most = form.fields.get("key", ""), check_form(signing_key, form.fields, now)
            if form.file.stop - form.file.start > most:
                raise S3Error(400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size")
            with memoryview(body) as view, view[form.file.start : form.file.stop] as content:
                bucket.upload(
                    key,
                    content,
                    filename=_filename(form) or key.rpartition("/")[2],
                    mime_type=form.fields.get("content-type"),
                )
    return Response(status=204, headers={"Location": f"{request.host_url}{quote(bucket.name)}/{quote(key)}"})


def _filename(form: Form) -> str | None:
    """Returns the file name of the form's Content-Disposition, else that of the file."""
    _, options = parse_options_header(form.fields.get("content-disposition", ""))
    return options.get("filename") or form.file.filename

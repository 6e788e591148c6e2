"""The meaning of one API response: the response itself, the result of a write, or the error that says what to do next."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

import httpx

from pipelines.errors import (
    AccessDeniedError,
    BookferryError,
    ConfigurationError,
    ProtocolError,
    RefusedError,
    SignInError,
    UnclearError,
    UnnamedRecordError,
)
from pipelines.records.shapes.field_names import resource_named, stem_of
from pipelines.records.tables.registry import PERSONAL
from pipelines.records.values import RecordId, as_id, decode_json, record_id
from pipelines.service.http.envelope import created_record, record_named_at
from pipelines.service.http.failures import (
    describe_request,
    error_and_description,
    is_temporary,
    is_untrusted,
    status_line,
    transport_error_text,
    was_never_sent,
)
from pipelines.service.http.redirects import CHECK_SIGN_IN, redirect_error
from pipelines.service.http.retries import ANSWERED, UNCLEAR
from pipelines.service.redaction import MAX_CHARACTERS, outside_text

REFUSAL = "refusal"
"""Response extension: the error that explains a 401 or 403, if the sign-in layer knows more than the status."""


def check_response(response: httpx.Response) -> httpx.Response:
    """Returns the response to a GET if it is a 200 and no web page; else raises the error of `LibraryClient.get`."""
    if response.status_code != httpx.codes.OK:
        raise _refusal(response)
    _check_no_page(response)
    return response


def write_result(response: httpx.Response) -> Any:
    """Returns the JSON of a write's 2xx response, `None` if it is empty; else raises the error of `LibraryClient.write`."""
    request = response.request
    if request.method == "POST" and _is_unclear(response):
        to = f" to {outside_text(response.headers['location'])}" if response.has_redirect_location else ""
        raise unclear_error(request, f"{status_line(response)}{to}{_service_message(response)}")
    if _is_gone(response) and request.method == "DELETE" and request.extensions.get(UNCLEAR):
        return None  # I8: an earlier try deleted it, and its response was lost
    if not response.is_success:
        raise _refusal(response)
    if not response.content.strip():
        return None
    try:
        _check_no_page(response)
        return _decoded(response)
    except ProtocolError as error:
        if request.method == "POST":
            raise unclear_error(request, str(error)) from None
        raise


class CreationAnswer(NamedTuple):
    """What is known of the answer to a POST that creates a record."""

    fields: Collection[str]
    """The names that were sent."""
    resource: str
    answer_id: str
    """The path of the id in the answer; empty where that is not known."""
    is_new: Callable[[RecordId], bool]
    """Whether an id may be that of a new record."""


def created(response: httpx.Response, expected: CreationAnswer) -> dict[str, Any]:
    """Returns the record that a POST created, with its id.

    Raises `UnnamedRecordError` for a success that does not name it, and else the errors of `write_result`. The id may be that of the
    header `Location`. After a 202, the id alone may be that of a job.
    """
    answer = write_result(response)
    fields, resource, answer_id, is_new = expected
    record = record_named_at(answer, answer_id) if answer_id else created_record(answer, fields, resource)
    if record is not None and response.status_code == HTTPStatus.ACCEPTED and record.keys().isdisjoint(fields):
        record = None
    elif record is None and (number := _located(response)) is not None:
        record = {**(answer if isinstance(answer, dict) else {}), "id": number}
    if record is None or not is_new(as_id(str(record["id"]))):
        raise unclear_error(
            response.request, f"{status_line(response)}, and nothing in it names one new record: {_shown(response)}"
        )
    return record


def _located(response: httpx.Response) -> RecordId | None:
    """The id in the header `Location` of a new record: the address of the list, and the id."""
    address = response.headers.get("location", "").partition("?")[0].rstrip("/")
    of_list, _, number = address.rpartition("/")
    same = of_list.rpartition("/")[2] == response.request.url.path.rpartition("/")[2]
    return record_id(unquote(number)) if same and response.is_success else None


def _shown(response: httpx.Response) -> str:
    """The beginning of a body for a message; not of one about a person."""
    if not response.content.strip():
        return "an empty body"
    *above, last = response.request.url.path.split("/")
    if not PERSONAL.isdisjoint({*above, last, resource_named(stem_of(last))}):
        return "a body about a person, which is not shown"
    return outside_text(response.text, 200)


def as_object(response: httpx.Response) -> dict[str, Any]:
    """Returns the JSON object of a response. Raises `ProtocolError` for any other value."""
    value = _decoded(response)
    if not isinstance(value, dict):
        raise ProtocolError(f"{describe_request(response.request)} answered with JSON that is no object.")
    return value


def failed_write_error(request: httpx.Request, error: Exception) -> BookferryError:
    """Returns the error for a write without a whole response."""
    if request.method == "POST" and isinstance(error, httpx.TransportError) and not was_never_sent(error):
        return unclear_error(request, transport_error_text(error))
    return unsent_error(request.method, request.url, error)


def unclear_error(request: httpx.Request, came_back: str) -> UnclearError:
    """Returns the error for a POST that may have had its effect, or certainly had it: what began with a success is one."""
    status = request.extensions.get(ANSWERED)
    if status is not None and httpx.codes.is_success(status):
        return UnnamedRecordError(
            f"{describe_request(request)} was answered with success, but not with the record that it made; what came back: {came_back}. "
            "Bookferry does not send it again.",
            status=status,
        )
    return UnclearError(
        f"{describe_request(request)} was sent and may have had its effect; what came back: {came_back}. Bookferry does not repeat it: "
        "check in the library whether the record is there."
    )


def unsent_error(method: str, url: httpx.URL | str, error: Exception) -> BookferryError:
    """Returns the error for a failure that no repetition changes. httpx's own text may contain headers, so it is left out."""
    request_line = f"{method} {outside_text(url)}"
    if is_untrusted(error):
        return ConfigurationError(
            f"{request_line}: the certificate of that server is not trusted ({outside_text(error)}); your sign-in was not sent. "
            "Is base_url right? For a certificate authority of your own, name its file in the environment variable SSL_CERT_FILE."
        )
    return ProtocolError(f"{request_line} could not be sent ({type(error).__name__}). Is base_url right?")


def _is_unclear(response: httpx.Response) -> bool:
    """Whether a POST with this response may have had its effect. A redirect may follow an effect (303), and so may a late 408."""
    return response.is_server_error or response.is_redirect or is_temporary(response.status_code)


def _is_gone(response: httpx.Response) -> bool:
    return response.status_code == HTTPStatus.NOT_FOUND


def _check_no_page(response: httpx.Response) -> None:
    if "html" in response.headers.get("content-type", "").lower():
        raise ProtocolError(
            f"{describe_request(response.request)} answered with a web page instead of JSON. Is base_url the library's address?"
        )


def _decoded(response: httpx.Response) -> object:
    try:
        return decode_json(response.content)
    except ValueError:
        raise ProtocolError(
            f"{describe_request(response.request)} answered {status_line(response)} with a body that is not JSON."
        ) from None


def _refusal(response: httpx.Response) -> BookferryError:
    """Returns the error for a response without success, with the service's own words."""
    if (refusal := response.extensions.get(REFUSAL)) is not None:
        return cast("BookferryError", refusal)
    status, message, request_line = response.status_code, _service_message(response), describe_request(response.request)
    if status == httpx.codes.UNAUTHORIZED:
        return SignInError(
            f"{request_line} answered 401: the service does not accept the sign-in{message}. {CHECK_SIGN_IN}."
        )
    if status == httpx.codes.FORBIDDEN:
        may = "read" if response.request.method == "GET" else "do"
        return AccessDeniedError(
            f"{request_line} answered 403: this account may not {may} that{message}. "
            "Ask an administrator of the library for a technical account that may."
        )
    if response.has_redirect_location:
        return redirect_error(response)
    if response.is_client_error:
        code, detail = error_and_description(response)
        return RefusedError(
            f"{request_line} answered {status_line(response)}{message}.",
            status=status,
            code=outside_text(code),
            detail=outside_text(detail),
        )
    return ProtocolError(f"{request_line} answered {status_line(response)}{message}, which the API does not document.")


def _service_message(response: httpx.Response) -> str:
    """Returns the service's message as ` (code: message)`; if the body has another form, its beginning."""
    if words := ": ".join(filter(None, error_and_description(response))):
        return f" ({outside_text(words)})"
    text = outside_text(_MARKUP.sub(" ", response.text[:MAX_CHARACTERS]))
    return f" ({text})" if text else ""


_MARKUP = re.compile(r"(?is)<(script|style)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)|</?[a-z!?][^<>]*>")
"""Of a web page, only its words are shown."""

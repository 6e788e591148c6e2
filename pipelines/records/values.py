"""Single values of JSON from outside: read, and turned into what a column can hold. Total: nothing here raises on data (I7)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from datetime import date
from functools import lru_cache
from typing import Any

import msgspec

TOO_DEEP = '"(nested too deeply; the payload has it)"'

_INT64 = range(-(2**63), 2**63)


def decode_record(payload: bytes) -> dict[str, Any]:
    """The record as a dictionary. What is not an object, or cannot be read, is kept whole as residue under the key `(record)`."""
    record: object
    try:
        record = decode_json(payload)
    except ValueError:
        record = payload.decode(errors="replace")
    return record if type(record) is dict else {"(record)": record}


def decode_json(payload: bytes) -> object:
    """A JSON value, numbers as records have them; with what careless services take for JSON. Raises `ValueError` where it is none."""
    try:
        return _DECODE(payload)
    except NOT_JSON:
        try:
            return _LENIENT(payload.decode(errors="replace"))
        except NOT_JSON:
            raise ValueError("no JSON") from None


def record_ids(payloads: Iterable[msgspec.Raw | bytes]) -> list[int | None]:
    """The `id` of each record, reading as little as possible; `None` where there is none that is a whole number.

    Of a record that has two, whatever that may mean, the first.
    """
    return [_record_id(payload) for payload in payloads]


def whole_number(value: object) -> int | None:
    """A whole number within 64 bits, from an int or from its decimal digits; else `None`."""
    if type(value) is str and value.isascii() and value.isdigit() and len(value) < 19:  # noqa: PLR2004  int64
        value = int(value)
    return value if type(value) is int and value in _INT64 else None


@lru_cache(maxsize=2**16)
def day(text: str) -> date | None:
    """The day that `YYYY-MM-DD` names; `None` for anything else (service-api.md: "string, date YYYY-MM-DD")."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def text_of(value: object) -> str | None:
    """Any JSON value as text that UTF-8 can hold; a lone surrogate becomes U+FFFD (the payload keeps its escape)."""
    if value is None:
        return None
    return valid_text(value if type(value) is str else compact_json(value))


def valid_text(text: str) -> str:
    """Text that UTF-8 can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def compact_json(value: object) -> str:
    """JSON that any parser takes."""
    try:
        return msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
        pass  # a lone surrogate, more than 64 bits, or nested deeply
    try:
        return valid_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except (ValueError, RecursionError):
        return TOO_DEEP


def parse_float(text: str) -> float | str:
    """A number; as text where it is too large for one, because no JSON writer can write infinity."""
    number = float(text)
    return number if math.isfinite(number) else text


class _OnlyId(msgspec.Struct):
    id: Any = None


def _int(text: str) -> int | str:
    """A number; as text where it has more digits than Python converts."""
    try:
        return int(text)
    except ValueError:
        return text


_DECODE_ID = msgspec.json.Decoder(_OnlyId).decode
_DECODE = msgspec.json.Decoder(float_hook=parse_float).decode
_LENIENT = json.JSONDecoder(parse_float=parse_float, parse_int=_int, parse_constant=str).decode
"""Takes what msgspec refuses: lone surrogates, NaN, numbers of any length."""

NOT_JSON = (msgspec.MsgspecError, ValueError, RecursionError)
"""What a decoder raises."""


_ID_FIRST = re.compile(rb'\{"id":([1-9][0-9]{0,17})[,}]')
"""How nearly every record begins, so that the rest of it need not be read."""


def _record_id(payload: msgspec.Raw | bytes) -> int | None:
    if begun := _ID_FIRST.match(payload):
        return int(begun[1])
    try:
        return whole_number(_DECODE_ID(payload).id)
    except NOT_JSON:
        return whole_number(decode_record(bytes(payload)).get("id"))

"""Reads single JSON values from outside, and converts them to values that a column can hold. Total: nothing here raises on data (I7)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from datetime import date
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

TOO_DEEP = '"(nested too deeply; the payload has it)"'

_INT64 = range(-(2**63), 2**63)

_PARTIAL_DATE = re.compile(r"[0-9]{4}(-[0-9]{2}){0,2}")
_YEAR_LAST = re.compile(r"([0-9]{1,2})([./-])([0-9]{1,2})\2([0-9]{4})")
_YEAR_FIRST = re.compile(r"([0-9]{4})([./-])([0-9]{1,2})\2([0-9]{1,2})(?:T00:00(?::00(?:\.0+)?)?Z?)?")
"""Also with the midnight that some systems add to a day; another time may be another day elsewhere."""
_BASIC = re.compile(r"((?:1[3-9]|[2-9][0-9])[0-9]{2})([0-9]{2})([0-9]{2})")
"""The basic form of ISO 8601. Where it is a date, the same digits with the year last are none after the year 1231."""
_ENGLISH = tuple(
    re.compile(
        form.format(
            month=r"(?P<month>[a-z]{3,9})", day=r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?", year="(?P<year>[0-9]{4})"
        )
    )
    for form in (
        r"(?:{day}(?:[ -]|\. ?))?{month}(?:[ -]|[.,] ?){year}",
        r"{month}\.? {day}(?: |, ?){year}",
        r"{year}(?P<separator>[ -]){month}\.?(?:(?P=separator){day})?",
    )
)
"""With the month in English: 19 July 2018, July 19, 2018, 2018 Jul 19, July 2018. Names in other languages are not guessed."""
_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTHS = {name: number for number, month in enumerate(_NAMES, start=1) for name in (month, month[:3])} | {"sept": 9}


def decode_record(payload: bytes) -> dict[str, Any]:
    """The record as a dictionary. Text that is not a JSON object stands whole under the key `(record)`, as residue."""
    record: object
    try:
        record = decode_json(payload)
    except ValueError:
        record = payload.decode(errors="replace")
    return record if type(record) is dict else {"(record)": record}


def decode_json(payload: bytes) -> object:
    """A JSON value, also from text that only lenient parsers accept, such as NaN. Raises `ValueError` if it is no JSON."""
    try:
        return _DECODE(payload)
    except NOT_JSON:
        try:
            return _LENIENT(payload.decode(errors="replace"))
        except NOT_JSON:
            raise ValueError("no JSON") from None


def record_ids(payloads: Iterable[msgspec.Raw | bytes]) -> list[int | None]:
    """The `id` of each record; `None` if it is no whole number."""
    return [whole_number(_id_of(payload)) for payload in payloads]


def _id_of(payload: msgspec.Raw | bytes) -> object:
    """The `id` of a record. Nothing else of it is decoded, unless it needs a lenient parser."""
    try:
        return _IDENTIFIED(payload).id
    except NOT_JSON:
        return decode_record(bytes(payload)).get("id")


class _Identified(msgspec.Struct):
    id: object = None


RecordId = int | str
"""The id of a record: a whole number, or another text, such as "007"."""

_LONGEST_ID = 200
_WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")


def record_id(value: object) -> RecordId | None:
    """The id in a field of a record; `None` if it is none. A text of digits is the number that is written so."""
    if isinstance(value, str):
        return (
            as_id(value)
            if len(value) <= _LONGEST_ID and value.isprintable() and value and value == value.strip()
            else None
        )
    return value if type(value) is int and value in _INT64 else None


def as_id(text: str) -> RecordId:
    """The id that is written so."""
    return int(text) if _WHOLE_NUMBER.fullmatch(text) and int(text) in _INT64 else text


def id_order(number: RecordId) -> tuple[bool, RecordId]:
    """The key by which ids are sorted: numbers come before texts."""
    return isinstance(number, str), number


def ids_of(texts: Iterable[str] | None) -> list[RecordId]:
    """The ids that a table has as these texts."""
    return [as_id(text) for text in texts or ()]


def whole_number(value: object) -> int | None:
    """A whole number within 64 bits, from an integer or from text of at most 18 decimal digits; else `None`."""
    if type(value) is str and value.isascii() and value.isdigit() and len(value) < 19:  # noqa: PLR2004  int64
        value = int(value)
    return value if type(value) is int and value in _INT64 else None


class Precision(StrEnum):
    """How much of a date a text has."""

    DAY = "day"
    MONTH = "month"
    YEAR = "year"


class PartialDate(NamedTuple):
    """A day, a month or a year. `first`: its first day, or the day itself."""

    first: date
    precision: Precision

    @property
    def known(self) -> str:
        """The beginning of a date that it gives: `2018` or `2018-07`, or all of it."""
        return self.first.isoformat()[: _KNOWN[self.precision]]


_PRECISIONS = {
    len("YYYY-MM-DD"): ("", Precision.DAY),
    len("YYYY-MM"): ("-01", Precision.MONTH),
    len("YYYY"): ("-01-01", Precision.YEAR),
}
"""Length of a text → what its first day lacks, and its precision."""
_KNOWN = {precision: length for length, (_missing, precision) in _PRECISIONS.items()}


@lru_cache(maxsize=2**16)
def partial_date(text: str) -> PartialDate | None:
    """The date in `YYYY-MM-DD`, `YYYY-MM` or `YYYY`; `None` for any other text, such as a day that does not exist.

    In another order or form they are a date if they have one reading: 7/19/2018, 2018/7/19, 20180719, July 19, 2018, not 2/3/2018
    (rule `date_order`). Blanks around a date say nothing.
    """
    text = text.strip()
    if year_last := _YEAR_LAST.fullmatch(text):
        first, _separator, second, year = year_last.groups()
        readings = {
            parsed.first for parsed in map(partial_date, _both_orders(year, first, second)) if parsed is not None
        }
        return PartialDate(readings.pop(), Precision.DAY) if len(readings) == 1 else None
    if year_first := _YEAR_FIRST.fullmatch(text):
        year, _separator, month, day_of_month = year_first.groups()
        text = f"{year}-{month:0>2}-{day_of_month:0>2}"
    elif basic := _BASIC.fullmatch(text):
        text = "-".join(basic.groups())
    elif english := _english(text.lower()):
        text = english
    if not _PARTIAL_DATE.fullmatch(text):
        return None
    missing, precision = _PRECISIONS[len(text)]
    try:
        return PartialDate(date.fromisoformat(text + missing), precision)
    except ValueError:
        return None


def _english(text: str) -> str | None:
    """The date in numbers, of a text in lower case with the month in English."""
    parts = next((match.groupdict() for form in _ENGLISH if (match := form.fullmatch(text))), None)
    if parts is None or parts["month"] not in _MONTHS:
        return None
    month = f"{parts['year']}-{_MONTHS[parts['month']]:02}"
    return f"{month}-{parts['day']:0>2}" if parts["day"] else month


def _both_orders(year: str, first: str, second: str) -> tuple[str, str]:
    return f"{year}-{first:0>2}-{second:0>2}", f"{year}-{second:0>2}-{first:0>2}"


def day(text: str) -> date | None:
    """The date in `YYYY-MM-DD`; `None` for any other text (service.md#publications)."""
    parsed = partial_date(text)
    return parsed.first if parsed is not None and parsed.first.isoformat() == text else None


def text_of(value: object) -> str | None:
    """Any JSON value as text that UTF-8 can hold; a lone surrogate becomes U+FFFD (the payload keeps its escape)."""
    if value is None:
        return None
    return valid_text(value if type(value) is str else compact_json(value))


def valid_text(text: str) -> str:
    """Text that UTF-8 can hold."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def compact_json(value: object) -> str:
    """JSON that any parser accepts."""
    try:
        return msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
        pass  # a lone surrogate, more than 64 bits, or nested deeply
    try:
        return valid_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except (ValueError, RecursionError):
        return TOO_DEEP


def parse_float(text: str) -> float | str:
    """A float; or text if it is too large for a float, because JSON cannot express infinity."""
    number = float(text)
    return number if math.isfinite(number) else text


def _int(text: str) -> int | str:
    """An integer; or text if it has more digits than Python converts."""
    try:
        return int(text)
    except ValueError:
        return text


_DECODE = msgspec.json.Decoder(float_hook=parse_float).decode
_IDENTIFIED = msgspec.json.Decoder(_Identified, float_hook=parse_float).decode
_LENIENT = json.JSONDecoder(parse_float=parse_float, parse_int=_int, parse_constant=str, strict=False).decode
"""Accepts text that msgspec refuses: lone surrogates, control characters in texts, NaN, numbers of any length."""

NOT_JSON = (msgspec.MsgspecError, ValueError, RecursionError)
"""Errors of the decoders."""

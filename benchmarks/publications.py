"""A generated library of any size: the same records on every machine and in every run, as fast as they can be sent.

Records come in blocks of 50. The text of `TEMPLATES` blocks is made once. A block is one of them with its number inserted wherever a real
library would not repeat itself: ids, identifiers, titles, file names, half of the authors. Pages are not stored.

Identifiers are as in real libraries: most are valid, written as people write them, one ISBN in thirty is invalid, and hardly any is that of
several records.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

BLOCK = 50
"""Records per block."""

TEMPLATES = 97
"""Different blocks of text, about 11 MB. The number is prime, so that it coincides with no other period of the data."""

MIN_BYTES, MAX_BYTES = 1500, 3000
"""Approximate size of a record's JSON in bytes."""

_MARK = "#######"
"""Placeholder of a block's number, in its length, so that rendering moves nothing."""

_BOOK_MARK = "~~~~~~~"
"""Placeholder of the same number in an ISBN: its last six digits, and a seventh that keeps every check digit valid."""

_FIRST = 1_000_000
"""Number of the first block: all numbers up to 400 million records have the same length."""

_SEED = 20261120
_VOCABULARY = 6000
_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeio"]
_KINDS = {"Book": "application/epub+zip", "Report": "text/plain", "Article": "application/pdf"}
_GIVEN = (
    "Ana",
    "Björn",
    "Chiara",
    "Dmitri",
    "Eleni",
    "Fatima",
    "Gustavo",
    "Hana",
    "Imre",
    "Jürgen",
    "Kasia",
    "Løve",
    "Mei",
    "Noor",
)


class Publications:
    """The first `count` records of the generated library, in the form of v2."""

    def __init__(self, count: int) -> None:
        self.count = count
        writer = _Writer(random.Random(_SEED))
        self._blocks = [[writer.record(place) for place in range(BLOCK)] for _block in range(TEMPLATES)]

    def json(self, start: int, stop: int) -> bytes:
        """The JSON of the records from `start` up to `stop`, with commas between them."""
        return b",".join(self._record(number) for number in range(start, min(stop, self.count)))

    def _record(self, number: int) -> bytes:
        block, place = divmod(number, BLOCK)
        template = self._blocks[block % TEMPLATES][place]
        return template.replace(_MARK.encode(), b"%07d" % (_FIRST + block)).replace(
            _BOOK_MARK.encode(), _book_number(block)
        )


def _json(record: dict[str, Any]) -> bytes:
    """JSON as the service writes it; text between two @ becomes a number."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).replace('"@', "").replace('@"', "").encode()


def _book_number(block: int) -> bytes:
    """Seven digits whose weighted sum in an ISBN-13 is a multiple of ten."""
    digits = f"{block % 1_000_000:06}"
    weighed = sum(map(int, digits[::2])) + 3 * sum(map(int, digits[1::2]))
    return f"{digits}{-weighed % 10}".encode()


def _checked(digits: str, weights: Sequence[int], modulus: int) -> str:
    """The digits with their check digit; placeholders have no weight."""
    weighed = sum(weight * int(digit) for weight, digit in zip(weights, digits, strict=True) if digit != _BOOK_MARK[0])
    return f"{digits}{'0123456789X'[-weighed % modulus]}"


class _Writer:
    """Writes records of 1.5 to 3 kB with a vocabulary as unevenly used as that of a language."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._words = ["".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _word in range(_VOCABULARY)]
        self._often = list(accumulate(1 / rank for rank in range(1, _VOCABULARY + 1)))

    def record(self, place: int) -> bytes:
        """The record at `place` of a block, with placeholders for the block's number."""
        chance, number = self._chance, f"{_MARK}{place:02}"
        kind, content_type = chance.choice(list(_KINDS.items()))
        record = {
            "id": f"@{number}@",
            "title": f"{self._text(chance.randint(3, 12)).capitalize()} {number}",
            "publishable_type": kind,
            "published_on": f"{chance.randint(1890, 2026)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}",
            "abstract": "",
            "authors": [self._author(number) for _author in range(chance.randint(1, 5))],
            "doi": self._doi(number) if chance.random() < 0.7 else None,
            "isbn": self._isbn(place) if kind == "Book" else None,
            "issn": self._issn() if kind == "Article" else None,
            "arxiv_id": f"{chance.randint(15, 26)}{chance.randint(1, 12):02}.{chance.randint(10000, 99999)}"
            if chance.random() < 0.04
            else None,
            "pmid": f"{_MARK}{place // 5}" if place % 5 == 0 else None,
            "import_state": chance.choice(("imported", "manual", None)),
            "categories": [
                {"id": category_id, "name": self._category(category_id)}
                for category_id in chance.sample(range(1, 400), chance.randint(0, 4))
            ],
            "cover": self._stored("cover.jpg", number, "image/jpeg") if chance.random() < 0.6 else None,
            "assets": [self._asset(number, part, content_type) for part in range(chance.choice((0, 1, 1, 2)))],
        }
        missing = chance.randint(MIN_BYTES, MAX_BYTES) - len(_json(record))
        record["abstract"] = self._text(max(40, missing // 6)).capitalize()
        return _json(record)

    def _doi(self, number: str) -> str:
        written = self._chance.choices(("10.5555/bench.{}", "https://doi.org/10.5555/bench.{}"), (3, 1))[0]
        return written.format(number)

    def _isbn(self, place: int) -> str:
        number = _checked(f"978{place // 10}{_BOOK_MARK}{place % 10}", (1, 3) * 6, 10)
        if self._chance.random() < 1 / 30:
            number = f"{number[:-1]}{(int(number[-1]) + 1) % 10}"
        hyphened = "-".join((number[:3], number[3], number[4:11], number[11], number[12]))
        return self._chance.choices((number, hyphened, f"{hyphened} (pbk.)"), (5, 4, 1))[0]

    def _issn(self) -> str:
        number = _checked(f"{self._chance.randint(0, 9_999_999):07}", range(8, 1, -1), 11)
        return f"{number[:4]}-{number[4:]}"

    def _text(self, words: int) -> str:
        return " ".join(self._chance.choices(self._words, cum_weights=self._often, k=words))

    def _author(self, number: str) -> dict[str, str]:
        if self._chance.random() < 0.1:
            return {"name": f"{self._text(3).title()} Institute", "type": "corporate"}
        distinct = f", {number}" if self._chance.random() < 0.5 else ""
        return {"name": f"{self._text(1).title()}, {self._chance.choice(_GIVEN)}{distinct}", "type": "person"}

    def _category(self, category: int) -> str:
        return f"{self._words[category]} -- {self._words[-category]}".title()

    def _asset(self, number: str, part: int, content_type: str) -> dict[str, Any]:
        address = f"https://files.example.org/assets/{number}{part}"
        return {
            "id": f"@{number}{part}@",
            "publication_id": f"@{number}@",
            "name": self._text(3).capitalize(),
            "content_type": content_type,
            "file": self._stored(f"part{part}.bin", f"{number}{part}", content_type),
            "url": address,
            "thumb_url": f"{address}/thumb",
            "preview_url": f"{address}/preview",
        }

    def _stored(self, filename: str, number: str, mime_type: str) -> dict[str, Any]:
        return {
            "id": f"{number}-{filename}",
            "storage": "store",
            "metadata": {
                "size": self._chance.randint(10_000, 9_000_000),
                "filename": f"{number}-{filename}",
                "mime_type": mime_type,
            },
        }

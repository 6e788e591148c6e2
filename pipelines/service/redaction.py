"""Takes secrets out of text that people or files will see, and makes text from outside safe for a message (I10).

There are two ways: a secret that was passed to `keep_secret` is found wherever it stands; a credential or a signed address is found by its
form. `redact` never raises, and redacting twice changes nothing more.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import quote, quote_plus

MASK = "[redacted]"

MIN_LENGTH = 8
"""Characters. A shorter secret is replaced only where it stands as a word: masking each `a` would make texts useless."""

MAX_CHARACTERS = 10_000
"""Characters of a text from outside that are searched and may appear in a message (I13)."""

_VALUE = (
    rf"""(?:{re.escape(MASK)}|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"'&,;<>)}}\]]+)"""  # quoted, or up to a blank
)

_PATTERNS = (
    # https://user:password@host
    re.compile(r"(://)[^/\s\"'<>]{1,1000}(?=@)"),
    # Authorization: Basic dXNlcjpwYXNz, as a header or in a dict or list of headers
    re.compile(r"(?i)(\b(?:proxy-)?authorization\b(?:[\"']?\s*[:=]\s*|[\"']\s*,\s*)(?:b?[\"'])?)[^\r\n\"']+"),
    # the same without the header's name; "Basic authentication" is left alone
    re.compile(r"\b((?i:basic|bearer)\s+)(?=[a-z._~+/-]*[0-9A-Z_~+/]|[a-z.-]{16})[A-Za-z0-9._~+/=-]{6,}"),
    # Cookie: and Set-Cookie: likewise
    re.compile(r"(?i)(\b(?:set-)?cookie\b[\"']\s*[:,]\s*b?[\"'])[^\r\n\"']+"),
    re.compile(r"(?im)(^[ \t]*(?:set-)?cookie:[ \t]*)[^\r\n]+"),
    re.compile(rf"(?i)(_library_session\s*[=:]\s*){_VALUE}"),
    # the query of a signed address: it gives the right to fetch the file
    re.compile(
        r"(?i)([?&;](?:x-(?:amz|goog|oss)-[a-z-]+|signature|sig|token|expires|key-pair-id|policy|code)=)[^&\s\"'<>]+"
    ),
    # form fields and JSON members of the token endpoint
    re.compile(
        r"(?i)(\b(?:access_token|refresh_token|id_token|client_secret|code_verifier|password)[\"']?\s*[=:]\s*)" + _VALUE
    ),
)
"""What stands before a secret, as group 1, and the secret."""

_WORDS = (
    *("authorization", "basic", "bearer", "cookie", "_library_session"),
    *("_token", "client_secret", "code_verifier", "password"),
)
"""Every text that a pattern matches has one of these words, = or @. Hardly any other text has, and the patterns take far longer."""

_LIKE_ASCII = str.maketrans("ıİſ\u212a", "iisk")
"""What `(?i)` takes for a letter of those words, and `lower` does not."""

_lock = threading.Lock()
_kept: frozenset[str] = frozenset()


def keep_secret(*secrets: str) -> None:
    """Remove these secrets from every text that `redact` gets from now on, in any spelling: plain, in a URL, in JSON, in Base64."""
    global _kept  # noqa: PLW0603  the code that writes a message cannot know all secrets of the process
    with _lock:
        _kept |= {form for secret in secrets if secret for form in _spellings(secret)}


def redact(text: str, *secrets: str) -> str:
    """Returns `text` without `secrets`, those of `keep_secret`, and anything that looks like a credential or a signed address."""
    all_secrets = _kept.union(secrets) - {""} if secrets else _kept
    if not _may_match(text) and not _has_one(text, all_secrets):
        return text
    finder = _finder_of(all_secrets)
    while (masked := _masked(text, finder)) != text:  # this ends: a mask never grows, and the rest shrinks
        text = masked
    return text


def outside_text(text: object, most: int = 300) -> str:
    """Returns text from outside, safe for a message: no secret, no control character, one line, at most `most` characters."""
    plain = " ".join(redact(str(text)[:MAX_CHARACTERS]).split())
    printable = plain[:most]
    if not printable.isprintable():  # hardly ever, and the other way takes most of the time of a report
        printable = "".join(char if char.isprintable() else repr(char)[1:-1] for char in printable)
    return printable if len(plain) <= most else f"{printable}…"


def _may_match(text: str) -> bool:
    """Whether one of the patterns may match."""
    if "=" in text or "@" in text:
        return True
    lower = (text if text.isascii() else text.translate(_LIKE_ASCII)).lower()
    return _has_one(lower, _WORDS)


def _has_one(text: str, words: Iterable[str]) -> bool:
    for word in words:  # noqa: SIM110  `any` takes twice as long, for each text of a report
        if word in text:
            return True
    return False


def _masked(text: str, finder: re.Pattern[str]) -> str:
    if _may_match(text):  # a secret may be an ordinary word of many texts
        for pattern in _PATTERNS:
            text = pattern.sub(rf"\1{MASK}", text)
    # A mask itself is not searched: a secret may be a part of that word.
    return MASK.join(finder.sub(MASK, part) for part in text.split(MASK))


@lru_cache(1)
def _finder_of(secrets: frozenset[str]) -> re.Pattern[str]:
    """The pattern that finds them; of two that begin alike, the longer one."""
    return re.compile("|".join(map(_pattern_for, sorted(secrets, key=len, reverse=True))) or r"(?!)")


def _pattern_for(secret: str) -> str:
    pattern = re.escape(secret)
    return pattern if len(secret) >= MIN_LENGTH else rf"(?<!\w){pattern}(?!\w)"


def _spellings(secret: str) -> Iterator[str]:
    """Yields the spellings of a secret in texts of servers and libraries."""
    as_bytes = secret.encode(errors="surrogateescape")  # an environment variable need not be UTF-8
    yield from (secret, quote(as_bytes, safe=""), quote_plus(as_bytes), json.dumps(secret)[1:-1], repr(secret)[1:-1])
    yield base64.b64encode(as_bytes).decode()

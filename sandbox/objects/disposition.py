"""``Content-Disposition`` for object stores and browsers (RFC 6266)."""

from __future__ import annotations

import re
from urllib.parse import quote

_LITERAL = re.compile(r"[^ !#$&+.^_`|~0-9A-Za-z-]", re.ASCII)


def inline(filename: str) -> str:
    """Returns the disposition of a file to display: its name in ASCII, and in UTF-8."""
    plain = _LITERAL.sub("_", filename)
    return f"inline; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='', errors='replace')}"

"""``Content-Disposition`` as object stores and browsers understand it (RFC 6266)."""

from __future__ import annotations

import re
from urllib.parse import quote

_LITERAL = re.compile(r"[^ !#$&+.^_`|~0-9A-Za-z-]", re.ASCII)


def inline(filename: str) -> str:
    """To be shown, under this name: once for those who read ASCII only, and once as it is."""
    plain = _LITERAL.sub("_", filename)
    return f"inline; filename=\"{plain}\"; filename*=UTF-8''{quote(filename, safe='', errors='replace')}"

"""Reads a file with other shapes, and the description that it may name."""

from __future__ import annotations

import json
from pathlib import Path

from sandbox.shapes.version import service_of


def read_file(path: Path) -> str:
    """Returns the shapes of a file as a text for ``Settings.shapes``; raises ``ApiError`` if it is invalid.

    ``{"description": {"file": NAME}}`` becomes the text of that file, which is beside this one.
    """
    text = path.read_text("utf-8")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    match content:
        case {"description": {"file": str(name)} as told} if len(told) == 1:
            text = json.dumps({**content, "description": {"text": path.with_name(name).read_text("utf-8")}})
    service_of(text or "{")
    return text

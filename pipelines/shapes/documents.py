"""Reads a YAML or JSON document from outside into plain values: bounded in size, depth and number of nodes (I13)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec
import yaml

MAX_BYTES = 1024 * 1024
"""Most bytes of a document; the sandbox's description has 60 kB."""

MAX_NODES = 100_000
"""Most events of a YAML document: its values, and the ends of those that have others in them."""

MAX_DEPTH = 60
"""Deepest nesting of a YAML document: libyaml ends the process at a very deep one."""

_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class UnreadableDocumentError(ValueError):
    """A document that is no YAML, or beyond the limits; the message says which."""


def read_document(content: bytes) -> Any:
    """The document as dictionaries, lists and scalars. Those of YAML are texts: nothing is guessed from how they look.

    An alias is the value of its anchor, not a copy. Raises `UnreadableDocumentError`.
    """
    if len(content) > MAX_BYTES:
        raise UnreadableDocumentError(f"it has {len(content):,} bytes; at most {MAX_BYTES:,} are read")
    with suppress(msgspec.MsgspecError, ValueError, RecursionError):
        return msgspec.json.decode(content)
    try:
        _check(content)
        return yaml.load(content, Loader=_Loader)  # noqa: S506  it makes texts, lists and dictionaries only
    except (yaml.YAMLError, UnicodeError) as error:
        raise UnreadableDocumentError(f"it is no YAML ({str(error).partition(chr(10))[0][:100]})") from None


def _check(content: bytes) -> None:
    """Raise `UnreadableDocumentError` for a document that would take too long, or too deep a stack, to put together."""
    depth = 0
    for number, event in enumerate(yaml.parse(content, Loader=_Loader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise UnreadableDocumentError(f"it is nested more than {MAX_DEPTH} deep")
        if number > MAX_NODES:
            raise UnreadableDocumentError(f"it has more than {MAX_NODES:,} values")

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
        return _put_together(content)
    except UnreadableDocumentError:
        raise
    except (yaml.YAMLError, ValueError, TypeError, KeyError) as error:
        raise UnreadableDocumentError(f"it is no YAML ({str(error).partition(chr(10))[0][:100]})") from None


def _put_together(content: bytes) -> Any:
    """The value of a YAML document, event by event: it ends before it takes too long, or too deep a stack."""
    values: list[list[Any]] = [[]]  # those of the collections that are not at their end, outermost first
    anchors, anchored = list[str | None](), dict[str | None, Any]()
    for number, event in enumerate(yaml.parse(content, Loader=_Loader)):
        if number > MAX_NODES:
            raise UnreadableDocumentError(f"it has more than {MAX_NODES:,} values")
        if isinstance(event, yaml.CollectionStartEvent):
            values.append([])
            anchors.append(event.anchor)
            if len(anchors) > MAX_DEPTH:
                raise UnreadableDocumentError(f"it is nested more than {MAX_DEPTH} deep")
            continue
        if isinstance(event, yaml.AliasEvent):
            values[-1].append(anchored[event.anchor])
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            value: Any = values.pop()
            anchor = anchors.pop()
            if isinstance(event, yaml.MappingEndEvent):
                value = dict(zip(value[::2], value[1::2], strict=True))
        elif isinstance(event, yaml.ScalarEvent):
            value, anchor = event.value, event.anchor
        else:
            continue
        values[-1].append(value)
        anchored[anchor] = value
    return values[0][0] if len(values[0]) == 1 else None

"""Reads a YAML or JSON document from outside into plain values: bounded in size, depth and number of nodes (I13).

YAML is read event by event. libyaml's own composer ends the process at a deep nesting, and takes minutes for some others.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec
import yaml
from yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

MAX_BYTES = 1024 * 1024
"""Most bytes of a document; the sandbox's description has 60 kB."""

MAX_NODES = 100_000
"""Most values of a YAML document."""

MAX_DEPTH = 60
"""Deepest nesting of a YAML document."""

_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class UnreadableDocumentError(ValueError):
    """A document that is no YAML, or beyond the limits; the message says which."""


class _Container(Protocol):
    value: Any

    def add(self, value: Any) -> None: ...


class _List:
    def __init__(self) -> None:
        self.value: list[Any] = []

    def add(self, value: Any) -> None:
        self.value.append(value)


class _Mapping:
    """Keys and values come by turns. A key that is no text is left out with its value."""

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}
        self._key: Any = None
        self._has_key = False

    def add(self, value: Any) -> None:
        if not self._has_key:
            self._key, self._has_key = value, True
            return
        if isinstance(self._key, str):
            self.value[self._key] = value
        self._has_key = False


def read_document(content: bytes) -> Any:
    """The document as dictionaries, lists and scalars. Those of YAML are texts: nothing is guessed from how they look.

    Raises `UnreadableDocumentError`.
    """
    if len(content) > MAX_BYTES:
        raise UnreadableDocumentError(f"it has {len(content):,} bytes; at most {MAX_BYTES:,} are read")
    if content.lstrip()[:1] == b"{":
        try:
            return msgspec.json.decode(content)
        except RecursionError:
            raise UnreadableDocumentError("it is nested too deeply") from None
        except (msgspec.MsgspecError, ValueError):
            pass  # YAML may begin like JSON
    loader = _Loader(content)
    try:
        return _composed(loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, UnreadableDocumentError):
            raise
        raise UnreadableDocumentError(f"it is no YAML ({_first_line(error)})") from None
    finally:
        loader.dispose()


def _composed(loader: Any) -> Any:
    """The value of the first document. An alias is the value of its anchor itself, not a copy."""
    root = _List()
    open_ones: list[_Container] = [root]
    anchors: dict[str, Any] = {}
    nodes = 0
    while loader.check_event():
        event = loader.get_event()
        nodes += 1
        if nodes > MAX_NODES:
            raise UnreadableDocumentError(f"it has more than {MAX_NODES:,} values")
        if isinstance(event, ScalarEvent):
            _place(open_ones[-1], event.anchor, event.value, anchors)
        elif isinstance(event, AliasEvent):
            open_ones[-1].add(anchors.get(event.anchor or ""))
        elif isinstance(event, SequenceStartEvent | MappingStartEvent):
            if len(open_ones) > MAX_DEPTH:
                raise UnreadableDocumentError(f"it is nested more than {MAX_DEPTH} deep")
            begun: _Container = _List() if isinstance(event, SequenceStartEvent) else _Mapping()
            _place(open_ones[-1], event.anchor, begun.value, anchors)
            open_ones.append(begun)
        elif isinstance(event, SequenceEndEvent | MappingEndEvent):
            open_ones.pop()
        elif root.value:
            break  # the end of the first document
    return root.value[0] if root.value else None


def _place(where: _Container, anchor: str | None, value: Any, anchors: dict[str, Any]) -> None:
    if anchor is not None:
        anchors[anchor] = value
    where.add(value)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:100]

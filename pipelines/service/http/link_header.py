"""Reads `Link` headers as RFC 8288 defines them: quoted strings, several relations, parameters in any case and order, several lines.

The RFC's own algorithm (its appendix B.2) gives up at the first mistake. This parser goes on at the next comma and reports that it left
something out, so that the caller does not mistake a garbled header for the last page. Each character is looked at a bounded number of
times, however hostile the header is (I13).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

_TARGET = re.compile(r"<([^<>]*+)>")
_PARAMETER = re.compile(
    r"""
    [ \t]*+ ; [ \t]*+ ([^ \t=;,"]*+) [ \t]*+    # the name
    (?: = [ \t]*+ (?:
        "((?:[^"\\]++|\\.)*+) ("?)              # a quoted string, and its end
      | ([^";,]*+)                              # a token
    ))?
    """,
    re.VERBOSE | re.DOTALL,
)
_BETWEEN = re.compile(r"[ \t,]*+")
_END = re.compile(r"[ \t]*+(?:,|\Z)")
_REST = re.compile(r'(?:[^",]++|"(?:[^"\\]++|\\.)*+(?:"|\\?\Z))*+', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Link(NamedTuple):
    """One link of a header: its target as it was sent, and its parameters in order, names in lower case."""

    target: str
    parameters: tuple[tuple[str, str], ...]

    def parameter(self, name: str) -> str | None:
        """Return the value of the first parameter with this name: later ones do not count (RFC 8288, 3.3); `None` without one."""
        for parameter, value in self.parameters:
            if parameter == name:
                return value
        return None

    @property
    def relations(self) -> list[str]:
        """The relation types in lower case. An extension relation is an address, and never equals a registered name."""
        return [each for each in (self.parameter("rel") or "").lower().replace("\t", " ").split(" ") if each]


@dataclass(frozen=True)
class LinkHeader:
    """The links of a response, in order. `garbled`: some part of the header was no link and was left out."""

    links: tuple[Link, ...] = ()
    garbled: bool = False


def parse_links(lines: Iterable[str]) -> LinkHeader:
    """Returns the links of the `Link` header lines of one response. Never raises."""
    parsed = [link for line in lines for link in _parse_line(line)]
    return LinkHeader(tuple(link for link in parsed if link is not None), garbled=None in parsed)


def _parse_line(line: str) -> Iterator[Link | None]:
    """Yields the links of one line, and `None` for each part that is no link."""
    position = 0
    while (position := _matched(_BETWEEN, line, position).end()) < len(line):
        target = _TARGET.match(line, position)
        if target is None:
            yield None
            position = _matched(_REST, line, position).end()
            continue
        parameters, position, whole = _parse_parameters(line, target.end())
        yield Link(target[1].strip(), tuple(parameters))
        if not whole or not _END.match(line, position):
            yield None
            position = _matched(_REST, line, position).end()


def _parse_parameters(line: str, position: int) -> tuple[list[tuple[str, str]], int, bool]:
    """Returns the parameters from `position` on, their end, and whether every quoted string was closed."""
    parameters: list[tuple[str, str]] = []
    while (match := _PARAMETER.match(line, position)) is not None:
        name, quoted, closed, token = match.groups()
        position = match.end()
        if quoted is not None and not closed:
            return parameters, len(line), False
        value = token.strip() if token is not None else _ESCAPE.sub(r"\1", quoted or "")
        if name:
            parameters.append((name.lower(), value))
    return parameters, position, True


def _matched(pattern: re.Pattern[str], line: str, position: int) -> re.Match[str]:
    """Matches a pattern that also matches nothing."""
    match = pattern.match(line, position)
    assert match is not None  # noqa: S101
    return match

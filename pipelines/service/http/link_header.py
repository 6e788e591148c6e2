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

_PART = r"""
    [ \t]*+ ; [ \t]*+ ([^ \t=;,"]*+) [ \t]*+                # the name
    (?: = [ \t]*+ ("(?:[^"\\]++|\\.)*+"|[^";,]*+) )?        # a quoted string or a token
"""
_PARAMETER = re.compile(_PART, re.VERBOSE | re.DOTALL)
_ITEM = re.compile(
    rf"""
    [ \t,]*+
    (?: <(?P<target>[^<>]*+)> (?P<parameters>(?:{_PART})*+) [ \t]*+ )?
    (?P<rest> (?: [^",]++ | "(?:[^"\\]++|\\.)*+(?:"|\\?\Z) )*+ )         # up to the next comma outside of quotes
    """,
    re.VERBOSE | re.DOTALL,
)
"""A link, and what follows it but belongs to none."""

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Link(NamedTuple):
    """One link of a header: its target as it was sent, and its parameters in order, names in lower case."""

    target: str
    parameters: tuple[tuple[str, str], ...]

    def parameter(self, name: str) -> str | None:
        """Return the value of the first parameter with this name: later ones do not count (RFC 8288, 3.3); `None` without one."""
        return next((value for parameter, value in self.parameters if parameter == name), None)

    @property
    def relations(self) -> list[str]:
        """The relation types in lower case. An extension relation is an address, and never equals a registered name."""
        return (self.parameter("rel") or "").lower().split()


@dataclass(frozen=True)
class LinkHeader:
    """The links of a response, in order. `garbled`: some part of the header was no link and was left out."""

    links: tuple[Link, ...] = ()
    garbled: bool = False


def parse_links(lines: Iterable[str]) -> LinkHeader:
    """Returns the links of the `Link` header lines of one response. Never raises."""
    links, garbled = list[Link](), False
    for line in lines:
        for item in _ITEM.finditer(line):
            if item["target"] is not None:
                links.append(Link(item["target"].strip(), tuple(_parameters(item["parameters"]))))
            garbled = garbled or item["rest"] != ""
    return LinkHeader(tuple(links), garbled)


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    for name, value in _PARAMETER.findall(text):
        if name:
            yield name.lower(), _ESCAPE.sub(r"\1", value[1:-1]) if value[:1] == '"' else value.strip()

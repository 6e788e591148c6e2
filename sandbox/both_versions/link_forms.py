"""The forms in which RFC 8288 lets a service write the same links. Each form also sets a trap for a client that does not parse.

A trap is an address that a hasty client takes for the next page: a page far beyond the last one, where it would believe that the list has
ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link to a page: its relation and its address."""

    rel: str
    address: str


def _plain(links: Sequence[PageLink], trap: str) -> list[str]:  # noqa: ARG001  # every form has one signature
    return [", ".join(f'<{link.address}>; rel="{link.rel}"' for link in links)]


def _quoted(links: Sequence[PageLink], trap: str) -> list[str]:
    """Quoted strings with every delimiter, and with escaped quotes, before the relation."""
    title = rf'title="A \"page\", <{trap}>; rel=next; rel=\"next\", more \\"'
    return [", ".join(f'<{link.address}>; {title}; rel="{link.rel}"' for link in links)]


def _several(links: Sequence[PageLink], trap: str) -> list[str]:  # noqa: ARG001
    """One link for each address, with all its relations."""
    relations: dict[str, list[str]] = {}
    for link in links:
        relations.setdefault(link.address, []).append(link.rel)
    return [", ".join(f'<{address}>; rel="{" ".join(names)}"' for address, names in relations.items())]


def _extension(links: Sequence[PageLink], trap: str) -> list[str]:
    """Extension relations, which are addresses, first and beside the registered ones."""
    extensions = f'<{trap}>; rel="https://relations.example/next", <{trap}>; rel="https://relations.example/#next page"'
    named = (f'<{link.address}>; rel="https://relations.example/{link.rel} {link.rel}"' for link in links)
    return [", ".join([extensions, *named])]


def _lines(links: Sequence[PageLink], trap: str) -> list[str]:
    """A header line for each link, and others about something else."""
    return [f"<{trap}>; rel=preload; as=style", *(line for link in links for line in _plain([link], trap)), ""]


def _parameters(links: Sequence[PageLink], trap: str) -> list[str]:  # noqa: ARG001
    """Parameters in any case and order, without values, with blanks and tabs; a second `rel`, which does not count."""
    return [
        " ,, ".join(
            f'<{link.address}>\t;crossorigin ; TYPE = "text/html";\tReL\t=\t{link.rel.upper()} ; rel="next prev"'
            for link in links
        )
    ]


def _other_ends(links: Sequence[PageLink], trap: str) -> list[str]:
    """Links that start elsewhere (`anchor`) or point backwards (`rev`), before the real ones."""
    elsewhere = f'<{trap}>; rel=next; anchor="https://elsewhere.example/", <{trap}>; rel="next"; anchor="#part", <{trap}>; rev=next'
    return [", ".join([elsewhere, *(f'<{link.address}>; rel={link.rel}; anchor=""' for link in links)])]


LINK_FORMS: Mapping[str, Callable[[Sequence[PageLink], str], list[str]]] = {
    "plain": _plain,
    "quoted": _quoted,
    "several": _several,
    "extension": _extension,
    "lines": _lines,
    "parameters": _parameters,
    "other_ends": _other_ends,
}
"""Name of a form → the header lines for some links and a trap."""

"""Authorities that the service makes by itself, of the authors of a publication that is written.

Manners: ``none``; ``matched``: for each author whose name no authority of the kind has; ``own``: it looks only at authorities that it made
itself, so that one that was created over the API gets a twin of the same name. Names are compared exactly.
"""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.state.records import Document, Records


def make_authorities(authorities: Records, authors: Iterable[Document], manner: str) -> None:
    """Makes the authorities that these authors lack, in their order."""
    if manner == "none":
        return
    existing = {
        (authority["name"], authority["kind"])
        for authority in authorities.all()
        if manner == "matched" or authority.get("of_author")
    }
    names_and_kinds = dict.fromkeys((author["name"], author["type"]) for author in authors)
    authorities.add(
        [
            {"name": name, "kind": kind, "variants": [], "of_author": True}
            for name, kind in names_and_kinds
            if (name, kind) not in existing
        ]
    )

"""Publications of version 3: a field of a payload replaces the stored one, a list as a whole.

Files are the exception: they are added, and other endpoints remove them.
"""

from __future__ import annotations

from collections.abc import Callable

from sandbox.both_versions.files import attached_file
from sandbox.both_versions.publications import Publications, author, common_changes, file_entries, publication_record
from sandbox.endpoints import Call
from sandbox.state.records import EXTRA, Document


class _Publications(Publications):
    def record(self, document: Document, call: Call) -> Document:
        """Returns the record, with every identifier in its original order."""
        references = {name: document[name] for name in ("contributor", "organization")}
        record = publication_record(document, call, {"identifiers": document["identifiers"]}, references)
        return {**record, EXTRA: document[EXTRA]}

    def edited(self, call: Call) -> Callable[[Document], Document]:
        """Returns how a payload changes a document."""
        payload, changes = call.payload, common_changes(call)
        assets = [attached_file(entry, call) for entry in file_entries(call)]
        if "identifiers" in payload:
            changes["identifiers"] = [
                {name: entry[name] for name in ("type", "value")} for entry in payload["identifiers"]
            ]
        if "categories" in payload:
            changes["categories"] = payload["categories"]
        if "authors" in payload:
            changes["authors"] = [author(entry) for entry in payload["authors"]]

        def change(before: Document) -> Document:
            extra = {**(before[EXTRA] or {}), **payload.get(EXTRA, {})}
            return {**before, **changes, "assets": [*before["assets"], *assets], EXTRA: extra}

        return change


PUBLICATIONS = _Publications(
    key="publications",
    name="Publication",
    noun="publication",
    path="/publications",
    actions=("list", "get", "create", "change", "delete"),
    docs={
        "list": "Every filter has to match. Ordered by id.",
        "create": (
            "File content in `assets` or `assets_attributes` needs the scope `assets:write` too. "
            "404 for an unknown contributor, category, organization or uploaded file."
        ),
        "change": "A field of the payload replaces the stored one, a list as a whole; files are added. The rest is as in a create.",
        "delete": "Its assets are deleted, too.",
    },
)

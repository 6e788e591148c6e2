"""The way back that I7 promises: a record of version 2 from its form and its residue."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from pipelines.publication_fields import IDENTIFIER_LIST, PUBLICATION_KEYS, WRITTEN
from pipelines.records.forms import Json, form_of
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.identifiers.verdicts import GOOD
from tests.records.identifiers.conversion import to_v2


def v2_of(
    fields: Mapping[str, Any], residue: Mapping[str, Any], *, sent: AbstractSet[str] = GOOD, first_day: bool = False
) -> Json:
    """Rebuilds the record of version 2 from a form and its residue. `sent`, `first_day`: as for `form_of`.

    The residue of a field counts only while the form still has the value that was made from it, so a later change in version 3 stays. A
    field that the record did not have is null, or an empty list.
    """
    record: Json = dict.fromkeys(PUBLICATION_KEYS) | {"authors": [], "categories": [], "assets": []}
    record |= {key: value for key, value in fields.items() if key != IDENTIFIER_LIST}
    raw = {field: residue[field] for field, _kind in STANDARD_KINDS.fields if field in residue}
    identifiers = to_v2(fields.get(IDENTIFIER_LIST, ()), raw, verdicts=sent)
    record |= {key: value for key, value in identifiers.items() if key not in PUBLICATION_KEYS}
    for key, value in residue.items():
        if key not in raw and key != IDENTIFIER_LIST:
            made = fields.get(key) if key not in WRITTEN else form_of({key: value}, first_day=first_day).fields.get(key)
            record[key] = value if made == fields.get(key) else record[key]
    return record

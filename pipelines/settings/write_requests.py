"""How a library takes writes that nothing describes: `[tenants.NAME.requests.RESOURCE]`, and `requests` in a mapping file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints

from pipelines.inventory import RESOURCES

_Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]*$")]
_Path = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_{}-]+(/[A-Za-z0-9_{}-]+)*$")]
"""A path below the address of the API."""


class RequestForm(BaseModel):
    """The form of the writes of one resource. What is not set is as the target's description has it, else as the document."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: Literal["PATCH", "PUT"] | None = None
    """The method of a change. A PUT sends the whole record."""
    wrapped_in: _Key | None = None
    """The key around a record in a body; empty for none."""
    record_type: str | None = None
    """The `type` of its records in JSON:API, which a change names with the id."""
    create: _Path | None = None
    """The path to which new records are sent."""
    merge: _Path | None = None
    """The path of a merge; `{id}` is the record that goes."""
    merge_method: Literal["PATCH", "POST", "PUT"] | None = None
    merge_field: Annotated[_Key, StringConstraints(min_length=1)] | None = None
    """The field with the id of the record that remains."""
    answer_id: _Path | None = None
    """Where the answer to a creation has the id of the new record, such as `result/number`."""
    presign: _Path | None = None
    """Of publications: the path that signs the form of the upload of an attached file."""
    cover_presign: _Path | None = None
    """The same of a cover."""


def request_problem(tables: Mapping[str, RequestForm]) -> str | None:
    """What is wrong with such tables; None if nothing is."""
    if tables.get("publications", RequestForm()).method == "PUT":
        return 'publications.method = "PUT", but publications are changed by PATCH (service.md#publications): remove it'
    if signing := [
        name for name, form in tables.items() if name != "publications" and (form.presign or form.cover_presign)
    ]:
        return f"{', '.join(signing)}: presign and cover_presign are those of publications, which have the files"
    unknown = [name for name in tables if name not in RESOURCES]
    return f"{', '.join(unknown)}: not a resource; those are {', '.join(RESOURCES)}" if unknown else None

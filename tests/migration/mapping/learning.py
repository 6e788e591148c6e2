"""What is learned of two libraries, and the mapping file of it: records, a description of the target, and what is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.migration.mapping.learned_types import TypeLearner
from pipelines.migration.mapping.mapping_file import MappingFile
from pipelines.migration.mapping.proposal import propose, proposed_text
from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.model.resource_types import RESOURCE_TYPES, ResourceType
from pipelines.migration.model.target_reading import RecordListing
from pipelines.migration.plan.mapped_references import mapped
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.paths import nested
from pipelines.shapes.model import FieldSchema, PayloadSchema, ResourceSchema

Json = dict[str, Any]


def listing(folder: Path, name: str, records: Sequence[Json]) -> RecordListing:
    """The raw table of some records."""
    columns = {
        "id": pa.array([record["id"] for record in records], pa.int64()),
        "payload": [json.dumps(record) for record in records],
    }
    pq.write_table(pa.table(columns), folder / name)
    return RecordListing(folder / name)


def of_type(types: str = "", **options: Any) -> FieldSchema:
    """A described field of these types; of any without them."""
    return FieldSchema(types.split(), **options)


def takes(*demanded: str, **fields: str | FieldSchema) -> ResourceSchema:
    """A description of what is taken: field → its types, or all that is said of it."""
    described = {name: of_type(value) if isinstance(value, str) else value for name, value in fields.items()}
    return ResourceSchema(create=PayloadSchema(described, [*demanded]))


def learner_of(
    folder: Path,
    records: Sequence[Json],
    schema: ResourceSchema | None = None,
    resource: str = "tasks",
    read: Iterable[str] = (),
    *,
    target: Sequence[Json] = (),
) -> TypeLearner:
    """What is learned of these records, beside locations 1 and 2, and records 5 and 6 of the resources that are read, too."""
    source = listing(folder, resource, records)
    library = {resource: source, "locations": listing(folder, "locations", [{"id": 1}, {"id": 2}])}
    library |= {name: listing(folder, name, [{"id": 5, "name": "A"}, {"id": 6, "name": "B"}]) for name in read}
    return learner_between(resource, source, listing(folder, "target", target), library, schema)


def learner_between(
    resource: str,
    source: RecordListing,
    target: RecordListing,
    library: dict[str, RecordListing],
    schema: ResourceSchema | None = None,
    **options: Any,
) -> TypeLearner:
    """What is learned of a resource in a library that has all of `library`."""
    return TypeLearner(
        RESOURCE_TYPES.get(resource, publication_type(STANDARD_KINDS)),
        source,
        target,
        schema or ResourceSchema(),
        **{
            "posted": {},
            "same_service": False,
            "unread": (),
            "asks_all": True,
            "read": library,
            "library": lambda: library,
            **options,
        },
    )


def text_of(learners: Iterable[TypeLearner], earlier: str | None = None) -> str:
    """The mapping file of these resources."""
    file = None if earlier is None else file_of(earlier)
    proposals = filter(None, [propose(learner, "new") for learner in learners])
    return proposed_text(file, proposals, "old", "new")


def file_of(text: str) -> MappingFile:
    return MappingFile(Path("mappings/old-to-new.toml"), text)


Lead = Callable[[str, int], tuple[bool, int | None]]
"""Resource and id → whether it will be moved, and its id in the target."""


def body_of(learned: ResourceType, record: Json, lead: Lead = lambda _resource, _number: (True, 9)) -> Json:
    """What is sent of a record whose references lead so."""
    return body_of_values(learned, mapped(learned, learned.form(record), lead).values)


def body_of_values(learned: ResourceType, values: Json) -> Json:
    """What an apply sends of these values."""
    fields = learned.of_target.fields
    payloads = [fields[name].payload(name, value) for name, value in values.items()]
    return nested({path: value for payload in payloads for path, value in payload.items()})

"""Files that records name: all readers find the same ones, and the content key distinguishes contents."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given

from pipelines.records.files import FileReference, addressed_files, asset_reference, file_references
from pipelines.records.stager import Stager
from tests.records.json_values import records, text_of

STORED = {"id": "f1", "storage": "store", "metadata": {"size": 7, "filename": "a.pdf", "mime_type": "application/pdf"}}
ADDRESS = "https://storage.example/a.pdf?X-Amz-Signature=abc"


def publication(**members: Any) -> dict[str, Any]:
    """A publication with an asset and a cover, or other ones."""
    asset = {
        "id": 5,
        "publication_id": 1,
        "name": "A",
        "content_type": "application/pdf",
        "file": STORED,
        "url": ADDRESS,
    }
    return {"id": 1, "assets": [asset], "cover": {**STORED, "id": "c1", "url": ADDRESS}, **members}


def references(record: Any) -> list[FileReference]:
    return file_references(json.dumps(record).encode())


def staged_keys(payload: bytes, stager: Any) -> list[tuple[Any, ...]]:
    """What the staged table says of a record's files."""
    batch = stager([payload], [hashlib.sha256(payload).hexdigest()]).tables["publication_files"]
    columns = ("content_key", "kind", "publication_id", "asset_id", "has_url")
    return [tuple(row[name] for name in columns) for row in batch.to_pylist()]


def listed_keys(payload: bytes) -> list[tuple[Any, ...]]:
    return [
        (
            reference.content_key,
            reference.kind,
            reference.publication_id,
            reference.asset_id,
            reference.address is not None,
        )
        for reference in file_references(payload)
    ]


@pytest.mark.long
@given(records)
def test_the_table_and_the_work_list_name_the_same_files(value: Any) -> None:
    """Whatever a record holds: both ways of staging and the reader of addresses agree on each file and its content key."""
    payload = text_of(value).encode()
    assert listed_keys(payload) == staged_keys(payload, Stager("publications"))


def test_an_address_is_not_shown() -> None:
    """Whoever has a signed address may fetch the file (I10)."""
    [cover, asset] = references(publication())
    assert (cover.address, asset.address) == (ADDRESS, ADDRESS)
    assert "Signature" not in repr(asset)


@pytest.mark.parametrize(
    "urls", [{"small": "https://x/s", "original": ADDRESS}, {"small": "https://x/s"}, [ADDRESS], 5]
)
def test_a_cover_that_has_addresses_for_several_sizes(urls: object) -> None:
    """The document shows a cover without its address: the original's is taken, and no thumbnail's for it."""
    record = publication(cover={**STORED, "id": "c1", "urls": urls})
    expected = ADDRESS if isinstance(urls, dict) and "original" in urls else None
    assert references(record)[0].address == expected
    covers = [file for file in addressed_files([json.dumps(record).encode()]) if file.kind == "cover"]
    assert len(covers) == (expected is not None)


def test_an_asset_alone_is_the_same_file() -> None:
    """An asset that is asked for again has the key that the listing gave it."""
    record = publication()
    [_cover, asset] = references(record)
    assert asset_reference(json.dumps(record["assets"][0]).encode(), 1) == asset
    assert asset_reference(b"[]", 1) is None


SIGNED_ANEW = ADDRESS.replace("abc", "def")
UNNAMED = {"metadata": STORED["metadata"]}
"""A file without an id of its own."""


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        ({}, {"url": SIGNED_ANEW, "name": "B", "id": 6}, True),
        ({}, {"url": None}, True),
        ({}, {"file": {**STORED, "id": "f2"}}, False),
        ({}, {"file": {**STORED, "metadata": {"size": 8}}}, False),
        ({}, {"file": {**STORED, "storage": "other"}}, False),
        ({"file": UNNAMED}, {"file": UNNAMED, "url": SIGNED_ANEW}, True),
        ({"file": UNNAMED}, {"file": {"metadata": {**STORED["metadata"], "size": 8}}}, False),  # type: ignore[dict-item]
        ({"file": UNNAMED}, {"file": {"metadata": {**STORED["metadata"], "filename": "b.pdf"}}}, False),  # type: ignore[dict-item]
        ({"file": UNNAMED}, {"file": UNNAMED, "url": "https://storage.example/b.pdf"}, False),
        ({"file": UNNAMED}, {"file": UNNAMED, "id": 6}, False),
    ],
)
def test_a_content_key_is_the_same_while_the_content_is(
    before: dict[str, Any], after: dict[str, Any], is_same: bool
) -> None:
    """What the file's own id names is one content; without one, all that is known counts but the signature in the address."""
    assert (key_of(**before) == key_of(**after)) is is_same


@pytest.mark.parametrize(
    ("file", "is_known"), [(None, False), ({"id": ""}, False), ({"id": "f"}, True), (UNNAMED, True)]
)
def test_without_id_and_size_the_storage_has_to_be_asked(file: object, is_known: bool) -> None:
    assert key_of(file=file).startswith("?") is not is_known


def key_of(**changes: Any) -> str:
    """Content key of the one asset, with other members."""
    [asset] = references({"id": 1, "assets": [{**publication()["assets"][0], **changes}]})
    return asset.content_key

"""Downloads from the `url` of covers and assets."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from typing import Any

import httpx
import pytest

from tests.sandbox.conftest import FakeClock, Service

Record = dict[str, Any]


@pytest.fixture
def record(library: Service) -> Record:
    """The first publication that has a cover and assets."""
    attachments = json.loads(files("sandbox.library").joinpath("attachments.json").read_bytes())
    line = next(each["line"] for each in attachments if each["cover"])
    found: Record = library.get(f"/publications/{line}").json()
    return found


@pytest.fixture
def anonymous(library: Service) -> httpx.Client:
    return library.client(auth=None)


def test_every_file_of_the_library_can_be_downloaded_unchanged(library: Service, anonymous: httpx.Client) -> None:
    """service.md#assets: publications have the `url` of each file."""
    known = {
        each["filename"]: each for each in json.loads(files("sandbox.library").joinpath("files.json").read_bytes())
    }
    seen = set()
    for attachment in json.loads(files("sandbox.library").joinpath("attachments.json").read_bytes()):
        record = library.get(f"/publications/{attachment['line']}").json()
        downloads = [(asset["file"]["metadata"], asset["url"]) for asset in record["assets"]]
        downloads += [(record["cover"]["metadata"], record["cover"]["url"])] if record["cover"] else []
        assert len(downloads) == len(attachment["assets"]) + bool(attachment["cover"])
        for metadata, url in downloads:
            content = anonymous.get(url).content
            assert len(content) == metadata["size"]
            assert hashlib.sha256(content).hexdigest() == known[metadata["filename"]]["sha256"]
            seen.add(metadata["filename"])
    assert seen == set(known)


def test_an_address_is_good_for_a_while(
    library: Service, record: Record, anonymous: httpx.Client, clock: FakeClock
) -> None:
    """Assumption: addresses are signed and expire 900 seconds after the record was read."""
    url = record["cover"]["url"]
    clock.time += 900
    assert anonymous.get(url).status_code == 200
    clock.time += 1
    assert anonymous.get(url).status_code == 403
    fresh = library.get(f"/publications/{record['id']}").json()["cover"]["url"]
    assert anonymous.get(fresh).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        ("Expires=900", "Expires=901"),
        ("Signature=", "Signature=0"),
        ("/store/", "/store/0"),
        ("?", "?x=1&"),
        ("us-east-1", "us-west-1"),
        ("SBOX", "SBOY"),
        ("Headers=host", "Headers=range"),
        ("Date=2027", "Date=2028"),
    ],
)
def test_a_changed_address_is_refused(record: Record, anonymous: httpx.Client, change: tuple[str, str]) -> None:
    """Assumption: like AWS Signature V4, the signature covers the whole address."""
    url = record["cover"]["url"]
    assert change[0] in url
    assert anonymous.get(url.replace(*change, 1)).status_code in {400, 403}


def test_a_sign_in_beside_the_signature_is_refused(record: Record, library: Service) -> None:
    """I2: credentials must not go to the storage service. Like object stores, it refuses them."""
    with library.client() as signed_in:
        assert signed_in.get(record["cover"]["url"]).status_code == 400


def test_a_part_can_be_asked_for(record: Record, anonymous: httpx.Client) -> None:
    """Assumption: as in object stores, Range and If-None-Match work."""
    url, size = record["cover"]["url"], record["cover"]["metadata"]["size"]
    whole = anonymous.get(url)
    part = anonymous.get(url, headers={"Range": f"bytes={size - 10}-"})
    assert part.status_code == 206
    assert part.content == whole.content[-10:]
    assert anonymous.get(url, headers={"Range": f"bytes={size}-"}).status_code == 416
    assert anonymous.get(url, headers={"If-None-Match": whole.headers["ETag"]}).status_code == 304


def test_type_and_name_come_along(record: Record, anonymous: httpx.Client) -> None:
    """The type is that of the content, the name that of the upload."""
    answer = anonymous.get(record["cover"]["url"])
    assert answer.headers["Content-Type"] == record["cover"]["metadata"]["mime_type"]
    assert record["cover"]["metadata"]["filename"] in answer.headers["Content-Disposition"]


def test_storage_only_reads(record: Record, anonymous: httpx.Client) -> None:
    """A download address does not accept writes."""
    assert anonymous.put(record["cover"]["url"], content=b"x").status_code == 405
    assert anonymous.head(record["cover"]["url"]).status_code == 200

"""Asks a library for its own description, `swagger.yaml` (service.md#overview). No sign-in is needed; no other host is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http import HTTPStatus
from urllib.parse import urljoin

from pipelines.errors import BookferryError
from pipelines.service.probe import Probe, ProbeResponse
from pipelines.service.redaction import outside_text
from pipelines.shapes.description import read_description
from pipelines.shapes.model import Description


def ask_description(probe: Probe, api: str) -> Description:
    """The description of a version: at its own address, else at a link on the page /api. Never raises `BookferryError`."""
    address = f"{probe.api_url}/swagger.yaml"
    try:
        answer, description = _ask(probe, address)
        if description is not None and not description.problem:
            return description
        page = probe.ask_at(f"{probe.base_url}/api", signed_in=False)
        for link in _linked(page, api) if page is not None and page.status == HTTPStatus.OK else ():
            return _ask(probe, link)[1] or _missing(link, None)
    except BookferryError as error:
        return Description(address=address, problem=outside_text(error))
    return description or _missing(address, answer)


def ask_again(probe: Probe, earlier: Description) -> Description | None:
    """A description that was read before, as it is now; None where it cannot be read. One request. Never raises `BookferryError`."""
    try:
        description = _ask(probe, earlier.address)[1]
    except BookferryError:
        return None
    return None if description is None or description.problem else description


def _ask(probe: Probe, address: str) -> tuple[ProbeResponse | None, Description | None]:
    """The response of an address, and the description in it; None where the answer is no success."""
    answer = probe.ask_at(address, signed_in=False)
    if answer is None or answer.status != HTTPStatus.OK:
        return answer, None
    return answer, read_description(answer.content, address=address)


def _missing(address: str, answer: ProbeResponse | None) -> Description:
    status = f"the service answered {answer.status}" if answer is not None else "there was no answer that can be read"
    return Description(address=address, problem=f"There is no description at {address}: {status}.")


def _linked(page: ProbeResponse, api: str) -> Iterator[str]:
    """Addresses of descriptions on a web page; those that name the version come first, those of the other version are left out."""
    text = page.content.decode(errors="replace")
    addresses = [
        urljoin(page.address, link)
        for link in re.findall(r"[\"']([^\"'<>\s]{1,500}swagger[^\"'<>\s]{0,200}\.ya?ml)[\"']", text)
    ]
    other_version = {"v2": "v3", "v3": "v2"}[api]
    yield from sorted(
        (page for page in addresses if f"/{other_version}/" not in page), key=lambda page: f"/{api}/" not in page
    )

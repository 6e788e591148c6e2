"""Chooses the address of the signed form of an upload: the documented one, unless the target's description has another.

The service documents one for covers and one for attached files (service.md#presign). Both put an upload into the cache, so a cover may take
the form of an attached file where the service does not have the other address (A6).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Any

from pipelines.errors import RefusedError
from pipelines.migration.apply.request_forms.known_forms import KnownForms, Operation, Verdict
from pipelines.migration.apply.request_forms.refusals import refuses_method
from pipelines.migration.model.resource_types import PUBLICATIONS
from pipelines.records.files import ASSET, COVER
from pipelines.service.files.upload import StorageRefusalError

ADDRESSES = {ASSET: "assets/presign", COVER: "publications/cover/presign"}
"""Kind of a file → the documented address."""


class PresignForms:
    """The addresses of one run, from several threads at once.

    `operations`: those of the target's description, such as `GET /assets/presign`.
    """

    def __init__(self, known: KnownForms, operations: Collection[str]) -> None:
        self._known = known
        self._addresses = {kind: _described(kind, operations) for kind in ADDRESSES}
        self._lock = threading.Lock()

    def upload(self, kind: str, send: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
        """Returns the result of `send`, which gets an address; calls it again with another where the service does not have the first."""
        address, other = self._addresses[kind], self._addresses[ASSET]
        if address == other or self._verdict() == Verdict.TAKEN:
            return send(other)
        try:
            return send(address)
        except StorageRefusalError:
            raise
        except RefusedError as refusal:
            if not refuses_method(refusal) or self._verdict() == Verdict.REFUSED:
                raise
        with self._lock:
            verdict = Verdict.REFUSED
            try:
                uploaded, verdict = send(other), Verdict.TAKEN
            except RefusedError as refusal:
                if isinstance(refusal, StorageRefusalError) or not refuses_method(refusal):
                    verdict = Verdict.BEGUN
                raise
            finally:
                self._known.learn(PUBLICATIONS, Operation.UPLOAD, ADDRESSES[ASSET], verdict)
        return uploaded

    def _verdict(self) -> str | None:
        """What is known of covers in the form of attached files."""
        return self._known.verdict(PUBLICATIONS, Operation.UPLOAD, ADDRESSES[ASSET])


def _described(kind: str, operations: Collection[str]) -> str:
    """The address of a kind of files: the documented one, unless the description lacks it and has just one other."""
    documented = ADDRESSES[kind]
    if f"GET /{documented}" in operations:
        return documented
    word = "cover" if kind == COVER else "asset"
    found = {
        operation.removeprefix("GET /")
        for operation in operations
        if operation.startswith("GET /") and "{}" not in operation and "presign" in operation and word in operation
    }
    return found.pop() if len(found) == 1 else documented

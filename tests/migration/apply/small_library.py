"""A library of version 3 in memory, behind a real socket, whose responses to writes are ordered one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.service.scripted import Answer, Received

Order = Literal["lost", "dropped", "no id"] | Answer | Callable[[], Answer]
"""Lost: it takes effect, and the connection breaks. Dropped: the connection breaks before that. No id: an empty response after it."""


def refusal(status: int, code: str, message: str = "no") -> Answer:
    """A response with an error."""
    return Answer({"error": {"code": code, "message": message}}, status=status)


@dataclass
class SmallLibrary:
    """Answers requests; `records` are its publications by id."""

    records: dict[int, dict[str, Any]] = field(default_factory=dict)
    shows_files: bool = True
    writes: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    """Method, path and body of each write, but those to the storage."""
    uploads: list[bytes] = field(default_factory=list)
    storage: Callable[[bytes], Answer] = lambda _body: Answer(b"", status=204)
    """Answers an upload."""
    _orders: list[tuple[str, Order]] = field(default_factory=list)
    _last_id: int = 100

    def order(self, write: str, *orders: Order) -> None:
        """The next writes that match, such as `POST assets`, end so."""
        self._orders += [(write, order) for order in orders]

    def sent(self, write: str) -> list[dict[str, Any]]:
        """The bodies of the writes that match."""
        return [body for method, path, body in self.writes if re.fullmatch(write, f"{method} {path}")]

    def __call__(self, request: Received) -> Answer:
        """Answer a request."""
        path = request.path.removeprefix("/api/v2/")
        if request.path == "/storage":
            self.uploads.append(request.body)
            return self.storage(request.body)
        if path.endswith("presign"):
            return self._ordered(f"GET {path}", lambda: Answer(self._form(request)))
        if request.method != "GET":
            body = json.loads(request.body or b"{}")
            self.writes.append((request.method, path, body))
            return self._ordered(f"{request.method} {path}", lambda: Answer(self._write(request.method, path, body)))
        return self._read(request, path)

    def _ordered(self, write: str, effect: Callable[[], Answer]) -> Answer:
        place = next((place for place, (pattern, _) in enumerate(self._orders) if re.fullmatch(pattern, write)), None)
        if place is None:
            return effect()
        order = self._orders.pop(place)[1]
        if not isinstance(order, str):
            return order if isinstance(order, Answer) else order()
        if order != "dropped":
            effect()
        if order == "no id":
            return Answer({})
        raise ConnectionError

    def _form(self, request: Received) -> dict[str, Any]:
        self._last_id += 1
        url = f"http://{request.headers['host']}/storage"
        return {"url": url, "fields": {"key": f"cache/{self._last_id}", "policy": "secret-policy"}}

    def _read(self, request: Received, path: str) -> Answer:
        if path == "publications":
            shown = list(self.records.values()) if request.query.get("page", "1") == "1" else []
            return Answer(
                {"records": [self._shown(record) for record in shown]}, headers={"X-Total": str(len(self.records))}
            )
        record = self.records.get(int(path.partition("/")[2])) if path.startswith("publications/") else None
        return refusal(404, "RecordNotFound") if record is None else Answer(self._shown(record))

    def _shown(self, record: dict[str, Any]) -> dict[str, Any]:
        return record if self.shows_files else {name: value for name, value in record.items() if name != "assets"}

    def _write(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path == "assets":
            return self.attach(**body)
        if method == "PATCH":
            record = self.records[int(path.rpartition("/")[2])]
            record.update(body)
            return self._shown(record)
        return self._shown(self.add(body))

    def add(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Add a record, as people or an earlier request did."""
        self._last_id += 1
        record = self.records[self._last_id] = {"id": self._last_id, "cover": None, **fields, "assets": []}
        return record

    def attach(self, publication_id: int, **asset: Any) -> dict[str, Any]:
        """Attach a file to a record."""
        self._last_id += 1
        added = {"id": self._last_id, **asset}
        self.records[publication_id]["assets"].append(added)
        return added

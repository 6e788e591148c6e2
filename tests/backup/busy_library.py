"""A library that people work on while it is backed up, over a real socket."""

from __future__ import annotations

import random
from typing import Any

from tests.backup.files.file_library import PER_PAGE, FileLibrary
from tests.service.scripted import Answer, Received

PAGES = 6


class BusyLibrary(FileLibrary):
    """A library that changes at random before one in `quiet` of its responses.

    It lists its records in the order of their ids, the newest first if asked, or in an order that `order` shuffles once.
    """

    def __init__(
        self,
        seed: int,
        quiet: int,
        *,
        newest_first: bool = False,
        order: random.Random | None = None,
        pages: int = PAGES,
    ) -> None:
        super().__init__()
        self._chance, self._quiet, self._pages = random.Random(seed), quiet, pages
        self._newest_first, self._order = newest_first, order
        self.throughout: set[int] = set()
        self.last_sent: dict[int, str] = {}
        """Id → title of each record that was ever sent, as it was sent last."""
        self.answered = 0

    def furnish(self) -> None:
        """Add publications without files, there from the beginning."""
        numbers = list(range(1, self._pages * 50 - 10))
        if self._order is not None:
            self._order.shuffle(numbers)
        for number in numbers:
            self.publications[number] = {"id": number, "title": f"Title {number}", "cover": None, "assets": []}
        self.throughout = set(self.publications)

    def _answer(self, request: Received) -> Answer:
        if self.answered > 1:  # a change between the first two requests cannot be noticed
            self._work()
        self.answered += 1
        answer = super()._answer(request)
        if request.path.endswith("/publications/all"):
            page = int(request.query["page"])
            for record in self.listed()[(page - 1) * PER_PAGE : page * PER_PAGE]:
                self.last_sent[record["id"]] = record["title"]
        return answer

    def listed(self) -> list[dict[str, Any]]:
        """All publications, in the order of the list."""
        return super().listed()[:: -1 if self._newest_first else 1]

    def _work(self) -> None:
        if self._chance.randrange(self._quiet):
            return
        for _change in range(self._chance.randrange(1, 4)):
            number = self._chance.choice(list(self.publications))
            kind = self._chance.choice(["add", "delete", "edit"])
            if kind == "add":
                new = max(self.publications) + 1
                self.publications[new] = {"id": new, "title": "new", "cover": None, "assets": []}
            elif kind == "delete":
                del self.publications[number]
                self.throughout.discard(number)
            else:
                self.publications[number]["title"] += " (edited)"

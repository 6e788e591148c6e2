"""The figures of one listing: X-Total on every page, records, pages that were read again (I4).

`Listing` fills them in; `pipelines.backup.completeness.prove_listing` compares X-Total with the distinct ids and decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from pipelines.service.listing.gaps import Gap


@dataclass(frozen=True)
class Page:
    """One page of a listing."""

    number: int
    """Its place in the collection: 1 for the first page. A page that is read again keeps its number."""
    url: str
    records: Sequence[msgspec.Raw]
    """The records' JSON, byte for byte as received."""
    ids: Sequence[int | None]
    """The id of each record; `None` if it is no whole number."""
    total: int | None
    """X-Total of this page's response."""
    owner: str = ""
    """The id of the record whose list it is, where each record has one."""


@dataclass
class ListingFacts:
    """The figures of one walk over a listing."""

    endpoint: str = ""
    pages: int = 0
    """Pages of the walk; a page that was read again counts again."""
    records: int = 0
    filled_pages: int = 0
    """Pages that had records."""
    first_total: int | None = None
    last_total: int | None = None
    totals_seen: int = 0
    """Different X-Totals in a row: 0 if the service sends none, 1 if it never changed."""
    added: int = 0
    deleted: int = 0
    """Records that were added or deleted during a walk that followed them."""
    again: int = 0
    """Pages that were read again because the collection changed."""
    followed: bool = False
    """Whether the walk went down the list, past records that were added or deleted, or for which X-Total does not account."""
    moved: bool = False
    """Whether records were added or deleted during a walk that followed them."""
    unsettled: bool = False
    """Whether the collection changed in a way that the walk could not follow."""
    gaps: dict[int, Gap] = field(default_factory=dict)
    """Place → the records from there on that the service cannot send."""
    unread: list[str] = field(default_factory=list)
    """Where the walk stopped before the end, because of too many gaps."""
    resumed: int = 0
    """Pages that an earlier process had read."""
    requests: int = 0
    seconds: float = 0.0

    def follow(self, added: int, deleted: int, end_total: int | None, *, moved: bool) -> None:
        """Note the balance of a walk down the list: what was added and deleted, and X-Total when the newest page was read again."""
        self.followed, self.moved = True, moved
        self.added, self.deleted = added, deleted
        self.last_total = self.last_total if end_total is None else end_total

    def count(self, page: Page, gaps: Sequence[Gap] = ()) -> None:
        """Count one more page."""
        self.gaps |= {gap.place: gap for gap in gaps}
        self.pages += 1
        self.filled_pages += bool(page.records)
        self.records += len(page.records)
        self.see(page.total)

    @property
    def may_lack_records(self) -> bool:
        """Whether the list may have moved unseen: without X-Total, a deletion on a page that was read takes a record off the next one."""
        return self.last_total is None and self.filled_pages > 1 and not self.followed

    def see(self, total: int | None) -> None:
        """Note the newest X-Total."""
        if total is None:
            return
        if self.last_total is None:
            self.first_total = self.last_total = total
            self.totals_seen = 1
        self.totals_seen += total != self.last_total
        self.last_total = total

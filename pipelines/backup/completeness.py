"""The verdict on one listing: whether it is complete (I4). That on the whole snapshot is `is_complete` in its manifest."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.humanize import counted
from pipelines.service.listing.gaps import Gap
from pipelines.service.listing.listing_facts import ListingFacts
from pipelines.service.redaction import outside_text
from pipelines.store.snapshots.captures import IdCounts
from pipelines.store.snapshots.facts import ResourceFacts


def prove_listing(listing: ListingFacts, ids: IdCounts, *, walks: int = 1, confirmed: bool = False) -> ResourceFacts:
    """Returns the verdict on one listing (I4): whether its distinct ids are as many as X-Total, and any movement was followed.

    A walk down the list follows movement. There may then be more ids, those of records that were deleted meanwhile. Without X-Total two
    walks have to agree, unless one went down the list; a note says so.

    `walks`: the number of walks whose records these are, each once, where every page of all of them had the same X-Total. As many records
    are then all of them, whatever their places were. `confirmed`: the walk before had the same ids.
    """
    united = walks > 1 and ids.distinct == listing.last_total
    problems, notes = [], []
    if listing.unsettled and not ids.duplicates and not united:
        problems.append(
            f"{_movement(listing)} The moved records could not be identified: run it again at a quieter hour."
        )
    if listing.may_lack_records and not (confirmed or ids.duplicates):
        problems.append(
            "The service sent no X-Total, and no two readings had the same records: some may have been deleted or added meanwhile. Run it "
            "again at a quieter hour."
        )
    if ids.duplicates:
        twice = ids.rows - ids.without_id - ids.distinct
        problems.append(f"{counted(twice, 'record')} listed twice, for example id {_examples(ids.duplicates)}.")
    if ids.without_id:
        problems.append(
            f"{counted(ids.without_id, 'record')} without an id that is a whole number, in the raw table only."
        )
    if listing.last_total is not None and not 0 <= ids.distinct - listing.last_total <= listing.deleted:
        problems.append(
            f"The service announced {counted(listing.last_total, 'record')} (X-Total) and sent {counted(ids.distinct, 'different one')}."
        )
    problems += [] if united else [*map(_gap, listing.gaps.values()), *listing.unread]
    if ids.text_ids:
        notes.append(
            f"{counted(ids.text_ids, 'record')} with a text as id: there, the column id of the table is empty, and id_raw has the id."
        )
    if listing.last_total is None:
        shown = (
            "two readings had the same records"
            if confirmed
            else "only the end of the listing says how many records there are"
        )
        notes.append(f"The service sent no X-Total: {shown}.")
    if listing.moved and not united:
        notes.insert(0, _read_again(listing, proved=not problems))
    return ResourceFacts(
        endpoint=listing.endpoint,
        records=ids.rows,
        distinct_ids=ids.distinct,
        without_id=ids.without_id,
        pages=listing.pages,
        x_total=listing.last_total,
        requests=listing.requests,
        seconds=round(listing.seconds, 3),
        complete=not problems,
        problems=problems,
        notes=notes,
        added=listing.added,
        deleted=listing.deleted,
        read_again=listing.again,
        resumed=listing.resumed,
    )


def _read_again(listing: ListingFacts, *, proved: bool) -> str:
    again = f"{_movement(listing)} {counted(listing.again, 'page')} read again"
    if not proved:
        return f"{again}."
    return (
        f"{again}: every record that was there from the beginning to the end is in it, once; a record that was deleted meanwhile may be in "
        "it."
    )


def _gap(gap: Gap) -> str:
    sides = [
        f"{side} id {number}" for side, number in (("after", gap.before), ("before", gap.after)) if number is not None
    ]
    where = f" ({', '.join(sides)})" if sides else ""
    records = f"record {gap.place:,}" if gap.records == 1 else f"records {gap.place:,} to {gap.last:,}"
    return f"The service cannot send {records} of the list{where}. The next backup asks again. {gap.reason}"


def _movement(listing: ListingFacts) -> str:
    if listing.totals_seen < 2:  # noqa: PLR2004  X-Total never changed
        return "Records changed their places during the listing."
    first, last = f"{listing.first_total or 0:,}", f"{listing.last_total or 0:,}"
    return f"X-Total changed during the listing ({first} at first, {last} at last): people added or deleted records."


def _examples(ids: Sequence[int | str]) -> str:
    return ", ".join(outside_text(key, 60) for key in ids)

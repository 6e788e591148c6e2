"""Assumptions about lists, pages, searches and errors (docs/assumptions.md, part two: lists and searches)."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pipelines.doctor.assumption_results import ServiceResponses, confirmed, differs, ids_of, total_of, untested
from pipelines.doctor.assumptions_about_records import dois
from pipelines.doctor.findings import CheckResult, warning
from pipelines.service.redaction import outside_text
from pipelines.service_limits import PER_PAGE

ASKED_FOR = 2 * PER_PAGE
"""Records to request on the first page, to see whether the service returns only 50."""


def backup_list(look: ServiceResponses) -> CheckResult:
    """A5: both versions have /publications/all."""
    if look.everything is None:
        return warning(
            "A5",
            "could not be tested: /publications/all did not answer",
            "A backup begins there, and fails after a minute of retries. Run this again. If nothing changes, ask the operators.",
            held=None,
        )
    if look.everything.records is None:
        return differs(
            "A5", f"/publications/all is not offered ({look.everything.status})", "Backups read /publications instead."
        )
    all_total, total = total_of(look.everything), look.total
    if all_total is not None and total is not None and all_total != total:
        return differs(
            "A5",
            f"/publications/all has {all_total:,} records and /publications {total:,}",
            "Backups read /publications/all. If it has fewer records, ask the library's operators which ones are missing.",
            costs=all_total < total,
        )
    return confirmed("A5", "/publications/all is offered, with as many records as /publications")


def error_body(look: ServiceResponses) -> CheckResult:
    """A12: an error is `{"error": {"code", "message"}}`, and an unknown id 404 `RecordNotFound`."""
    if look.absent is None:
        return untested("A12", "the request for an unknown record had no response")
    body = look.absent.json
    error = body.get("error") if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    if look.absent.status == 404 and code == "RecordNotFound":  # noqa: PLR2004
        return confirmed("A12", "an unknown record gives 404 RecordNotFound, in the documented form")
    response = (
        f"{look.absent.status}, code {outside_text(code, 60)}" if code else f"{look.absent.status}, in another form"
    )
    return differs(
        "A12", f"the response to an unknown record is {response}", "Only the texts of messages depend on it."
    )


def order(look: ServiceResponses) -> CheckResult:
    """A14: lists have a stable order; the sandbox orders by id."""
    ids = [one for one in ids_of(look.first) if isinstance(one, int)]
    if len(ids) < 2:  # noqa: PLR2004
        return untested("A14", "there are fewer than two records")
    if ids == sorted(ids):
        return confirmed("A14", "publications are listed by ascending id")
    return differs(
        "A14", "publications are not listed by ascending id", "Backups need a stable order, but no particular one."
    )


def backup_list_form(look: ServiceResponses) -> CheckResult:
    """A15: /publications/all looks like any list."""
    if look.everything is None or look.everything.records is None:
        return untested("A15", "there is no /publications/all")
    bare = isinstance(look.everything.json, list)
    size = len(look.everything.records)
    if bare:
        return differs("A15", "/publications/all is a bare array", "Backups accept that.")
    if size > PER_PAGE:
        return differs("A15", f"/publications/all has {size} records on a page of {PER_PAGE}", "Backups accept that.")
    return confirmed("A15", "/publications/all is an object with records, in pages")


def identifier_search(look: ServiceResponses) -> CheckResult:
    """A16: a search by identifier compares the whole value."""
    if not look.sought:
        return untested("A16", "no record of the first page has a DOI")
    if look.found is None or look.found.records is None:
        return untested("A16", "the search had no response")
    others = [record for record in look.found.records if look.sought.lower() not in map(str.lower, dois(record))]
    if not look.found.records:
        return differs(
            "A16", "a search by DOI does not find the record", "A migration would not recognise it.", costs=True
        )
    if others:
        return differs(
            "A16", "a search by DOI also finds other records", "Bookferry compares every hit before it counts."
        )
    return confirmed("A16", "a search by DOI finds the record with it, and no other")


def beyond_the_end(look: ServiceResponses) -> CheckResult:
    """A19: a page beyond the end is empty."""
    if look.beyond is None:
        return untested("A19", "the request for such a page had no response")
    if look.beyond.records == []:
        return confirmed("A19", "a page beyond the end is empty")
    if look.beyond.records:
        return differs(
            "A19",
            "a page beyond the end has records",
            "If the service also sends neither Link nor X-Total, a backup fails with an error that names the repeated page.",
            costs=look.total is None and not look.first.header("link"),
        )
    return differs(
        "A19",
        f"the response to a page beyond the end is {look.beyond.status}",
        "Backups request such a page only if nothing else marks the end.",
    )


def page_size(look: ServiceResponses) -> CheckResult:
    """A20: more than 50 is cut to 50."""
    size = len(look.records)
    if look.refused is not None:
        message = f"per_page={ASKED_FOR} is refused ({look.refused.status}), not cut to {PER_PAGE}"
        return differs("A20", message, f"Backups request {PER_PAGE}.")
    if not look.larger:
        return untested("A20", f"the request with per_page={ASKED_FOR} had no response")
    if size > PER_PAGE:
        return differs(
            "A20", f"per_page={ASKED_FOR} gave {size} records on a page", f"Backups still request {PER_PAGE}."
        )
    if look.total is not None and look.total <= size:
        return untested("A20", f"the library has {size} records, which is one page")
    if size == PER_PAGE:
        return confirmed("A20", f"per_page={ASKED_FOR} is cut to {PER_PAGE}")
    return differs(
        "A20",
        f"pages have {size} records, not {PER_PAGE}",
        f"A backup needs {PER_PAGE / max(1, size):.1f} times as many requests.",
        costs=True,
    )


def page_links(look: ServiceResponses) -> CheckResult:
    """A21: Link is there, absolute, on the library's own origin, and leads to other records."""
    header, here = look.first.header("link"), urlsplit(look.first.address)
    if not header:
        if look.total is not None and look.total <= len(look.records):
            return untested("A21", "the library fits on one page, and no Link was sent")
        return differs(
            "A21", "no Link header is sent", "Backups count pages until they reach X-Total or an empty page."
        )
    if look.first.paging is None:
        return differs("A21", "the address in Link is invalid", "Backups stop there.", costs=True)
    named = look.first.next_page
    if named is None:
        return untested("A21", "the library fits on one page")
    target = urlsplit(named)
    if (target.scheme, target.netloc) != (here.scheme, here.netloc):
        return differs(
            "A21",
            f"Link leads to another origin, {outside_text(f'{target.scheme}://{target.netloc}', 100)}",
            "Backups stop there, because they would send the sign-in to that origin. Correct base_url if the library moved.",
            costs=True,
        )
    return _links_that_lead_on(look, header)


def _links_that_lead_on(look: ServiceResponses, header: str) -> CheckResult:
    if look.second is None or look.second.records is None:
        return differs("A21", "the next page in Link has no records", "Backups stop there.", costs=True)
    if look.second.records and set(map(repr, ids_of(look.second))) & set(map(repr, ids_of(look.first))):
        return differs(
            "A21", "the next page repeats records of the first", "A backup is partial, or stops.", costs=True
        )
    if not re.search(r"<https?://", header):
        return differs("A21", "Link is relative", "Backups accept that.")
    return confirmed("A21", "Link is absolute, on the library's own origin, and leads to the next records")


def total(look: ServiceResponses) -> CheckResult:
    """A22: X-Total is on every page, and the same."""
    if look.first.paging is not None and look.first.paging.contradiction:
        return differs(
            "A22",
            f"X-Total contradicts itself: {look.first.paging.contradiction}",
            "A backup is partial, because it is unknown how many records there are.",
            costs=True,
        )
    if look.total is None:
        return differs(
            "A22",
            "no X-Total is sent",
            "Only the end of a list then shows the number of records, so a backup cannot prove that it is complete.",
            costs=True,
        )
    other = total_of(look.second)
    if look.second is not None and look.second.records is not None and other != look.total:
        return differs(
            "A22", "X-Total is not the same on the next page", "A backup is partial if it changes.", costs=True
        )
    if look.total < len(look.records):
        return differs("A22", "X-Total is smaller than the first page", "A backup is partial.", costs=True)
    return confirmed("A22", f"X-Total is sent: {look.total:,} publications")

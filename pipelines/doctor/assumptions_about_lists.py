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
"""`per_page` of the first page, which shows whether the service cuts it to 50."""


def backup_list(responses: ServiceResponses) -> CheckResult:
    """A5: both versions have /publications/all."""
    if responses.everything is None:
        return warning(
            "A5",
            "could not be tested: /publications/all did not answer",
            "A backup begins there, and would try for a minute before it fails. Run this again; if nothing changes, ask the operators.",
            held=None,
        )
    if responses.everything.records is None:
        return differs(
            "A5",
            f"/publications/all is not offered ({responses.everything.status})",
            "Backups read /publications instead.",
        )
    theirs, ours = total_of(responses.everything), responses.total
    if theirs is not None and ours is not None and theirs != ours:
        return differs(
            "A5",
            f"/publications/all has {theirs:,} records and /publications {ours:,}",
            "Backups read /publications/all. If that is the smaller number, ask the library's operators which records it leaves out.",
            costs=theirs < ours,
        )
    return confirmed("A5", "/publications/all is offered, with as many records as /publications")


def error_body(responses: ServiceResponses) -> CheckResult:
    """A12: an error is `{"error": {"code", "message"}}`, and an unknown id 404 `RecordNotFound`."""
    if responses.absent is None:
        return untested("A12", "the request for an unknown record was not answered")
    body = responses.absent.json
    error = body.get("error") if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    if responses.absent.status == 404 and code == "RecordNotFound":  # noqa: PLR2004
        return confirmed("A12", "an unknown record is 404 RecordNotFound, in the documented form")
    response = (
        f"{responses.absent.status}, code {outside_text(code, 60)}"
        if code
        else f"{responses.absent.status}, in another form"
    )
    return differs("A12", f"an unknown record is answered {response}", "Only the words of messages depend on it.")


def order(responses: ServiceResponses) -> CheckResult:
    """A14: lists keep their order; the sandbox's are in the order of ids."""
    ids = [one for one in ids_of(responses.first) if isinstance(one, int)]
    if len(ids) < 2:  # noqa: PLR2004
        return untested("A14", "there are fewer than two records")
    if ids == sorted(ids):
        return confirmed("A14", "publications are listed by ascending id")
    return differs(
        "A14",
        "publications are not listed by ascending id",
        "Backups rely on no particular order, only on one that does not change.",
    )


def backup_list_form(responses: ServiceResponses) -> CheckResult:
    """A15: /publications/all has the form of any list."""
    if responses.everything is None or responses.everything.records is None:
        return untested("A15", "there is no /publications/all")
    bare = isinstance(responses.everything.json, list)
    size = len(responses.everything.records)
    if bare:
        return differs("A15", "/publications/all is a bare array", "Backups take that too.")
    if size > PER_PAGE:
        return differs("A15", f"/publications/all has {size} records on a page of {PER_PAGE}", "Backups take that too.")
    return confirmed("A15", "/publications/all is an object with records, in pages")


def identifier_search(responses: ServiceResponses) -> CheckResult:
    """A16: a search by identifier compares the whole value."""
    if not responses.sought:
        return untested("A16", "no record of the first page has a DOI")
    if responses.found is None or responses.found.records is None:
        return untested("A16", "the search was not answered")
    others = [
        record for record in responses.found.records if responses.sought.lower() not in map(str.lower, dois(record))
    ]
    if not responses.found.records:
        return differs("A16", "a record is not found by its own DOI", "A migration would not recognise it.", costs=True)
    if others:
        return differs(
            "A16", "a search by DOI finds other records as well", "Every hit is compared again before it counts."
        )
    return confirmed("A16", "a search by DOI finds the record that has it, and no other")


def beyond_the_end(responses: ServiceResponses) -> CheckResult:
    """A19: a page beyond the end is empty."""
    if responses.beyond is None:
        return untested("A19", "the request for such a page was not answered")
    if responses.beyond.records == []:
        return confirmed("A19", "a page beyond the end is empty")
    if responses.beyond.records:
        return differs(
            "A19",
            "a page beyond the end has records",
            "Where the service also sends neither Link nor X-Total, a backup ends with an error that names the repeated page.",
            costs=responses.total is None and not responses.first.header("link"),
        )
    return differs(
        "A19",
        f"a page beyond the end is answered {responses.beyond.status}",
        "Backups request one only if neither Link nor X-Total marks the end.",
    )


def page_size(responses: ServiceResponses) -> CheckResult:
    """A20: more than 50 is cut to 50."""
    size = len(responses.records)
    if responses.refused is not None:
        message = f"per_page={ASKED_FOR} is refused ({responses.refused.status}), not cut to {PER_PAGE}"
        return differs("A20", message, f"Backups ask for {PER_PAGE}.")
    if not responses.larger:
        return untested("A20", f"per_page={ASKED_FOR} was not answered")
    if size > PER_PAGE:
        return differs(
            "A20", f"per_page={ASKED_FOR} gave {size} records on a page", f"Backups ask for {PER_PAGE} all the same."
        )
    if responses.total is not None and responses.total <= size:
        return untested("A20", f"the library has {size} records, which is one page")
    if size == PER_PAGE:
        return confirmed("A20", f"per_page={ASKED_FOR} is cut to {PER_PAGE}")
    return differs(
        "A20",
        f"pages have {size} records, not {PER_PAGE}",
        f"A backup takes {PER_PAGE / max(1, size):.1f} times as many requests.",
        costs=True,
    )


def page_links(responses: ServiceResponses) -> CheckResult:
    """A21: Link is there, absolute, on the library's own origin, and leads to other records."""
    header, here = responses.first.header("link"), urlsplit(responses.first.address)
    if not header:
        if responses.total is not None and responses.total <= len(responses.records):
            return untested("A21", "the library fits on one page, and no Link was sent")
        return differs(
            "A21", "no Link header is sent", "Backups count pages until X-Total, or an empty page, is reached."
        )
    if responses.first.paging is None:
        return differs("A21", "Link names a page whose address cannot be understood", "Backups stop there.", costs=True)
    named = responses.first.next_page
    if named is None:
        return untested("A21", "the library fits on one page")
    target = urlsplit(named)
    if (target.scheme, target.netloc) != (here.scheme, here.netloc):
        return differs(
            "A21",
            f"Link leads to another origin, {outside_text(f'{target.scheme}://{target.netloc}', 100)}",
            "Backups stop there: the sign-in would go to it. Correct base_url if the library moved.",
            costs=True,
        )
    return _links_that_lead_on(responses, header)


def _links_that_lead_on(responses: ServiceResponses, header: str) -> CheckResult:
    if responses.second is None or responses.second.records is None:
        return differs(
            "A21", "the page that Link names next is not answered with records", "Backups stop there.", costs=True
        )
    if responses.second.records and set(map(repr, ids_of(responses.second))) & set(map(repr, ids_of(responses.first))):
        return differs(
            "A21", "the next page has records of the first again", "A backup is PARTIAL, or stops.", costs=True
        )
    if not re.search(r"<https?://", header):
        return differs("A21", "Link is relative", "Backups take that too.")
    return confirmed("A21", "Link is absolute, on the library's own origin, and leads to the next records")


def total(responses: ServiceResponses) -> CheckResult:
    """A22: X-Total is on every page, and the same."""
    if responses.total is None:
        return differs(
            "A22",
            "no X-Total is sent",
            "Only the end of a list shows the number of records: a backup cannot prove that it is complete.",
            costs=True,
        )
    other = total_of(responses.second)
    if responses.second is not None and responses.second.records is not None and other != responses.total:
        return differs(
            "A22", "X-Total is not the same on the next page", "A backup is PARTIAL when it changes.", costs=True
        )
    if responses.total < len(responses.records):
        return differs("A22", "X-Total is smaller than the first page", "A backup is PARTIAL.", costs=True)
    return confirmed("A22", f"X-Total is sent: {responses.total:,} publications")

"""Chooses the form of each merge that nothing describes: the assumed one, or else the one that the target takes (A6).

A merge cannot be taken back. So another field is sent only where the service names it and its name says which record remains. The target's
list proves the first merge of a run before another is sent.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from pipelines.errors import RefusedError
from pipelines.migration.apply.request_forms.known_forms import KnownForms, MergeForm, Operation, Verdict
from pipelines.migration.apply.request_forms.refusals import refuses_method, words_of
from pipelines.migration.model.journal_entries import FailedWriteError
from pipelines.migration.model.resource_types import MergeRequest
from pipelines.migration.plan.merges import names_remaining_record


class MergeForms:
    """The forms of the merges of one run, from several threads at once."""

    def __init__(self, known: KnownForms) -> None:
        self._known = known
        self._lock = threading.RLock()
        self._proved: set[str] = set()
        """Resources of which a merge of this run had its effect."""
        self._stopped: dict[str, str] = {}
        """Resource → why nothing of it is merged any more."""

    @contextmanager
    def alone(self, resource: str, request: MergeRequest) -> Iterator[None]:
        """Send merges one at a time until one is proved. Raises `FailedWriteError` where one had another effect than it should."""
        if not self.is_open(resource, request):
            yield
            return
        with self._lock:
            if resource in self._stopped:
                raise FailedWriteError(self._stopped[resource])
            yield

    def is_open(self, resource: str, request: MergeRequest) -> bool:
        """Whether it is not known yet that the target merges in this form."""
        return not request.described and resource not in self._proved

    def known(self, resource: str, request: MergeRequest) -> MergeRequest:
        """The request in the form that the target is known to take."""
        if not request.described:
            for form in self._known.taken(resource, Operation.MERGE):
                request = _with(request, form)
        return request

    def alternative(self, resource: str, request: MergeRequest, refusal: RefusedError) -> MergeRequest | None:
        """The request in another form, to be sent now, after a refusal that is about the form; None where there is none to try."""
        if not self.is_open(resource, request):
            return None
        self._note_refusal(resource, request, refusal)
        if refuses_method(refusal):
            form = MergeForm.POST.value if request.method == MergeRequest().method else ""
        else:
            form = _named_field(request, refusal)
        if not form or self._known.verdict(resource, Operation.MERGE, form) == Verdict.REFUSED:
            return None
        self._known.learn(resource, Operation.MERGE, form, Verdict.BEGUN)
        return _with(request, form)

    def _note_refusal(self, resource: str, request: MergeRequest, refusal: RefusedError) -> None:
        """Note what a refusal says about the alternatives that were sent; one of the content shows that the method is right."""
        for form in _forms(request):
            if form == MergeForm.POST:
                verdict = Verdict.REFUSED if refuses_method(refusal) else Verdict.TAKEN
            elif refusal.is_about_content and request.field in words_of(refusal):
                verdict = Verdict.REFUSED
            else:
                continue
            self._known.learn(resource, Operation.MERGE, form, verdict)

    def proved(self, resource: str, request: MergeRequest) -> None:
        """The target's list shows the effect of a merge in this form."""
        for form in _forms(request):
            self._known.learn(resource, Operation.MERGE, form, Verdict.TAKEN)
        self._proved.add(resource)

    def without_effect(self, resource: str, request: MergeRequest, problem: str) -> None:
        """The service answered with success, and the target's list shows another effect or none: nothing more is merged."""
        for form in _forms(request):
            self._known.learn(resource, Operation.MERGE, form, Verdict.REFUSED)
        self._stopped[resource] = problem


def _with(request: MergeRequest, form: str) -> MergeRequest:
    if form == MergeForm.POST:
        return msgspec.structs.replace(request, method="POST")
    return msgspec.structs.replace(request, field=form.removeprefix(MergeForm.FIELD))


def _forms(request: MergeRequest) -> list[str]:
    """The alternatives that a request uses."""
    assumed = MergeRequest()
    named = [f"{MergeForm.FIELD}{request.field}"] if request.field != assumed.field else []
    return [*([MergeForm.POST] if request.method != assumed.method else []), *named]


def _named_field(request: MergeRequest, refusal: RefusedError) -> str:
    """The alternative with the one field that a refusal names as that of the record that remains; empty where it does not."""
    if not refusal.is_about_content or request.field != MergeRequest().field:
        return ""
    named = [
        word for word in words_of(refusal) - {request.field} if word.endswith("_id") and names_remaining_record(word)
    ]
    return f"{MergeForm.FIELD}{named[0]}" if len(named) == 1 else ""

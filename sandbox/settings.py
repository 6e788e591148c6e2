"""What can be changed about a tenant while it runs: speed, rate, and the liberties the document leaves to a service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.validation import at_least, nested_object, one_of, with_changes


@dataclass(frozen=True, slots=True)
class Variations:
    """Legal ways in which a service may differ; the first value of each is the default.

    ``link``: how the addresses in ``Link`` look. ``foreign`` puts the next page on ``foreign_origin``, ``loop`` makes the
    next page of a page that page itself. ``x_total_error`` is added to the true number. ``per_page_limit`` is where
    ``per_page`` is cut. ``contains`` lets the identifier filters match a part of the stored value. ``storage_head``: whether a
    download address, which is signed for GET, answers HEAD too. ``all_in``: the versions that have the backup list. ``nulls``:
    whether a field without a value is null or not there. ``created_status``: 200 or 201; ``deleted_answer``: an empty object, 200
    without a body, or 204. ``unknown_fields`` of a payload.
    """

    link: str = one_of("absolute", "relative", "none", "foreign", "loop")
    foreign_origin: str = "https://elsewhere.example"
    x_total: str = one_of("sent", "absent")
    x_total_error: int = 0
    all_endpoint: str = one_of("records", "bare", "missing")
    order: str = one_of("ascending", "descending")
    extra_fields: bool = False
    per_page_limit: int = at_least(1, 50)
    identifier_search: str = one_of("exact", "contains")
    storage_head: str = one_of("answered", "refused")
    all_in: str = one_of("both", "v2", "v3")
    nulls: str = one_of("sent", "absent")
    created_status: str = one_of("ok", "created")
    deleted_answer: str = one_of("object", "empty", "no_content")
    unknown_fields: str = one_of("refused", "ignored")


@dataclass(frozen=True, slots=True)
class OAuth:
    """How the authorization server behaves where the document leaves it open; the first value of each is the default.

    ``refresh_policy``: what a refresh does to the tokens before it, see ``oauth/refresh_policies.py``; ``refresh_leeway_seconds``
    belongs to ``leeway``. ``pkce_of_confidential``: of clients that registered themselves; public ones always need it.
    ``loopback_port``: ``any`` ignores the port of a loopback redirect address when it is asked for. ``issued_clients``:
    ``closed`` is a plan on which administrators issue none.
    """

    access_token_seconds: int = at_least(1, 3600)
    code_seconds: int = at_least(1, 60)
    session_seconds: int = at_least(1, 43200)
    registrations_per_day: int = at_least(0, 20)
    refresh_policy: str = one_of("strict", "leeway", "until_used", "at_once")
    refresh_leeway_seconds: int = at_least(0, 30)
    pkce_of_confidential: str = one_of("required", "lifted")
    loopback_port: str = one_of("compared", "any")
    issued_clients: str = one_of("open", "closed")


@dataclass(frozen=True, slots=True)
class Settings:
    """One tenant's settings. ``latency`` in seconds, before each answer; ``requests_per_minute`` 0 lifts the limit.

    ``index_lag`` seconds pass before a search finds what was created; a list without filters and the record itself show it at once.
    ``url_seconds`` is how long a signed download address is good for, ``upload_seconds`` an upload form, which lets a file have
    ``upload_bytes`` at most.
    """

    latency: float = at_least(0, 0.0)
    requests_per_minute: int = at_least(0, 60)
    index_lag: float = at_least(0, 0.0)
    url_seconds: int = at_least(1, 900)
    upload_seconds: int = at_least(1, 3600)
    upload_bytes: int = at_least(0, 5 * 1024**3)
    variations: Variations = field(default_factory=Variations)
    oauth: OAuth = field(default_factory=OAuth)

    def with_changes(self, changes: Mapping[str, Any]) -> Settings:
        """These settings with some values changed, or 422; the rest, of the variations and of OAuth too, stays as it is."""
        variations = with_changes(self.variations, nested_object(changes, "variations"))
        oauth = with_changes(self.oauth, nested_object(changes, "oauth"))
        return with_changes(self, {**changes, "variations": variations, "oauth": oauth})

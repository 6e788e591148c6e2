"""Settings of a running tenant: delays, limits, and behaviour that docs/service.md leaves open."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.validation import at_least, nested_object, one_of, with_changes


@dataclass(frozen=True, slots=True)
class Variations:
    """Behaviour that may differ between services; the first value is the default.

    ``link``: the addresses in ``Link``; ``foreign`` puts the next page on another host, ``loop`` makes each page its own next page.
    ``x_total_error`` is added to the true total. ``per_page`` is cut to ``per_page_limit``. ``nulls``: whether a field without a value is
    null or absent. ``dropped_field``: a field of payloads that is accepted and not kept. ``v2_ended``: the status of every response of
    version 2; 0 while it lives, 200 is a web page. ``announced`` is added to ``X-API-Deprecation`` of every response of version 2.
    ``author_authorities``: which authorities a written publication makes of its authors (``state/author_authorities.py``).
    """

    link: str = one_of("absolute", "relative", "none", "foreign", "loop")
    x_total: str = one_of("sent", "absent")
    x_total_error: int = 0
    all_endpoint: str = one_of("records", "bare", "missing")
    order: str = one_of("ascending", "descending")
    extra_fields: bool = False
    per_page_limit: int = at_least(1, 50)
    nulls: str = one_of("sent", "absent")
    dropped_field: str = ""
    v2_ended: int = at_least(0, 0)
    announced: str = ""
    author_authorities: str = one_of("none", "matched", "own")


@dataclass(frozen=True, slots=True)
class OAuth:
    """Behaviour of the authorization server; the first value is the default.

    ``refresh_policy``: what a refresh does to older tokens (``oauth/token_endpoint.py``).
    """

    access_token_seconds: int = at_least(1, 3600)
    registrations_per_day: int = at_least(0, 20)
    refresh_policy: str = one_of("strict", "leeway", "until_used", "at_once")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a tenant. ``latency``: seconds before each response. ``requests_per_minute``: 0 lifts the limit.

    ``shapes``: other shapes of the resources of version 3, as JSON text (``sandbox/shapes``), or empty.
    """

    latency: float = at_least(0, 0.0)
    requests_per_minute: int = at_least(0, 60)
    shapes: str = ""
    variations: Variations = field(default_factory=Variations)
    oauth: OAuth = field(default_factory=OAuth)

    def with_changes(self, changes: Mapping[str, Any]) -> Settings:
        """Returns these settings with some values replaced, or raises 422. Variations and OAuth settings are merged, too.

        Shapes may be an object, and null for none; who uses them checks what is in it.
        """
        variations = with_changes(self.variations, nested_object(changes, "variations"))
        oauth = with_changes(self.oauth, nested_object(changes, "oauth"))
        values = {**changes, "variations": variations, "oauth": oauth}
        if "shapes" in changes and not isinstance(changes["shapes"], str):
            values["shapes"] = "" if changes["shapes"] is None else json.dumps(changes["shapes"], ensure_ascii=False)
        return with_changes(self, values)

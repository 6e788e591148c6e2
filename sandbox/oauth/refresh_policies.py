"""Rotating refresh tokens: what a refresh does to older tokens, in the four known policies of authorization servers.

service.md#tokens only says that each use replaces the refresh token. A policy says what a used refresh token gets, for how long it
may be used again, and what happens to the old pair of tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

_LEEWAY_SECONDS = 30


class Verdict(Enum):
    """What a refresh gets: new tokens, a refusal, or a refusal that ends the grant."""

    RENEW = "renew"
    REFUSE = "refuse"
    END_GRANT = "end the grant"


class OldPair(Enum):
    """What happens to the old access and refresh token."""

    STAYS = "stays"
    STAYS_UNTIL_NEW_IS_USED = "stays until the new access token is used"
    ENDS = "ends"


@dataclass(frozen=True, slots=True)
class RefreshPolicy:
    """The policy of a server. ``on_reuse``: what a refresh token gets that was used before."""

    on_reuse: Verdict
    old_pair: OldPair
    has_leeway: bool = False

    def verdict(self, *, ended: bool, refreshed_at: float | None, now: float) -> Verdict:
        """Returns what a refresh token gets; times in seconds."""
        if ended:
            return Verdict.REFUSE
        if refreshed_at is None or (self.has_leeway and now <= refreshed_at + _LEEWAY_SECONDS):
            return Verdict.RENEW
        return self.on_reuse


REFRESH_POLICIES: Mapping[str, RefreshPolicy] = {
    "strict": RefreshPolicy(Verdict.END_GRANT, OldPair.STAYS),
    "leeway": RefreshPolicy(Verdict.END_GRANT, OldPair.STAYS, has_leeway=True),
    "until_used": RefreshPolicy(Verdict.RENEW, OldPair.STAYS_UNTIL_NEW_IS_USED),
    "at_once": RefreshPolicy(Verdict.REFUSE, OldPair.ENDS),
}

"""What a refresh does to the tokens before it: the four policies that authorization servers are known to have.

The document says only that the refresh token "is renewed on every use". A policy is data: what a refresh token gets that was
used before, for how long it may be used again, and what becomes of the pair of tokens that was renewed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """What a refresh gets: new tokens, a refusal, or a refusal and the end of everything the person granted here."""

    RENEW = "renew"
    REFUSE = "refuse"
    END_GRANT = "end the grant"


class OldPair(Enum):
    """What becomes of the access and refresh token that were renewed."""

    STAYS = "stays"
    STAYS_UNTIL_NEW_IS_USED = "stays until the new access token is used"
    ENDS = "ends"


@dataclass(frozen=True, slots=True)
class RefreshPolicy:
    """One server's way. ``on_reuse``: what a refresh token gets that was used before."""

    on_reuse: Verdict
    old_pair: OldPair
    has_leeway: bool = False

    def verdict(self, *, ended: bool, refreshed_at: float | None, now: float, leeway: float) -> Verdict:
        """What a refresh token gets; times in seconds."""
        if ended:
            return Verdict.REFUSE
        if refreshed_at is None or (self.has_leeway and now <= refreshed_at + leeway):
            return Verdict.RENEW
        return self.on_reuse


REFRESH_POLICIES: Mapping[str, RefreshPolicy] = {
    "strict": RefreshPolicy(Verdict.END_GRANT, OldPair.STAYS),
    "leeway": RefreshPolicy(Verdict.END_GRANT, OldPair.STAYS, has_leeway=True),
    "until_used": RefreshPolicy(Verdict.RENEW, OldPair.STAYS_UNTIL_NEW_IS_USED),
    "at_once": RefreshPolicy(Verdict.REFUSE, OldPair.ENDS),
}

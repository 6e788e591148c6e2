"""The results of drills: `<data>/drills/tenant=…/snapshot=….json`."""

from __future__ import annotations

import msgspec

from pipelines.store.maintenance.results import ResultFiles


class DrillResult(msgspec.Struct, kw_only=True):
    """The result of one drill."""

    tenant: str
    snapshot: str
    ok: bool
    drilled_at: str
    seconds: float
    records: int
    """Records that were restored and read again."""
    files: int
    bytes: int
    """Size of the files, which were read back and compared byte by byte."""
    problems: list[str]
    problems_count: int
    resources: dict[str, int] = {}
    """Resource → its records that were restored and read again."""
    left: list[str] = []
    """What cannot be restored through this API, in words. It is no problem of the snapshot."""
    lost: str = ""
    """The values among it in a few words."""

    @property
    def name(self) -> str:
        """`tenant/snapshot`."""
        return f"{self.tenant}/{self.snapshot}"


DRILLS = ResultFiles("drills", DrillResult)
"""The last drill of each snapshot."""

"""A finding: one thing of a plan or of the target that is not as it should be; and how much the target lacks."""

from __future__ import annotations

import msgspec

from pipelines.humanize import MOST_LISTED
from pipelines.migration.model.reasons import ReasonKind, kind_of
from pipelines.records.files import COVER
from pipelines.records.values import RecordId

MOST_ALIKE = 100


class Finding(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One finding, for every step. Its texts are safe to display (I10), and of people it has no values."""

    code: str
    """Its reason (`reasons.REASONS`), or the rule that an identifier breaks."""
    resource: str
    source_id: RecordId | None = None
    target_id: RecordId | None = None
    title: str = ""
    field: str = ""
    """The field or the kind of file or write that it is about; empty where it is the record."""
    wanted: str = ""
    """The value in the source or in the plan."""
    found: str = ""
    """The value in the target."""
    problem: str
    """What is known of the reason."""
    suggestion: str = ""
    lacking: bool = False
    """Whether the target lacks it although the plan is written, so that only a new plan or a person can move it."""

    @property
    def kind(self) -> ReasonKind:
        """What it is about."""
        return kind_of(self.code)

    @property
    def record(self) -> str:
        """Its record: `publications 3 → 17 (The Dead Key)`."""
        numbers = " → ".join(str(number) for number in (self.source_id, self.target_id) if number is not None)
        return f"{self.resource} {numbers} ({self.title})" if self.title else f"{self.resource} {numbers}"

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.record}: {self.words}"

    @property
    def words(self) -> str:
        """The line without its record; findings with the same words are alike."""
        kind, subject = self.kind, self.field
        if kind in (ReasonKind.TARGET, ReasonKind.STEPS):
            subject = f"{subject} {self.code}".strip()
        elif kind == ReasonKind.FILES:
            subject = f"{subject} {self.wanted}"
        values = (
            f", wanted «{self.wanted}», found «{self.found}»"
            if kind == ReasonKind.TARGET and (self.wanted or self.found)
            else ""
        )
        problem = f"{self.problem.removesuffix('.')}. {self.suggestion}" if self.suggestion else self.problem
        return f"{subject}{values}{': ' if subject else ''}{problem}".strip()

    @property
    def likeness(self) -> tuple[str, str, str]:
        """What it has in common with findings like it."""
        return self.code, self.resource, self.field


class Lacking(msgspec.Struct, kw_only=True):
    """How much the target lacks although the plan is written, by kind."""

    records: int = 0
    files: int = 0
    covers: int = 0
    references: int = 0
    writes: int = 0
    unanswered: int = 0
    """Records of resources about which the mapping file has open questions."""

    @property
    def total(self) -> int:
        """All of it."""
        return sum(msgspec.structs.astuple(self))

    def add(self, finding: Finding) -> None:
        """Count one, if it is lacking."""
        if finding.lacking:
            name = "covers" if finding.kind == ReasonKind.FILES and finding.field == COVER else finding.kind.value
            setattr(self, name, getattr(self, name) + 1)


class NotMoved(msgspec.Struct, kw_only=True):
    """What a plan could not send, as its page and its tables of issues show it."""

    counts: dict[str, dict[str, int]] = {}
    """Code → field, without positions in lists → records. A hostile record may have any number of fields: the first ones (I13)."""
    lacking: Lacking = msgspec.field(default_factory=Lacking)
    first: list[Finding] = []
    """The first that are lacking."""

    def count(self, *codes: str) -> int:
        """The findings with one of these codes."""
        return sum(sum(self.counts.get(code, {}).values()) for code in codes)

    @property
    def by_field(self) -> dict[str, int]:
        """Field → records with a value there that is not moved; the most frequent first."""
        totals: dict[str, int] = {}
        for code, counts in self.counts.items():
            if kind_of(code) in (ReasonKind.DATES, ReasonKind.IDENTIFIERS, ReasonKind.REFERENCES, ReasonKind.FIELDS):
                for field, count in counts.items():
                    totals[field] = totals.get(field, 0) + count
        return dict(sorted(totals.items(), key=lambda entry: (-entry[1], entry[0])))


class StepResult(msgspec.Struct, kw_only=True):
    """The result of a step of a migration. Its JSON is that of the command, whose keys scripts rely on."""

    plan: str
    requests: int = 0
    lacking: Lacking = msgspec.field(default_factory=Lacking)
    findings: list[Finding] = []
    """The first ones, of everything that a person has to look at."""

    def add(self, finding: Finding) -> None:
        """Add a finding. The counts have all; `findings` has the first, and not more than `MOST_ALIKE` in a row that are alike."""
        self.lacking.add(finding)
        listed = self.findings
        if len(listed) >= MOST_ALIKE and listed[-MOST_ALIKE].likeness == listed[-1].likeness == finding.likeness:
            return
        if len(listed) < MOST_LISTED:
            listed.append(finding)

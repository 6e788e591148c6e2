"""A librarian's hour: conflicts of three kinds, decided in the page, taken over, planned again: none is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.migration.model.plan import CONFLICTS, HTML
from tests.cli.command import run
from tests.interop.browser import requested
from tests.migration.decide.conftest import Librarian
from tests.migration.library_pair import LibraryPair
from tests.sandbox.process import SandboxProcess

OF_A_KIND = 30


def edit(pair: LibraryPair) -> None:
    """Make conflicts of three kinds in a target with the same records, which somebody moved by hand."""
    records = [
        record
        for record in pair.publications()
        if any(identifier["type"] == "doi" for identifier in record["identifiers"])
        and record["authors"]
        and record["published_on"]
    ]
    titles, dates, twins = (records[start : start + OF_A_KIND] for start in range(0, 3 * OF_A_KIND, OF_A_KIND))
    for record in titles:
        pair.call("PATCH", f"publications/{record['id']}", {"title": f"{record['title']} (reprint)"})
    for record in dates:
        pair.call("PATCH", f"publications/{record['id']}", {"published_on": "1900-01-01"})
    for record in twins:
        doi = [identifier for identifier in record["identifiers"] if identifier["type"] == "doi"]
        pair.call("POST", "publications", {"title": record["title"], "identifiers": doi})


@pytest.mark.long
def test_a_librarians_hour(librarian: Librarian, tmp_path: Path) -> None:
    """In under twenty clicks; and after the take-over the next plan follows every decision."""
    tenants = ("--tenant=library=real:200", "--tenant=target=real:200")
    with SandboxProcess(*tenants, "--requests-per-minute", "0") as sandbox:
        edit(LibraryPair.at(tmp_path, sandbox, "library", "target"))
        account = {"TEST_USER": sandbox.user, "TEST_PASSWORD": sandbox.password}
        plan = run("migrate", "plan", "old", "new", "--json", folder=tmp_path, variables=account).document
        assert plan["conflict"] == 3 * OF_A_KIND
        folder = Path(plan["path"])

        librarian.open(folder / HTML)
        for words, decision in (
            ("Other values in title", "target"),
            ("Other values in date", "source"),
            ("Several records of the target fit", "skip"),
        ):
            librarian.show(words)
            assert librarian.shown == f"{OF_A_KIND} conflicts are shown."
            librarian.click(f"#bulk button[data-word={decision}]")
        saved = librarian.save()
        assert librarian.clicks < 20
        assert requested(librarian.browser) == {(folder / HTML).as_uri()}

        taken = run("migrate", "decide", plan["plan"], saved, "--json", folder=tmp_path, variables=account).document
        assert taken["decisions"] == dict.fromkeys(("target", "source", "skip"), OF_A_KIND)
        assert taken["left"] == 0
        assert saved.read_bytes() == (folder / CONFLICTS).read_bytes()

        next_plan = run(
            "migrate", "plan", "old", "new", "--newest", "--json", folder=tmp_path, variables=account
        ).document
        counts = {name: next_plan[name] for name in ("conflict", "skipped", "patch", "decisions")}
        assert counts == {"conflict": 0, "skipped": OF_A_KIND, "patch": OF_A_KIND, "decisions": 3 * OF_A_KIND}
        assert json.loads((folder / "plan.json").read_text())["seal"], "the plan that was decided stays as it was"

        librarian.open(Path(next_plan["path"]) / HTML)
        assert librarian.left == "Nothing has to be decided"
        assert librarian.shown == f"{3 * OF_A_KIND} conflicts are shown.", "each decision can still be changed"

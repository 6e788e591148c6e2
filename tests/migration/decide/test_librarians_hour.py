"""A librarian's hour: five hundred conflicts of five kinds, decided in the page, taken over, planned again: none is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipelines.migration.model.plan import CONFLICTS, HTML
from pipelines.scopes import SCOPES
from tests.backup.other_resources.signing import sign_in
from tests.cli.command import run
from tests.migration.decide.conftest import Librarian
from tests.migration.library_pair import BASIC, CONFIG
from tests.sandbox.process import SandboxProcess

OF_A_KIND = 100

OWN = 2
"""Records of the library with the same ISBN and title: each fits both in the target."""
CONFLICTS_IN_ALL = 5 * OF_A_KIND + OWN


@pytest.fixture(scope="module")
def old() -> Iterator[SandboxProcess]:
    with SandboxProcess("--tenant=library=real:1000", "--requests-per-minute", "0") as process:
        yield process


@pytest.fixture(scope="module")
def new() -> Iterator[SandboxProcess]:
    """The same records, which somebody moved by hand."""
    with SandboxProcess("--tenant=library=real:1000", "--requests-per-minute", "0") as process:
        yield process


def edit(new: SandboxProcess, token: str) -> None:
    """Make conflicts of five kinds, a hundred of each."""
    with httpx.Client(
        base_url=f"{new.base_url()}/api/v3/", headers={"authorization": f"Bearer {token}"}, timeout=60
    ) as client:
        records = [
            record
            for page in range(1, 21)
            for record in client.get(f"publications?per_page=50&page={page}").raise_for_status().json()["records"]
            if any(one["type"] == "doi" for one in record["identifiers"]) and record["authors"]
        ]
        kinds = [records[start : start + OF_A_KIND] for start in range(0, 5 * OF_A_KIND, OF_A_KIND)]
        assert [len(kind) for kind in kinds] == [OF_A_KIND] * 5
        titles, dates, types, authors, twins = kinds
        changes: list[tuple[int, dict[str, Any]]] = []
        changes += [(one["id"], {"title": f"{one['title']} (reprint)"}) for one in titles]
        changes += [(one["id"], {"published_on": "1900-01-01"}) for one in dates]
        changes += [(one["id"], {"publishable_type": "Catalogue"}) for one in types]
        changes += [(one["id"], {"authors": [{"name": "Anonymous", "type": "person"}]}) for one in authors]
        for number, change in changes:
            client.patch(f"publications/{number}", json=change).raise_for_status()
        for one in twins:
            doi = [{"type": "doi", "value": each["value"]} for each in one["identifiers"] if each["type"] == "doi"]
            client.post("publications", json={"title": one["title"], "identifiers": doi}).raise_for_status()


@pytest.mark.long
def test_a_librarians_hour(old: SandboxProcess, new: SandboxProcess, librarian: Librarian, tmp_path: Path) -> None:
    """In under thirty clicks; and after the take-over the next plan follows every decision."""
    config = tmp_path / "bookferry.toml"
    addresses = {"source": old.base_url(), "target": new.base_url()}
    config.write_text(CONFIG.format(**addresses, api="v2", signed=BASIC))
    edit(new, sign_in(config, "new", new, "library", SCOPES))
    account = {"TEST_USER": old.user, "TEST_PASSWORD": old.password}
    planned = run("migrate", "plan", "old", "new", "--json", folder=tmp_path, variables=account)
    assert planned.status == 0, planned.err
    plan = planned.document
    assert plan["conflict"] == CONFLICTS_IN_ALL
    folder = Path(plan["path"])

    librarian.open(folder / HTML)
    assert librarian.left == f"0 of {CONFLICTS_IN_ALL} decided"
    for words, number, decision in (
        ("Other values in title", OF_A_KIND, "target"),
        ("Other values in date", OF_A_KIND, "source"),
        ("Other values in kind", OF_A_KIND, "target"),
        ("Other values in authors", OF_A_KIND, "source"),
        ("Several records of the target fit", OF_A_KIND + OWN, "skip"),
    ):
        librarian.show(words)
        assert librarian.shown == f"{number} conflicts are shown."
        librarian.click(f"#bulk button[data-word={decision}]")
    assert librarian.left == f"{CONFLICTS_IN_ALL} of {CONFLICTS_IN_ALL} decided"
    saved = librarian.save()
    assert librarian.clicks < 30
    assert librarian.requested() == {(folder / HTML).as_uri()}

    taken = run("migrate", "decide", plan["plan"], saved, "--json", folder=tmp_path, variables=account)
    assert taken.status == 0, taken.err
    assert taken.document["decisions"] == {"target": 200, "source": 200, "skip": 102}
    assert (taken.document["new"], taken.document["left"]) == (CONFLICTS_IN_ALL, 0)
    assert saved.read_bytes() == (folder / CONFLICTS).read_bytes()
    printed = run("migrate", "decide", plan["plan"], saved, folder=tmp_path, variables=account)
    assert "No conflict is left to decide." in printed.out
    assert "bookferry migrate plan old new --newest" in printed.lines[-1]

    again = run("migrate", "plan", "old", "new", "--newest", "--json", folder=tmp_path, variables=account)
    assert again.status == 0, again.err
    found = {name: again.document[name] for name in ("conflict", "skipped", "patch", "decisions")}
    assert found == {"conflict": 0, "skipped": OF_A_KIND + OWN, "patch": 2 * OF_A_KIND, "decisions": CONFLICTS_IN_ALL}
    assert json.loads((folder / "plan.json").read_text())["seal"], "the plan that was decided stays as it was"

    librarian.open(Path(again.document["path"]) / HTML)
    assert librarian.left == "Nothing has to be decided"
    assert librarian.shown == f"{CONFLICTS_IN_ALL} conflicts are shown.", "each decision can still be changed"

"""The page of a plan in a browser: it offers what conflicts.tsv takes, writes that file, and loses no decision."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from pipelines.migration.model.plan import CONFLICTS, HTML
from pipelines.migration.plan.conflicts import RecordDecision, read_decisions
from tests.interop.browser import requested
from tests.migration.decide.conftest import Librarian
from tests.migration.decide.plans import differs, fits, hostile, page_of, pages_for, usual, with_records
from tests.migration.examples import example
from tests.migration.sample_plans import facts

DECIDED = (
    RecordDecision("publications", 2, "source", 1002, "Title 2"),
    RecordDecision("publications", 77, "skip", None, "A title of before"),
    RecordDecision("publications", 78, "match", 780, "1984"),
)
"""Decisions of an earlier plan; the last two are about records that are no conflicts any more."""


ALREADY_TAKEN = {("publication 7", word) for word in ("source", "target", "match")}
"""What is not possible any more after it was decided about the publication before, which fits the same record."""


def written(path: Path) -> dict[tuple[str, int], str]:
    """Record → its decision, as Bookferry reads a file."""
    return {(decision.resource, decision.source_id): decision.written for decision in read_decisions(path).values()}


def card_of(librarian: Librarian, name: str) -> str:
    """The selector of a conflict: `publication 5`."""
    for card in librarian.all(".card"):
        if card.find_element(By.CSS_SELECTOR, ".record").text == name:
            return f".card[data-place='{card.get_dom_attribute('data-place')}']"
    raise AssertionError(f"{name} is not on the page")


@pytest.mark.long
def test_the_saved_file_is_the_file_of_the_plan(librarian: Librarian, tmp_path: Path) -> None:
    """Byte for byte, whatever is in it, and with the decisions of before."""
    for name, rows in (("usual", usual()), ("hostile", hostile())):
        plan = page_of(tmp_path / name, rows, DECIDED)
        librarian.open(plan.path(HTML))
        assert librarian.save().read_bytes() == plan.path(CONFLICTS).read_bytes()


@pytest.mark.long
def test_each_decision_that_is_offered_can_be_read(librarian: Librarian, tmp_path: Path) -> None:
    """Those that settle the conflict are offered, and no others; each arrives in the file as a person would write it."""
    plan = page_of(tmp_path / "plan", usual())
    librarian.open(plan.path(HTML))
    offered = {
        card.find_element(By.CSS_SELECTOR, ".record").text: [
            button.get_dom_attribute("data-word") for button in card.find_elements(By.CSS_SELECTOR, ".buttons button")
        ]
        for card in librarian.all(".card")
    }
    expected_words = {
        ("publication 2", "publication 3", "publication 4", "publication 11", "user 2"): "source target create skip",
        ("publication 5", "publication 6", "publication 7", "publication 8"): "source target match create skip",
        ("publication 9",): "create skip",
        ("publication 10",): "match create skip",
        ("authority 3", "authority 4"): "source target match merge create skip",
    }
    assert offered == {name: words.split() for names, words in expected_words.items() for name in names}
    resources = {"publication": "publications", "user": "users", "authority": "authorities"}
    choices = {"publication 5": "#52", "authority 3": "#32", "authority 4": "#43"}
    for word in ("source", "target", "match", "merge", "create", "skip"):
        expected = {}
        for name, words in offered.items():
            if word not in words or (name, word) in ALREADY_TAKEN:
                continue
            card = card_of(librarian, name)
            if name in choices:
                librarian.choose(f"{card} select", choices[name])
            button = librarian.find(f"{card} button[data-word={word}]")
            if button.is_enabled():
                librarian.click(button)
                resource, number = name.split(" ")
                expected[resources[resource], int(number)] = word
            else:
                assert (name, word) == ("publication 10", "match"), "no record is known"
        decisions = written(librarian.save())
        assert {key: decision.split(" ")[0] for key, decision in decisions.items()} == expected
        named = {decision for decision in decisions.values() if " " in decision}
        assert bool(named) == (word not in ("create", "skip"))
        assert f"{word} 52" in named or word in ("create", "skip", "merge")
        librarian.browser.execute_script("localStorage.clear()")
        librarian.open(plan.path(HTML))


@pytest.mark.long
def test_another_record_is_named_by_its_number(librarian: Librarian, tmp_path: Path) -> None:
    """Where the record that the plan knows is gone, or is not the right one; what is no id is not taken."""
    librarian.open(page_of(tmp_path / "plan", usual()).path(HTML))
    for name, word in (("publication 9", "match"), ("publication 2", "target")):
        for typed in ("no id", "#12345678901234567" if name == "publication 9" else "770"):
            card = card_of(librarian, name)
            details = librarian.find(f"{card} .another")
            if not details.get_dom_attribute("open"):
                librarian.click(f"{card} .another summary")
            field = librarian.find(f"{card} .number")
            field.clear()
            field.send_keys(typed, Keys.TAB)
            assert bool(librarian.all(f"{card} button[data-word=match]")) == (typed != "no id")
        librarian.click(f"{card_of(librarian, name)} button[data-word={word}]")
    decisions = written(librarian.save())
    assert decisions == {("publications", 9): "match 12345678901234567", ("publications", 2): "target 770"}


@pytest.mark.long
def test_each_step_can_be_taken_back(librarian: Librarian, tmp_path: Path) -> None:
    """In any order: what counts is the last step that was not taken back; a step that would clash says so."""
    plan = page_of(tmp_path / "plan", usual(), DECIDED)
    librarian.open(plan.path(HTML))
    librarian.choose("#filter-field", "title")
    librarian.choose("#filter-state", "All")
    assert librarian.shown == "2 conflicts are shown."
    librarian.click("#bulk button[data-word=target]")
    librarian.click("#bulk button[data-word=skip]")
    librarian.click("#history summary")
    names = [step.text.removesuffix(" Take back") for step in librarian.all("#steps li")]
    assert names == ["Leave it out: 2 conflicts (title)", "Target is right: 2 conflicts (title)"]
    librarian.click(librarian.all("#steps button")[1])
    decisions = written(librarian.save())
    assert [decisions["publications", number] for number in (2, 3)] == ["skip", "skip"]
    librarian.click("#back")
    assert librarian.save().read_bytes() == plan.path(CONFLICTS).read_bytes()
    assert not librarian.find("#back").is_enabled()

    librarian.choose("#filter-field", "all fields")
    for name, word in (("publication 6", "match"), ("publication 6", "skip"), ("publication 7", "match")):
        librarian.click(f"{card_of(librarian, name)} button[data-word={word}]")
    librarian.click(librarian.all("#steps button")[1])
    assert "publication 7 is that record of the target now" in librarian.said
    assert written(librarian.save())["publications", 7] == "match 61"


@pytest.mark.long
def test_a_saved_file_goes_on_in_another_browser(new_librarian: Callable[[], Librarian], tmp_path: Path) -> None:
    """Also as a spreadsheet saves it; a file with a mistake changes nothing and the page names the line."""
    plan = page_of(tmp_path / "plan", usual())
    librarian = new_librarian()
    librarian.open(plan.path(HTML))
    librarian.keys("j", "s", "t")
    saved = librarian.save().read_text("utf-8-sig")
    librarian.browser.execute_script("localStorage.clear()")

    forms = {
        "excel.txt": saved.encode("utf-16"),
        "german.csv": saved.replace("\t", ";").replace("\n", "\r\n").encode("cp1252", errors="replace"),
        "plain.tsv": saved.encode(),
    }
    for name, content in forms.items():
        librarian.open(plan.path(HTML))
        (tmp_path / name).write_bytes(content)
        assert librarian.load(tmp_path / name) == f"2 decisions read from {name}. {len(usual()) - 4} left."
        assert librarian.left.startswith("2 of")
        librarian.browser.execute_script("localStorage.clear()")
    (tmp_path / "wrong.tsv").write_text(saved.replace("source 1002", "sauce") + "publications\t999\t\t\t\t\tskip\n")
    said = librarian.load(tmp_path / "wrong.tsv")
    assert "nothing was taken from it" in said
    assert "line 2: “sauce” is no decision" in said
    assert "this plan does not ask about publications 999" in said
    (tmp_path / "other.tsv").write_text("name\tnumber\n1\t2\n")
    assert "no line with the headings" in librarian.load(tmp_path / "other.tsv")
    assert librarian.left.startswith("2 of")
    drop = """
        const data = new DataTransfer();
        data.items.add(new File([arguments[0]], "dropped.tsv"));
        document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
    """
    before = librarian.said
    librarian.browser.execute_script(drop, saved.replace("target 1003", "skip"))
    librarian.wait_until(lambda: librarian.said != before)
    assert "dropped.tsv" in librarian.said
    assert written(librarian.save())["publications", 3] == "skip"


@pytest.mark.long
def test_unsaved_decisions_survive_a_closed_window(librarian: Librarian, tmp_path: Path) -> None:
    """The browser keeps them, and warns before the page is left."""
    plan = page_of(tmp_path / "plan", usual())
    librarian.open(plan.path(HTML))
    leave = "return !window.dispatchEvent(new Event('beforeunload', {cancelable: true}))"
    assert librarian.browser.execute_script(leave) is False
    librarian.keys("j", "s", "t")
    assert librarian.browser.execute_script(leave) is True
    librarian.open(plan.path(HTML))
    assert librarian.said.startswith("Kept in this browser: 2 decisions")
    assert librarian.left.startswith("2 of")
    librarian.save()
    assert librarian.browser.execute_script(leave) is False
    librarian.open(plan.path(HTML))
    assert librarian.left.startswith("2 of")
    assert librarian.find("#save").text == "Save conflicts.tsv", "what was kept is saved"
    librarian.click("#back")
    assert librarian.left.startswith("0 of")
    librarian.browser.execute_script("localStorage.clear()")


@pytest.mark.long
def test_both_sides_and_what_will_be(librarian: Librarian, tmp_path: Path) -> None:
    """The differing part is marked and named; the records that fit stand side by side; what is decided shows its effect."""
    plan = example(tmp_path / "plan", [differs(2, "The history", "A history"), fits(5, 51, 52)])
    with_records(
        plan,
        {2: {"title": "The history", "published_on": "2021"}, 5: {"title": "Maps", "authors": [{"name": "Doe"}]}},
        {1002: {"title": "A history", "published_on": "2021"}, 51: {"title": "Maps"}, 52: {"title": "Mops"}},
    )
    librarian.open(pages_for(plan).path(HTML))
    lines = [[cell.text for cell in line.find_elements(By.XPATH, "*")] for line in librarian.all(".sides tr")]
    assert lines == [
        ["Field", "Source: old", "Target: new #1002", "Afterwards"],
        ["title\n≠ differs", "The history", "A history", "not decided"],
        ["date", "2021the same in both"],
        ["Field", "Source: old", "Target: new #51", "Target: new #52", "Afterwards"],
        ["title\n≠ differs", "Maps", "Maps", "Mops", "not decided"],
        ["authors\n≠ differs", "Doe", "(nothing)", "(nothing)", "not decided"],
    ]
    assert [mark.text for mark in librarian.all(".card:first-child mark")] == ["The", "A"]
    librarian.click(f"{card_of(librarian, 'publication 2')} button[data-word=target]")
    assert librarian.find(".card:first-child tbody tr td:last-child").text == "A history"
    librarian.choose(f"{card_of(librarian, 'publication 5')} select", "#52")
    librarian.click(f"{card_of(librarian, 'publication 5')} button[data-word=match]")
    assert [cell.text for cell in librarian.all(".card:last-child tbody td:last-child")] == [
        "both have a value: the next plan asks",
        "Doe",
    ]


@pytest.mark.long
def test_hostile_texts_are_texts(librarian: Librarian, tmp_path: Path) -> None:
    """No text of a record is an element, a script or a request, in what is shown and in what is saved (I13)."""
    plan = page_of(tmp_path / "plan", hostile())
    librarian.open(plan.path(HTML))
    assert librarian.browser.title.startswith("old to new")
    assert len(librarian.all("script")) == 3
    assert not librarian.all("#decide img, #decide script, #decide iframe")
    text = plan.path(HTML).read_text("utf-8")
    rows = re.search(r'id="conflicts">(.*?)</script>', text, re.DOTALL)
    assert rows is not None
    assert len(json.loads(rows[1])) == len(hostile())
    shown = " ".join(card.text for card in librarian.all(".card"))
    assert "<script>alert(1)</script>" in shown
    assert requested(librarian.browser) == {plan.path(HTML).as_uri()}


@pytest.mark.long
def test_two_thousand_conflicts(librarian: Librarian, tmp_path: Path) -> None:
    """The page shows fifty at once, however many there are; search and a decision about all reach all of them."""
    plan = page_of(tmp_path / "plan", [differs(number, f"Title {number}", "Titel") for number in range(1, 2_001)])
    assert plan.path(HTML).stat().st_size < 1_000_000
    librarian.open(plan.path(HTML))
    assert librarian.left == "0 of 2,000 decided"
    assert len(librarian.all(".card")) == 50
    librarian.find("#search").send_keys("title 1999")
    assert librarian.shown == "2 conflicts are shown.", "its own number, and the number of the other one's target"
    librarian.find("#search").clear()
    librarian.find("#search").send_keys("title")
    librarian.keys(Keys.ESCAPE, "k", "n", "j")
    assert librarian.find("#pages span").text == "page 2 of 40"
    librarian.click("#bulk button[data-word=target]")
    assert len(written(librarian.save())) == 2_000


@pytest.mark.long
def test_it_reads_as_before_without_scripts(librarian: Librarian, tmp_path: Path) -> None:
    """A mail program may run none: examples of each kind are there, and the page says how to decide."""
    librarian.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    librarian.open(page_of(tmp_path / "plan", usual()).path(HTML))
    text = librarian.find("main").text
    assert "open it in a browser that runs scripts" in text
    assert "A history of printing" in text
    assert not librarian.find("#decide").is_displayed()


def test_numbers_lead_to_the_pages_of_records(librarian: Librarian, tmp_path: Path) -> None:
    """Where the libraries show addresses of publications; what is no address of the web is no link (I13)."""
    ends = {side: getattr(facts(), side) for side in ("source", "target")}
    for page, expected in (("https://library.example.org/r/{id}?a=<b>", 3), ("javascript:alert({id})", 0), ("", 0)):
        side_facts = {side: msgspec.structs.replace(end, record_url=page) for side, end in ends.items()}
        plan = page_of(tmp_path / str(len(page)), [fits(5, 51, 52), fits(6, 61, resource="users")], **side_facts)
        librarian.open(plan.path(HTML))
        links = librarian.all(".card a")
        assert [link.text for link in links] == ["publication 5", "#51", "#52"][:expected]
        assert [link.get_dom_attribute("href") for link in links] == [page.format(id=number) for number in (5, 51, 52)][
            :expected
        ]
        assert all(link.get_dom_attribute("target") == "_blank" for link in links), "decisions may be unsaved"

"""Codes of records of another resource: one that names another record in the target is a question, and is never sent without an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.migration.mapping.codes import differing_codes
from pipelines.migration.mapping.learned_types import TypeLearner
from pipelines.migration.model.resource_types import RESOURCE_TYPES, ResourceType
from pipelines.migration.plan.build import without_questions
from pipelines.records.left_out import LeftOut
from tests.migration.mapping.learning import Json, file_of, learner_between, listing, text_of

MAIN, DEPOT = ("MAIN", "Main stack"), ("DEP", "Depot")


Coded = list[tuple[Any, str]]
"""The code and the name of each record."""


def asked_learners(
    folder: Path,
    copies: list[Json],
    source_codes: Coded,
    target_codes: Coded,
    key: str = "code",
    **resources: tuple[Coded, Coded],
) -> dict[str, TypeLearner]:
    """What is learned of copies, of locations, which have these codes and names in the source and the target, and of other `resources`.

    `key`: the field with the codes.
    """
    source, target = (
        {"hard_copies": listing(folder, f"{side}_copies", records)}
        for side, records in (("here", copies), ("there", []))
    )
    for name, sides in {"locations": (source_codes, target_codes), **resources}.items():
        for side, library, coded in zip(("here", "there"), (source, target), sides, strict=True):
            records = [{"id": number, key: code, "name": title} for number, (code, title) in enumerate(coded, 1)]
            library[name] = listing(folder, f"{side}_{name}", records)
    learners = {name: learner_between(name, source[name], target[name], source, same_service=True) for name in source}
    types = {name: without_questions(learner.type) for name, learner in learners.items()}
    texts = {(name, path): values for name, learner in learners.items() for path, values in learner.texts().items()}
    for name, codes in differing_codes(texts, types, source, target).items():
        learners[name].ask(codes)
    return learners


@pytest.mark.parametrize(
    ("target_codes", "asked"),
    [
        ([("DEP", "Main stack"), ("MAIN", "Depot")], {"DEP", "MAIN"}),
        ([("MAIN", "Main stack"), ("DEP", "Annex")], {"DEP"}),
        ([("MAIN", "Main stack"), ("D", "Depot")], {"DEP"}),
        ([("MAIN", "Main stack")], {"DEP"}),
        ([("MAIN", "main  STACK"), ("DEP", "Depot"), ("ANX", "Annex")], set()),
        ([("MAIN", "Main stack"), (7, "Depot")], {"DEP"}),
    ],
    ids=["swapped", "of another", "renamed", "not there", "equal", "a number"],
)
def test_a_code_is_asked_where_it_names_another_record_in_the_target(
    tmp_path: Path, target_codes: list[tuple[str, str]], asked: set[str]
) -> None:
    copies = [{"id": n, "barcode": f"B{n}", "place": code} for n, code in enumerate(("MAIN", "DEP", "MAIN"), 1)]
    learners = asked_learners(tmp_path, copies, [MAIN, DEPOT], target_codes)
    text = text_of(learners.values())
    file = file_of(text)
    assert {question.field for question in file.questions()} == ({"place"} if asked else set())
    assert {*file.resources["hard_copies"].named["place"].values} == asked
    without_file = without_questions(learners["hard_copies"].type)
    followed = follow_with(learners, text.replace('= "?"', '= "Z"'))
    for record in copies:
        code = record["place"]
        assert followed.form(record).values["place"] == ("Z" if code in asked else code)
        assert ("place" in without_file.form(record).values) == (not asked)
    assert text_of(learners.values(), text) == text


def test_of_codes_that_two_resources_have_those_of_each_are_asked(tmp_path: Path) -> None:
    """Nothing says which of them are meant. The target has another MAIN among its locations, another DEP among its collections."""
    copies = [{"id": n, "barcode": f"B{n}", "place": code} for n, code in enumerate(("MAIN", "DEP"), 1)]
    locations, collections = [("MAIN", "Annex"), DEPOT], [MAIN, ("DEP", "Annex")]
    learners = asked_learners(tmp_path, copies, [MAIN, DEPOT], locations, collections=([MAIN, DEPOT], collections))
    text = text_of(learners.values())
    assert {*file_of(text).resources["hard_copies"].named["place"].values} == {"MAIN", "DEP"}
    assert "values of `code` of locations or `code` of collections" in text
    assert not [form for form in map(follow_with(learners, text).form, copies) if "place" in form.values]


def test_the_number_of_a_location_is_a_code(tmp_path: Path) -> None:
    """In the record that it names, it is no quantity."""
    copies = [{"id": n, "barcode": f"B{n}", "branch": n + 30} for n in (1, 2)]
    source_codes, target_codes = [(31, "Main stack"), (32, "Depot")], [(32, "Main stack"), (31, "Depot")]
    learners = asked_learners(tmp_path, copies, source_codes, target_codes, key="number")
    assert 'branch = { values = { 31 = "?", 32 = "?" } }' in text_of(learners.values())


def follow_with(learners: dict[str, TypeLearner], text: str) -> ResourceType:
    return file_of(text).follow(learners["hard_copies"].type)


@pytest.mark.parametrize("value", [True, 1, {"since": 2020}])
def test_codes_as_keys_are_not_sent(tmp_path: Path, value: Any) -> None:
    """Whatever stands beside them, such as a number that may be an id, too."""
    copies = [{"id": 1, "barcode": "B1", "stock": {"DEP": value, "MAIN": value}}]
    learners = asked_learners(tmp_path, copies, [MAIN, DEPOT], [MAIN, ("DEP", "Annex")])
    learned = without_questions(learners["hard_copies"].type)
    form = learned.form(copies[0])
    assert form.values == {"barcode": "B1"}
    assert {*form.why.values()} == {LeftOut.UNKNOWN_REFERENCE}


def test_a_code_that_came_after_the_answers_is_not_sent_and_one_in_same_is_named(tmp_path: Path) -> None:
    copies = [{"id": n, "barcode": f"B{n}", "place": code} for n, code in enumerate(("MAIN", "DEP"), 1)]
    learners = asked_learners(tmp_path, copies, [MAIN, DEPOT], [("DEP", "Main stack"), ("MAIN", "Depot")])
    for name, line in (("place", 'values = { MAIN = "DEP" }'), ("at", 'from = ["place"], values = { MAIN = "DEP" }')):
        table = f'[hard_copies]\nsame = ["barcode"]\n[hard_copies.fields]\n{name} = {{ {line} }}\n'
        followed = follow_with(learners, table)
        assert followed.form(copies[0]).values[name] == "DEP"
        assert followed.form(copies[1]).why == {name: LeftOut.UNKNOWN_REFERENCE}
    mapping = file_of('[hard_copies]\nsame = ["barcode", "place"]\n')
    assert mapping.follow(learners["hard_copies"].type).form(copies[1]).values["place"] == "DEP"
    assert mapping.doubtful_answers(learners["hard_copies"]) == [
        "hard_copies.place: old-to-new.toml sends DEP, MAIN as they stand: in the target, those are other records."
    ]


def test_codes_of_persons_are_in_no_file(tmp_path: Path) -> None:
    """I10."""
    users = [
        listing(tmp_path, side, [{"id": 1, "email": "a@x.org", "login": login}])
        for side, login in (("here", "anna"), ("there", "ab"))
    ]
    tasks = listing(tmp_path, "tasks", [{"id": 1, "title": "T", "who": "anna"}])
    source, target = {"tasks": tasks, "users": users[0]}, {"tasks": listing(tmp_path, "none", []), "users": users[1]}
    learned = learner_between("tasks", tasks, target["tasks"], source, same_service=True)
    types = {"tasks": learned.type, "users": RESOURCE_TYPES["users"]}
    texts = {("tasks", path): values for path, values in learned.texts().items()}
    learned.ask(differing_codes(texts, types, source, target)["tasks"])
    assert "anna" not in text_of([learned])
    assert learned.type.left_out["who"] == LeftOut.UNKNOWN_REFERENCE


def test_a_code_of_a_location_in_users_is_left_out(tmp_path: Path) -> None:
    """It stands in no file (I10); a person who knows the codes may write what is sent for each."""
    people = [{"id": n, "email": f"{n}@x.org", "place": code} for n, code in enumerate(("MAIN", "DEP"), 1)]
    rooms = [
        listing(tmp_path, side, [{"id": n, "code": code, "name": name} for n, (code, name) in enumerate(coded, 1)])
        for side, coded in (("here", [MAIN, DEPOT]), ("there", [("DEP", "Main stack"), ("MAIN", "Depot")]))
    ]
    users = listing(tmp_path, "users", people)
    source, target = (
        {"users": users, "locations": rooms[0]},
        {"users": listing(tmp_path, "none", []), "locations": rooms[1]},
    )
    learner = learner_between("users", users, target["users"], source, same_service=True)
    assert learner.texts() == {("place"): {"MAIN", "DEP"}}
    types = {"users": learner.type, "locations": RESOURCE_TYPES["locations"]}
    learner.ask(differing_codes({("users", "place"): {"MAIN", "DEP"}}, types, source, target)["users"])
    assert learner.type.left_out["place"] == LeftOut.UNKNOWN_REFERENCE
    assert "MAIN" not in text_of([learner])
    answer = '[users]\nsame = ["email"]\n[users.fields]\nplace = { values = { MAIN = "DEP", DEP = "MAIN" } }\n'
    assert file_of(answer).follow(learner.type).form(people[0]).values["place"] == "DEP"


@pytest.mark.parametrize(
    ("name", "source_codes", "asked"),
    [
        ("place", [(101, "Main stack"), (102, "Depot")], {"101", "102"}),
        ("volume", [(101, "Main stack"), (102, "Depot")], set()),
        ("place", [("2026-11-28", "Main stack"), ("2026-11-29", "Depot")], set()),
        ("place", [("A", "Main stack"), ("A", "Depot")], set()),
        ("place", [(1, "Main stack"), (0, "Depot")], set()),
    ],
    ids=["numbers", "quantities", "dates", "kinds", "a flag"],
)
def test_numbers_may_be_codes_and_quantities_dates_and_what_several_records_have_are_none(
    tmp_path: Path, name: str, source_codes: list[tuple[Any, str]], asked: set[str]
) -> None:
    target_codes = [
        (code, name) for (code, _name), (_code, name) in zip(source_codes, reversed(source_codes), strict=True)
    ]
    copies = [
        {"id": number, "barcode": f"B{number}", name: code} for number, (code, _name) in enumerate(source_codes, 1)
    ]
    learned = asked_learners(tmp_path, copies, source_codes, target_codes)["hard_copies"].type
    assert {*learned.fields[name].values} == asked


def test_what_is_equal_after_a_migration_is_not_asked_although_ids_tell_its_records_apart(tmp_path: Path) -> None:
    """The barcode of a copy, whose records are matched by ids of others where they have none."""
    copies = [{"id": number, "barcode": f"B{number}", "publication_id": number} for number in (1, 2)]
    tasks = [{"id": number, "title": f"T{number}", "copy": f"B{number}"} for number in (1, 2)]
    source = {"hard_copies": listing(tmp_path, "copies", copies), "tasks": listing(tmp_path, "tasks", tasks)}
    moved = [{**copy, "id": copy["id"] + 50, "publication_id": 70} for copy in copies]
    target = {"hard_copies": listing(tmp_path, "moved", moved), "tasks": listing(tmp_path, "none", [])}
    types = {name: RESOURCE_TYPES[name] for name in source}
    texts = {("tasks", "copy"): {"B1", "B2"}}
    assert differing_codes(texts, types, source, target) == {}
    assert differing_codes(texts, types, source, target | {"hard_copies": target["tasks"]}) == {}


def test_what_names_the_record_itself_is_no_code(tmp_path: Path) -> None:
    """Another field has the names of records of the same resource, such as that of the parent."""
    names = ["Sea", "Land", "Air"]
    records = [
        {"id": number, "name": name, "parent": {"pid": number % 3 + 1, "desc": names[number % 3]}}
        for number, name in enumerate(names, 1)
    ]
    source, target = (
        {"collections": listing(tmp_path, side, rows)} for side, rows in (("here", records), ("there", []))
    )
    learner = learner_between("collections", source["collections"], target["collections"], source, same_service=True)
    assert "name" not in learner.texts()
    types = {"collections": without_questions(learner.type)}
    texts = {("collections", path): values for path, values in learner.texts().items()}
    assert "name" not in differing_codes(texts, types, source, target).get("collections", {})


def test_a_text_that_is_always_the_own_code_of_its_record_is_not_asked(tmp_path: Path) -> None:
    """Such as a part of an address, made of the title, also in a list."""
    rooms = [
        [
            {"id": n, "code": code, "name": name, "slug": code.lower(), "seen": [{"at": f"https://a.org/{code}"}]}
            for n, (code, name) in enumerate(coded, 1)
        ]
        for coded in ([MAIN, DEPOT], [MAIN, ("DEP", "Annex")])
    ]
    source, target = (
        {"locations": listing(tmp_path, side, records)} for side, records in zip("st", rooms, strict=True)
    )
    learner = learner_between("locations", source["locations"], target["locations"], source, same_service=True)
    types = {"locations": without_questions(learner.type)}
    texts = {
        ("locations", "slug"): {"main", "dep"},
        ("locations", "seen/at"): {f"https://a.org/{code}" for code, _name in (MAIN, DEPOT)},
    }
    assert differing_codes(texts, types, source, target) == {}

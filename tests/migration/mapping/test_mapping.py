"""The mapping file: it parses whatever the libraries have, keeps each line of a person, and a mistake in it is named."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipelines.errors import ConfigurationError
from pipelines.migration.mapping.learned_types import TypeLearner
from pipelines.migration.mapping.mapping_file import fields_defined_by
from pipelines.migration.mapping.proposal import propose
from pipelines.migration.model.comparable import Form
from pipelines.migration.model.field_mapping import FieldMapping, plain
from pipelines.migration.model.publication_type import publication_type
from pipelines.migration.model.reasons import TASK_COMPLETED
from pipelines.migration.model.resource_types import RESOURCE_TYPES, MergeRequest, ResourceType
from pipelines.migration.plan.mapped_references import mapped
from pipelines.records.identifiers.kinds import STANDARD_KINDS
from pipelines.records.left_out import LeftOut
from pipelines.records.paths import objects_of
from pipelines.shapes.model import FieldSchema, PayloadSchema, ResourceSchema
from tests.migration.mapping.learning import (
    Json,
    body_of,
    body_of_values,
    file_of,
    learner_between,
    learner_of,
    listing,
    of_type,
    takes,
    text_of,
)

JSON_TYPES = ["string", "integer", "number", "boolean", "object", "array", "null"]


@pytest.mark.parametrize(
    ("source_words", "target_words", "asked"),
    [
        ("available on_loan", "frei verliehen", {"available", "on_loan"}),
        ("available on_loan", "frei on_loan", {"available"}),
        ("available on_loan", "available", set()),
        ("available on_loan", "2026-01-02 2026-01-03", set()),
        ("available on_loan", "", set()),
        ("a b c d e f", "frei verliehen", set()),
    ],
    ids=["others", "one is the same", "not yet used", "dates", "none", "texts"],
)
def test_words_that_the_target_never_has_are_asked(
    tmp_path: Path, source_words: str, target_words: str, asked: set[str]
) -> None:
    """An enumeration shows in records, too, where no description has it. What people write freely is none."""
    sides = [
        [
            {"id": n, "title": f"T{n}", "state": words[n % len(words)], "desk_notes": words[n % len(words)]}
            for n in range(size)
            if words
        ]
        for words, size in ((source_words.split(), 8), (target_words.split(), 3))
    ]
    learner = learner_of(tmp_path, sides[0], target=sides[1])
    text = text_of([learner])
    mapping = file_of(text).resources["tasks"]
    assert {*mapping.named["state"].values} == asked
    assert "desk_notes" in mapping.same
    assert ("have other words there: frei" in text) == bool(asked)
    assert text_of([learner], text) == text


scalars = st.none() | st.booleans() | st.integers(-3, 2**70) | st.floats(allow_nan=False) | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("id"), inner, max_size=3),
    max_leaves=6,
)
names = st.text(min_size=1, max_size=8) | st.sampled_from(
    ["location_id", "publicationId", "of", "subject", "a.b", 'a"b', "due", "[tasks]", "same", "#"]
)
schemas = st.builds(
    FieldSchema,
    st.lists(st.sampled_from(JSON_TYPES), max_size=2),
    choices=st.lists(st.text(max_size=4), max_size=2),
    read_only=st.booleans(),
)
payloads = st.builds(
    PayloadSchema,
    st.dictionaries(names, schemas, max_size=4),
    required=st.lists(names, max_size=3),
    is_open=st.booleans(),
)
descriptions = st.builds(ResourceSchema, create=st.none() | payloads)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    records=st.lists(st.dictionaries(names, values, max_size=4), min_size=1, max_size=4),
    later=st.lists(st.dictionaries(names, values, max_size=4), min_size=1, max_size=2),
    description=descriptions,
)
@example(
    records=[{"a:b": None, "a;b": None}],
    later=[{"a:b": {"id": 0}}],
    description=takes(**{"0": "", "a;b": ""}),
)
@example(
    records=[{"a:b": None}],
    later=[{"A:B": ["1"]}],
    description=takes(**{"a:b": ""}),
)
@example(
    records=[{}],
    later=[{"<": None}],
    description=takes("<", **{":": ""}),
)
@example(
    records=[{}],
    later=[{"a:b": None}],
    description=takes("a:b", **{"A:B": ""}),
)
def test_the_file_parses_and_is_stable_and_keeps_its_lines(
    records: list[Json], later: list[Json], description: ResourceSchema
) -> None:
    """Whatever the libraries have and describe; also after they changed. What was sent as it stood may have become a question."""
    with TemporaryDirectory() as folder:
        first, second = (
            learner_of(
                Path(folder),
                [{**record, "id": number, "title": f"T{number}"} for number, record in enumerate(snapshot, 1)],
                description,
            )
            for snapshot in (records, later)
        )
        text = text_of([first])
        changed = text_of([second], text)
        assert text_of([first], text) == text
        assert text_of([second], changed) == changed
    before, after = (file_of(version).resources["tasks"] for version in (text, changed))
    with_values = {name for name, field in after.named.items() if field.values}
    asked = {*before.same} - {*after.same}
    assert asked <= objects_of(f"{name}/" for name, field in after.fields.items() if field.asks_where)
    kept = {line for line in text.splitlines() if with_values.isdisjoint(fields_defined_by(line))}
    assert {line for line in kept if not (asked and line.startswith("same ="))} <= {*changed.splitlines()}
    for name, field in before.named.items():
        if name in asked:
            continue
        assert field.values.items() <= after.named[name].values.items()
        assert replace(after.named[name], values=field.values) == field
    decided = {key for name, field in after.named.items() for key in (name, *field.keys_of(name))} | {*after.left_out}
    decided |= objects_of(decided)
    fields = second.type.fields.items()
    assert all(not decided.isdisjoint((*field.keys_of(name), *objects_of([name]))) for name, field in fields)


def test_what_is_asked_and_what_an_answer_does(tmp_path: Path) -> None:
    """A reference, values that the target does not take, and a field that it demands."""
    records = [
        {"id": 1, "title": "A", "shelf": 1, "state": "open", "colour": "red"},
        {"id": 2, "title": "B", "shelf": 2, "state": "shut", "colour": "red"},
    ]
    states = of_type(choices=["open", "closed"])
    learner = learner_of(tmp_path, records, takes("title", "desk", title="", shelf="", state=states, desk=""))
    text = text_of([learner])
    file = file_of(text)
    asked = [text.splitlines()[question.line - 1] for question in file.questions()]
    assert asked == ['shelf = { leads_to = "?" }', 'state = { values = { shut = "?" } }', 'desk = { fill = "?" }']
    assert "locations" in text.splitlines()[file.questions()[0].line - 2]
    numbers = [question.line for question in file.questions()]
    fields = ", ".join(f"{name} (line {line})" for name, line in zip(("shelf", "state", "desk"), numbers, strict=True))
    assert file.unanswered("tasks") == f"in mappings/old-to-new.toml {fields} have no answer"
    unanswered = file.follow(learner.type)
    assert unanswered.form(records[0]).values == {"title": "A"}
    assert unanswered.left_out["shelf"] == LeftOut.UNKNOWN_REFERENCE

    answered = text.replace('shut = "?"', 'shut = "closed"').replace('fill = "?"', "fill = 3")
    learned = file_of(answered.replace('leads_to = "?"', 'leads_to = "locations"')).follow(learner.type)
    assert learned.references == {"shelf": ("locations",)}
    form = learned.form(records[1])
    assert (form.values, form.empty) == ({"title": "B", "state": "closed", "shelf": 2}, {"desk": 3})
    assert form.why == {"colour": LeftOut.NOT_DESCRIBED}
    assert learned.of_target.form({"state": "shut"}).values == {"state": "shut"}, (
        "the target's values stand as they are"
    )
    kept = file_of(text.replace('shut = "?"', 'shut = "shut"')).follow(learner.type)
    assert kept.form(records[1]).values["state"] == "shut", "whatever the description says"
    assert kept.form({"state": "lost"}).why == {"state": LeftOut.NOT_A_CHOICE}, "a value that came later"
    plain = file_of(answered.replace('leads_to = "?"', 'leads_to = "nothing"')).follow(learner.type)
    assert (plain.references, plain.form(records[1]).values["shelf"]) == ({}, 2)


def test_values_within_objects_are_asked_too(tmp_path: Path) -> None:
    """In an object, and in the entries of a list, where a value that came later is asked in the same line."""
    records = [
        {
            "id": number,
            "title": "A",
            "held": {"location_id": 1, "state": state},
            "lent": [{"location_id": 2, "state": state}],
        }
        for number, state in enumerate(("in", "out"), 1)
    ]
    members = {"location_id": of_type("integer"), "state": of_type("string", choices=["IN", "OUT", "LOST"])}
    lent = of_type("array", entries=of_type(members=members))
    schema = takes(title="", held=of_type("object", members=members), lent=lent)
    text = text_of([learner_of(tmp_path, records[:1], schema)])
    assert '"held/state" = { values = { in = "?" } }' in text.splitlines()
    entries = 'location_id = { leads_to = "locations" }, state = { values = { in = "?" } }'
    assert f"lent = {{ many = true, entries = {{ {entries} }} }}" in text.splitlines()
    assert "; state: one of IN, OUT, LOST" in text
    learner = learner_of(tmp_path, records, schema)
    answered = text.replace('in = "?" } }\n', 'in = "IN" } }  # as we said\n').replace('in = "?"', 'in = "IN"')
    later = text_of([learner], answered)
    assert later.count('values = { in = "IN", out = "?" }') == 2
    assert '"held/state" = { values = { in = "IN", out = "?" } }  # as we said' in later
    assert len(later.splitlines()) == len(answered.splitlines())
    learned = file_of(later.replace('out = "?"', 'out = "OUT"')).follow(learner.type)
    sent = body_of(learned, records[1])
    assert (sent["held"]["state"], sent["lent"][0]["state"]) == ("OUT", "OUT")


LOANS: list[Json] = [
    {
        "id": number,
        "title": f"T{number}",
        "loans": [{"publication_id": 5, "by": number, "note": "x"}],
        "at": {"by": {"number": number}, "row": "R"},
        "user": {"id": 5, "name": "A"},
        "kept": {str(number): "x"},
    }
    for number in (1, 2)
]


@pytest.mark.parametrize(
    ("line", "sent"),
    [
        ('lent = { from = ["loans"], many = true, entries = { by = {}, note = {} } }', None),
        ('lent = { from = ["loans"], many = true, entries = { who = { from = ["by"] }, note = {} } }', None),
        ('lent = { from = ["loans"], many = true, entries = { what = { from = ["note"] } } }', [{"what": "x"}]),
        (
            'lent = { from = ["loans"], many = true, entries = { by = { leads_to = "locations" } } }',
            [{"by": 9}],
        ),
        ('lent = { from = ["at/by"] }', None),
        ('lent = { from = ["at/by/number"] }', None),
        ('lent = { from = ["at/row"] }', "R"),
        ('lent = { from = ["user/id"] }', None),
        ('lent = { from = ["user/name"] }', "A"),
        ('lent = { from = ["kept/1"] }', None),
        ('lent = { from = ["user"], leads_to = "users" }', 9),
        ('lent = { from = ["loans"], many = true, entries = { by = { many = true, entries = { z = {} } } } }', None),
    ],
)
def test_a_line_with_another_name_moves_no_number_and_has_come_back_under_its_own(
    tmp_path: Path, line: str, sent: Any
) -> None:
    """What it says of the source is not what the target has."""
    learner = learner_of(tmp_path, LOANS, read=["publications", "users"])
    followed = file_of(f'[tasks]\nsame = ["title"]\n[tasks.fields]\n{line}').follow(learner.type)
    led = mapped(followed, followed.form(LOANS[0]), lambda _resource, _number: (True, 9))
    body = body_of_values(followed, led.values)
    assert body == {"title": "T1"} | ({} if sent is None else {"lent": sent})
    assert followed.of_target.compared_record(body) == followed.compared(led.values)
    named = json.dumps([body, followed.form(LOANS[0]).unsent])
    assert all(f'"{value}"' in named for value in ("x", "R")), "nothing is lost without a word"


@pytest.mark.parametrize(
    ("at", "unsent"),
    [
        ({"location_id": 1, "row/column": "A"}, {"at/row~1column": "A"}),
        ({"location_id": 1, "later": "A"}, {"at/later": "A"}),
        (7, {"at": 7}),
        (["A"], {"at": ["A"]}),
        ([{"location_id": 1}], {"at/location_id": [1]}),
        (None, {}),
        (
            {"location_id": 1, "id": 3, "links": {"self": "/at/3"}, "created_at": "2020-01-02"},
            {"at/created_at": "2020-01-02"},
        ),
    ],
)
def test_what_an_object_has_besides_is_named(tmp_path: Path, at: Any, unsent: Json) -> None:
    """Also where a record has something else in its place, or its name has the sign of a path."""
    record = {"id": 1, "title": "T", "at": {"location_id": 1, "row": "R"}}
    learner = learner_of(tmp_path, [record])
    assert learner.type.form(record).unsent == {}
    assert learner.type.form(record | {"at": at}).unsent == unsent


@pytest.mark.parametrize("resource", ["tasks", "users"])
def test_a_demanded_field_that_is_left_out_is_filled_and_never_sent(tmp_path: Path, resource: str) -> None:
    record = {"id": 1, "title": "A", "kept": {"1": "lent", "2": "here"}, "filled": {"by": 1}}
    schema = takes("kept", "filled", title="", kept="", filled=of_type(read_only=True))
    learner = learner_of(tmp_path, [record], schema, resource)
    text = text_of([learner])
    lines = [line for line in text.splitlines() if "'new' demands it" in line]
    assert "what records have is not sent. It may name records" in lines[0]
    form = file_of(text.replace('fill = "?"', "fill = []")).follow(learner.type).form(record)
    assert (form.values, form.empty) == ({"title": "A"}, {"kept": [], "filled": []})
    assert form.why == {"kept": LeftOut.UNKNOWN_REFERENCE, "filled": LeftOut.READ_ONLY}


def test_what_is_documented_is_no_question_although_it_is_demanded(tmp_path: Path) -> None:
    schema = takes("title", title="string", subtitle="string")
    learner = learner_of(tmp_path, [{"id": 1, "title": "A", "subtitle": "B"}], schema, "publications")
    file = file_of(text_of([learner]))
    assert (file.resources["publications"].same, file.questions()) == (("subtitle",), [])


def test_what_services_fill_themselves_is_named_in_the_file(tmp_path: Path) -> None:
    """By its name alone: who knows better moves it to `same`, and it is sent."""
    record = {
        "id": 1,
        "title": "A",
        "copies_count": 3,
        "created_at": "2020-01-02",
        "url": "https://library.example.org/1",
    }
    learner = learner_of(tmp_path, [record])
    text = text_of([learner])
    assert {*file_of(text).resources["tasks"].left_out} == {"copies_count", "url"}
    assert "the service fills this field itself" in text
    assert text_of([learner], text) == text
    left_out = file_of(text).follow(learner.type).form(record)
    assert left_out.why == dict.fromkeys(("copies_count", "url"), LeftOut.FILLED_BY_SERVICE)
    sent = file_of('[tasks]\nsame = ["title", "copies_count"]').follow(learner.type).form(record)
    assert sent.values == {"title": "A", "copies_count": 3}


AUTHOR = {"name": "Ada", "type": "person", "orcid": "0000-0002-1825-0097", "role": "editor"}
"""An author with more than the service documents."""


def takes_of_author(**members: str | FieldSchema) -> FieldSchema:
    """Authors as a description has them, of which these members are taken beside a name and a type."""
    described = {name: of_type(types) if isinstance(types, str) else types for name, types in members.items()}
    entries = of_type("object", members=described | {name: of_type("string") for name in ("name", "type")})
    return of_type("array", entries=entries)


def publication_form(file: str, learner: TypeLearner, record: Json) -> Form:
    """What a file sends of a publication."""
    return publication_type(STANDARD_KINDS, learned=file_of(file).follow(learner.type)).form(record)


@pytest.mark.parametrize("described", [False, True])
def test_what_publications_and_their_authors_have_besides_is_in_the_file_and_follows_it(
    tmp_path: Path, *, described: bool
) -> None:
    """A counter that people may write, and members of authors; what the description takes is sent without a further word."""
    record = {"id": 1, "title": "A", "page_count": 320, "authors": [AUTHOR, "Bea", {"name": "Cy", "orcid": ""}]}
    authors = takes_of_author(orcid="string null", href=of_type("string", read_only=True))
    schema = takes(title="string", page_count="integer", authors=authors) if described else None
    learner = learner_of(tmp_path, [record], schema, "publications")
    text = text_of([learner])
    mapping, of_authors = (
        file_of(text).resources["publications"],
        {"authors": FieldMapping(many=True, entries=plain("orcid"))},
    )
    assert (mapping.same, mapping.fields) == ((("page_count",), of_authors) if described else ((), {}))
    assert {*mapping.left_out} == ({"authors/role"} if described else {"page_count", "authors/orcid", "authors/role"})
    assert text_of([learner], text) == text
    documented = {name: AUTHOR[name] for name in ("name", "type")}
    full_file = (
        '[publications]\nsame = ["page_count"]\nfields.authors = { many = true, entries = { orcid = {}, role = {} } }'
    )
    for file, counter, author_sent in (
        (text, 320, documented | {"orcid": AUTHOR["orcid"]}) if described else (text, None, documented),
        (full_file, 320, AUTHOR),
    ):
        sent = publication_form(file, learner, record)
        other_authors = [{"name": name, "type": "person"} for name in ("Bea", "Cy")]
        assert (sent.values.get("page_count"), sent.values["authors"]) == (counter, [author_sent, *other_authors])
        assert ("authors[0].role" in sent.why) == (file == text)
    assert publication_form(text, learner, record).why["authors[0].role"] == (
        LeftOut.NOT_DESCRIBED if described else LeftOut.NOT_SHOWN
    )


@pytest.mark.parametrize("member", ["authority_id", "authorityId", "authority"])
def test_a_record_to_which_an_author_leads_is_sent_with_the_author(tmp_path: Path, member: str) -> None:
    """Where the target lacks that record, the author is sent without it, which is named; no number of the source is sent."""
    value: Any = {"id": 5, "name": "A"} if member == "authority" else 5
    record = {"id": 1, "title": "T", "authors": [AUTHOR | {member: value}, {"name": "B"}]}
    described = of_type("object", members={"id": of_type("integer")}) if member == "authority" else "integer"
    schema = takes(title="string", authors=takes_of_author(orcid="string", **{member: described}))
    learner = learner_of(tmp_path, [record], schema, "publications", ["authorities"])
    text = text_of([learner])
    assert file_of(text).questions() == []
    learned = publication_type(STANDARD_KINDS, learned=file_of(text).follow(learner.type))
    author = {name: AUTHOR[name] for name in ("name", "type", "orcid")}
    sent: Any = {"id": 9} if member == "authority" else 9
    assert body_of(learned, record)["authors"] == [author | {member: sent}, {"name": "B", "type": "person"}]
    assert body_of(learned, record, lambda *_: (False, None))["authors"] == [author, {"name": "B", "type": "person"}]
    form = mapped(learned, learned.form(record), lambda *_: (False, None))
    assert form.why[f"authors[0].{member}"] == LeftOut.NO_RECORD
    assert learned.content(learned.compared_record(record)) == learned.content(
        learned.compared_record(body_of(learned, record))
    ), "numbers are valid in their own library only"


def test_the_target_keeps_a_reference_of_an_author_that_leads_nowhere(tmp_path: Path) -> None:
    """Of the author of that name; another reference of that author is sent. Where it is not clear which it is, the whole list is kept."""
    record = {"id": 1, "title": "T", "authors": [AUTHOR | {"authority_id": 5, "user_id": 6}, {"name": "B"}]}
    members = {"orcid": "string", "authority_id": "integer", "user_id": "integer"}
    schema = takes(title="string", authors=takes_of_author(**members))
    learner = learner_of(tmp_path, [record], schema, "publications", ["authorities", "users"])
    learned = publication_type(STANDARD_KINDS, learned=file_of(text_of([learner])).follow(learner.type))
    for target_authors, kept in (
        ([{"name": "B"}, AUTHOR | {"authority_id": 77}], {"authority_id": 77}),
        ([AUTHOR | {"authority_id": 77, "orcid": "another"}], {"authority_id": 77}),
        ([{"name": "B"}, AUTHOR, AUTHOR], {}),
    ):
        form = learned.form({"id": 2, "title": "T", "authors": target_authors})
        sent = mapped(learned, learned.form(record), lambda resource, _: (resource == "users", 9), form)
        author = {name: AUTHOR[name] for name in ("name", "type", "orcid")}
        assert sent.values["authors"] == [author | kept | {"user_id": 9}, {"name": "B", "type": "person"}]
        assert sent.why["authors[0].authority_id"] == LeftOut.NO_RECORD
    for target_authors in (
        [{"name": "B"}, AUTHOR | {"authority_id": 77}, AUTHOR],
        [{"name": "B"}, AUTHOR | {"authority_id": 77, "name": "A. Author"}],
    ):
        form = learned.form({"id": 2, "title": "T", "authors": target_authors})
        sent = mapped(learned, learned.form(record), lambda resource, _: (resource == "users", 9), form)
        assert (sent.values, sent.why["authors"], sent.unknown) == ({"title": "T"}, LeftOut.NO_RECORD, {"authors"})


@pytest.mark.parametrize(
    ("in_target", "sent", "expected"),
    [
        ([{"name": "Ada  L", "x": 1}], [{"name": "Ada L", "role": "a"}], [{"name": "Ada L", "role": "a", "x": 1}]),
        ([{"name": "A", "x": 1}, {"name": "A", "x": 2}], [{"name": "A"}], [{"name": "A"}]),
        (
            [{"name": "A", "x": 1}, {"name": "B", "x": 2}, {"name": "A", "x": 3}],
            [{"name": "B"}, {"name": "A"}, {"name": "A"}],
            [{"name": "B", "x": 2}, {"name": "A", "x": 1}, {"name": "A", "x": 3}],
        ),
        ([{"id": 5, "x": 1}, {"id": {"id": 6}, "x": 2}], [{"id": 6}, {"id": 7}], [{"id": 6, "x": 2}, {"id": 7}]),
        ([{"name": "A", "role": "a", "x": None}, "B", None], [{"name": "A"}], [{"name": "A", "x": None}]),
        ("A", [{"name": "A"}], [{"name": "A"}]),
        (
            [{"name": "A", "id": 1, "x": 1}, {"name": "A", "id": 7, "x": 7}, {"name": "C", "id": 7, "x": 8}],
            [{"name": "C", "id": 7}, {"name": "A", "id": 7}, {"name": "A, B.", "id": 1}],
            [{"name": "C", "id": 7, "x": 8}, {"name": "A", "id": 7, "x": 7}, {"name": "A, B.", "id": 1, "x": 1}],
        ),
        ([{"id": [5, 6], "x": 1}, {"id": [6], "x": 2}], [{"id": [6]}], [{"id": [6], "x": 2}]),
        ([{"name": "A", "at": {"room": 1, "x": 2}}], [{"name": "A"}], [{"name": "A", "at": {"x": 2}}]),
        ([{"name": "A", "y": 1}], [{"name": "A"}], [{"name": "A"}]),
    ],
)
def test_what_the_mapping_does_not_know_of_an_object_is_sent_again(in_target: Any, sent: Any, expected: Any) -> None:
    """Of the object that leads to the same record, or has the name; of none where one side has more of these."""
    entries = plain("name", "role", "at/room") | {"id": FieldMapping(leads_to="users", many=True)}
    field = FieldMapping(many=True, entries=entries)
    assert field.with_unknown("items", sent, {"items": in_target}, lambda member: member != "y") == expected


def test_the_address_of_a_record_that_an_author_has_is_sent_as_it_stands_where_a_person_said_so() -> None:
    links = {"authority": {"href": "https://a/authorities/5"}, "user": {"href": "https://a/users/6"}}
    parts = {"_links/authority/href": FieldMapping(leads_to="nothing", sent_as="text")}
    learned = ResourceType("publications", {"authors": FieldMapping(many=True, entries=parts)}, ())
    form = publication_type(STANDARD_KINDS, learned=learned).form({"authors": [{"name": "A", "_links": links}]})
    assert form.values["authors"][0]["_links/authority/href"] == "https://a/authorities/5"
    assert [path for path in form.why if "_links" in path and "authority" in path] == []
    assert form.why["authors[0]._links.user"] == LeftOut.LINK


def test_lists_within_authors_go_without_what_is_not_there(tmp_path: Path) -> None:
    """Without what the target lacks, and at first without what is still to be created, which is never null; it keeps what it has."""
    units = [{"authority_id": 5, "role": "lead"}, {"authority_id": 6}]
    record = {"id": 1, "title": "T", "authors": [{"name": "A", "authority_ids": [5, 6], "units": units}]}
    entries = of_type(members={"authority_id": of_type("integer"), "role": of_type("string")})
    ids, of_units = of_type("array", entries=of_type("integer")), of_type("array", entries=entries)
    schema = takes(title="string", authors=takes_of_author(authority_ids=ids, units=of_units))
    learner = learner_of(tmp_path, [record], schema, "publications", ["authorities"])
    learned = publication_type(STANDARD_KINDS, learned=file_of(text_of([learner])).follow(learner.type))
    sent = mapped(learned, learned.form(record), lambda _, number: (number == 5, 9))
    author = {"name": "A", "type": "person"}
    assert sent.values["authors"] == [author | {"authority_ids": [9], "units": [{"authority_id": 9, "role": "lead"}]}]
    assert sent.unsent == {"authors[0].authority_ids": 6, "authors[0].units": 6}
    target_author: Json = author | {"authority_ids": [77, 9], "units": [{"authority_id": 77, "role": "lead"}]}
    target_form = learned.form({"id": 2, "title": "T", "authors": [target_author]})
    kept = mapped(learned, learned.form(record), lambda _, number: (number == 5, 9), target_form)
    assert kept.values["authors"] == [
        target_author | {"units": [*target_author["units"], {"authority_id": 9, "role": "lead"}]}
    ]
    waiting = mapped(learned, learned.form(record), lambda _, number: (True, 9 if number == 5 else None))
    assert waiting.at_once == {"authors": sent.values["authors"]}
    assert mapped(learned, learned.form(record), lambda *_: (True, None)).at_once == {
        "authors": [author | {"units": [{"role": "lead"}]}]
    }


def test_members_of_authors_that_the_target_does_not_take_are_left_out(tmp_path: Path) -> None:
    """Each with its own reason, at any depth; what is empty is none."""
    unit = {"authority_id": 5, "role": "lead", "note": "n"}
    author = {"name": "A", "type": "person", "born": "around 1950", "units": [unit], "agent": None}
    units = of_type(
        "array", entries=of_type("object", members={"authority_id": of_type("integer"), "role": of_type("")})
    )
    schema = takes(title="string", authors=takes_of_author(born="integer", units=units, agent="string"))
    record = {"id": 1, "title": "T", "authors": [author, {"name": "B", "born": 1950, "agent": "x"}]}
    learner = learner_of(tmp_path, [record], schema, "publications", ["authorities"])
    form = publication_form(text_of([learner]), learner, record)
    assert form.values["authors"][0] == {"name": "A", "type": "person", "units": [{"authority_id": 5, "role": "lead"}]}
    assert form.why == {"authors[0].born": LeftOut.OTHER_TYPE, "authors[0].units/note": LeftOut.NOT_DESCRIBED}


def test_the_number_of_an_entry_beside_a_reference_called_like_its_list_is_no_link(tmp_path: Path) -> None:
    """As in rows of a junction. What has a name is a record; among those of their own resource, the other may be the record above."""
    row = {"id": 5, "collections_id": 6, "sort": 1}
    record = {"id": 1, "title": "A", "collections": [row]}
    learned = learner_of(tmp_path, [record], None, "tasks", ["collections"]).type
    parts = learned.fields["collections"].entries
    assert (parts["collections_id"].leads_to, {*parts}) == ("collections", {"collections_id", "sort"})
    assert "id" in learner_of(tmp_path, [record], None, "collections").type.fields["collections"].entries
    named = {"id": 1, "title": "A", "collections": [row | {"title": "B"}]}
    assert learner_of(tmp_path, [named], None, "tasks", ["collections"]).type.left_out == {}


def test_numbers_of_authors_that_may_be_ids_are_asked_about(tmp_path: Path) -> None:
    """Until then, authors are sent as documented. An answer that they are none sends them as they stand."""
    record = {"id": 1, "title": "T", "authors": [AUTHOR | {"mark": 5}, {"name": "B", "mark": 6}]}
    schema = takes(title="string", authors=takes_of_author(orcid="string", mark="integer"))
    learner = learner_of(tmp_path, [record], schema, "publications", ["authorities"])
    text = text_of([learner])
    assert [question.field for question in file_of(text).questions()] == ["authors"]
    form = publication_form(text, learner, record)
    assert form.values["authors"][1] == {"name": "B", "type": "person"}
    assert form.why["authors[1].mark"] == LeftOut.UNKNOWN_REFERENCE
    answered = publication_form(text.replace('"?"', '"nothing"'), learner, record)
    assert answered.values["authors"][1] == {"name": "B", "type": "person", "mark": 6}


def test_a_reference_that_a_list_has_twice_is_sent_twice(tmp_path: Path) -> None:
    """A target that keeps it once is equal."""
    record = {"id": 1, "title": "A", "location_ids": [2, 1, 2]}
    learned = learner_of(tmp_path, [record]).type
    body = body_of(learned, record, lambda _resource, number: (True, number + 100))
    assert body == {"title": "A", "location_ids": [102, 101, 102]}
    assert learned.compared_record(body) == learned.compared_record(body | {"location_ids": [101, 102]})


def test_a_demanded_field_that_some_records_lack_is_a_question(tmp_path: Path) -> None:
    records = [{"id": 1, "title": "A", "desk": "east"}, {"id": 2, "title": "B", "desk": None}]
    learner = learner_of(tmp_path, records, takes("title", "desk", title="", desk=""))
    text = text_of([learner])
    assert [question.field for question in file_of(text).questions()] == ["desk"]
    assert "'new' demands it: say what new records get of the 1 that lack it, or take `fill` away" in text
    filled = file_of(text.replace('fill = "?"', 'fill = "main"')).follow(learner.type)
    assert [filled.form(record).whole["desk"] for record in records] == ["east", "main"]
    without_fill = text.replace('{ fill = "?" }', "{}")
    assert file_of(without_fill).questions() == []
    assert text_of([learner], without_fill) == without_fill


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("[users.fields]\na = {leads_to='?'}\n[tasks.fields.b]\nmany = true\nleads_to = '?'", [2, 5]),
        ('[tasks.fields]\na.many = true\na.leads_to = "?"\n[tasks.fields.b.values]\nx = "y"\nz = "?"', [3, 6]),
        ("[ tasks.'fields' ]  # '?'\na = { leads_to = '?' }", [2]),
    ],
)
def test_a_question_is_found_in_whatever_form_of_toml(text: str, lines: list[int]) -> None:
    assert [question.line for question in file_of(text).questions()] == lines


def test_answers_that_the_description_does_not_take_are_named(tmp_path: Path) -> None:
    """And followed all the same, because a description may be wrong."""
    states = of_type("string", choices=["open", "done"])
    schema = takes("title", "desk", title="string", state=states, desk="integer")
    learner = learner_of(tmp_path, [{"id": 1, "title": "A", "state": "shut"}], schema)
    text = text_of([learner])
    assert "it takes a whole number, such as 1 without quotes" in text
    for state, desk, named in (("done", "1", []), ("DONE", '"1"', ["state", "desk"])):
        answered = file_of(text.replace('shut = "?"', f'shut = "{state}"').replace('fill = "?"', f"fill = {desk}"))
        doubts = answered.doubtful_answers(learner)
        assert [doubt.partition(":")[0] for doubt in doubts] == [f"tasks.{name}" for name in named]
        assert answered.follow(learner.type).form({"id": 2, "title": "B", "state": "shut"}).values["state"] == state


@pytest.mark.parametrize(
    ("value", "example"),
    [
        (
            [{"location_id": 1, "on": "2020-01-02", "by": "Ann", "at": ["B7", "B8"]}],
            '[{"location_id":1,"on":"2020-01-02","by":"…","at":["B7"]}]',
        ),
        ([{"location_id": 1, "of": "Publication", "by": "my book"}], '[{"location_id":1,"of":"Publication","by":"…"}]'),
    ],
)
def test_a_line_has_an_example_without_what_may_be_personal(tmp_path: Path, value: list[Json], example: str) -> None:
    """The name of a resource is none, and says of which kind the record beside it is."""
    [line] = [
        line
        for line in text_of([learner_of(tmp_path, [{"id": 1, "title": "A", "place": value}])]).splitlines()
        if line.startswith(("place", "# 1 of 1"))
    ]
    assert f"such as {example}" in line


KINDS = [("Location", 1), ("User", 5), ("Location", 2)]
"""The library of these tests has locations 1 and 2, users 5 and 6."""

PAIRS: list[Callable[[str, int], Json]] = [
    lambda kind, number: {"subject_type": kind, "subject_id": number},
    lambda kind, number: {"ownerId": str(number), "ownerType": kind},
    lambda kind, number: {"items": [{"item_type": kind, "item_id": number, "position": place} for place in (1, 2)]},
    lambda kind, number: {"about": {"kind": kind, "number": number}},
    lambda kind, number: {"of": {"type": kind, "id": number}},
    lambda kind, number: {"location": {"data": {"type": kind, "id": str(number)}}},
    lambda kind, number: {"locations": [{"data": {"type": kind, "id": str(number)}}]},
]


def of_drupal(kind: str, number: int) -> Json:
    return {"about": {"data": [{"type": f"node--{kind}", "id": str(number)}]}}


def with_kinds(
    folder: Path, pair: Callable[[str, int], Json], kinds: Sequence[tuple[str, int]], *, described: bool = False
) -> TypeLearner:
    records = [{"id": 1 + row, "title": f"T{row}", **pair(*kind)} for row, kind in enumerate(kinds)]
    fields = {name: described_as(value) for name, value in records[0].items()}
    folder.mkdir(exist_ok=True)
    return learner_of(folder, records, takes(**fields) if described else None, read=["users"])


def described_as(value: Any) -> FieldSchema:
    """The description of a value."""
    if isinstance(value, dict):
        return of_type("object", members={name: described_as(member) for name, member in value.items()})
    if isinstance(value, list):
        return of_type("array", entries=described_as(value[0]))
    return of_type("integer" if isinstance(value, int) else "string")


@pytest.mark.parametrize("pair", [*PAIRS, of_drupal])
@pytest.mark.parametrize("described", [False, True])
def test_references_to_records_of_several_kinds_lead_to_those_of_each_kind(
    tmp_path: Path, pair: Callable[[str, int], Json], *, described: bool
) -> None:
    """As `users` 5 and `locations` 1 became `users` 50 and `locations` 10, with the kind beside the number."""
    learner = with_kinds(tmp_path, pair, KINDS, described=described)
    file = file_of(text_of([learner]))
    assert not file.questions()
    sent = [learner.type, file.follow(learner.type)]
    for row, (kind, number) in enumerate(KINDS):
        record = {"id": 1 + row, "title": f"T{row}", **pair(kind, number)}
        for learned in sent:
            led = mapped(learned, learned.form(record), lambda resource, number: (resource != "tasks", number * 10))
            body = body_of_values(learned, led.values)
            assert (body, led.unsent) == ({"title": f"T{row}", **pair(kind, number * 10)}, {})
            of_target = learned.of_target.form({"id": 9, **body})
            assert learned.compared(of_target.values) == learned.compared(led.values)


def test_a_kind_that_is_a_number_is_of_one_library(tmp_path: Path) -> None:
    """Such as that of a table: neither it nor the id is sent, and no answer could say more."""
    records = [{"id": n, "title": f"T{n}", "subject_type": kind, "subject_id": 5} for n, kind in enumerate((7, 9), 1)]
    learner = learner_of(tmp_path, records, read=["users"])
    text = text_of([learner])
    assert {"subject_id"} <= {*file_of(text).resources["tasks"].left_out}
    assert "subject_id" not in body_of(file_of(text).follow(learner.type), records[0])


@pytest.mark.parametrize("pair", PAIRS)
def test_a_kind_that_names_nothing_is_a_question(tmp_path: Path, pair: Callable[[str, int], Json]) -> None:
    kinds = [*KINDS, ("Desk", 2)]
    learner = with_kinds(tmp_path, pair, kinds)
    text = text_of([learner])
    [question] = file_of(text).questions()
    lines = text.splitlines()
    assert 'Desk = "?"' in lines[question.line - 1]
    assert "are of: Desk: tasks, locations." in lines[question.line - 2]
    assert text_of([learner], text) == text
    desk = {"id": 4, "title": "T3", **pair("Desk", 2)}
    before = text_of([with_kinds(tmp_path / "before", pair, KINDS)])
    assert [asked.field for asked in file_of(text_of([learner], before)).questions()] == [question.field]
    later = file_of(before).follow(learner.type)
    led = mapped(later, later.form(desk), lambda *_: (True, 3))
    assert (led.values, {*led.why.values()}) == ({"title": "T3"}, {LeftOut.UNKNOWN_REFERENCE})
    for learned in (learner.type, file_of(text).follow(learner.type)):
        open_fields = {name for name, field in learned.fields.items() if field.is_open}
        assert {name for name in learned.form(desk).values if name not in open_fields} == {"title"}
    for answer, sent in {"locations": 20, "nothing": 2, "left out": None}.items():
        answered = file_of(text.replace('Desk = "?"', f'Desk = "{answer}"')).follow(learner.type)
        led = mapped(answered, answered.form(desk), lambda _resource, number: (True, number * 10))
        body = body_of_values(answered, {name: led.values[name] for name in answered.references if name in led.values})
        assert body == ({} if sent is None else pair("Desk", sent))
        assert {*led.why.values()} == ({LeftOut.NOT_MAPPED} if sent is None else set())


def test_values_within_objects_that_the_target_does_not_take_are_asked(tmp_path: Path) -> None:
    """Objects whose values it takes stay whole."""
    conditions = of_type(
        "object", members={"cond": of_type("string", choices=["good", "worn"]), "on": of_type("string")}
    )
    schema = takes(title="string", state=conditions, parts=of_type("array", entries=conditions), was=conditions)
    values = {
        "state": {"cond": "gut", "on": "x"},
        "parts": [{"cond": "gut", "on": "y"}, {"cond": "worn"}],
        "was": {"cond": "good", "on": "z"},
    }
    records = [{"id": 1, "title": "A", **values}]
    learner = learner_of(tmp_path, records, schema)
    text = text_of([learner])
    assert text.count('= "?"') == len(file_of(text).questions()) == 2
    answered = file_of(text.replace('"?"', '"good"')).follow(learner.type)
    sent = {"state": {"cond": "good", "on": "x"}, "parts": [{"cond": "good", "on": "y"}, {"cond": "worn"}]}
    assert body_of(answered, records[0]) == {"title": "A", **sent, "was": values["was"]}
    assert "was" in answered.fields


def test_what_the_file_leaves_out_takes_nothing_else_with_it(tmp_path: Path) -> None:
    records = [{"id": 1, "title": "A", "item": {"policy": "long", "pieces": "a", "location_id": ""}}]
    learner = learner_of(tmp_path, records)
    text = text_of([learner])
    assert '"item/location_id",' in text
    form = file_of(text).follow(learner.type).form(records[0])
    assert form.values == {"title": "A", "item/policy": "long", "item/pieces": "a"}
    lending = [{"id": 1, "title": "A", "by": {"2": "x"}}]
    learner = learner_of(tmp_path, lending)
    assert {*file_of(text_of([learner])).follow(learner.type).form(lending[0]).why.values()} == {LeftOut.NOT_MAPPED}


def test_a_kind_that_no_record_has_is_named(tmp_path: Path) -> None:
    """Within an object its path counts, and not its name alone."""
    learner = with_kinds(tmp_path, lambda kind, number: {"of": {"art": kind, "nr": number}}, [("Book", 1), ("Desk", 2)])
    for kind, is_known in (("art", False), ("of/art", True)):
        line = f'"of/nr" = {{ kind = "{kind}", kinds = {{ Book = "publications", Desk = "locations" }} }}'
        doubts = file_of(f"[tasks.fields]\n{line}\n").doubtful_answers(learner)
        assert [doubt.split(", which")[0] for doubt in doubts] == (
            [] if is_known else ["tasks.of/nr: no record of the source has `art`"]
        )


def test_only_a_completion_is_set_by_the_request_of_its_name_unasked(tmp_path: Path) -> None:
    """What is published later, or not any more, has a time of that, too; a person decides, who is told of the request."""
    names = ("completed_at", "published_at", "looked_at")
    record = {"id": 1, "title": "A", **dict.fromkeys(names, "2026-11-01T10:00:00Z")}
    schema = takes(title="string")
    schema.record = dict.fromkeys(names, of_type("string", read_only=True))
    learner = learner_of(tmp_path, [record], schema)
    operations = ["PATCH /tasks/{}/complete", "PATCH /tasks/{}/publish", "GET /tasks/{}/look", "PATCH /users/{}/look"]
    proposal = propose(learner, "new", operations)
    assert proposal is not None
    assert (proposal.mapping.after_create, proposal.mapping.left_out) == (
        {"completed_at": "PATCH complete"},
        ("published_at", "looked_at"),
    )
    assert "PATCH publish" in proposal.comments["published_at"]


@pytest.mark.parametrize(("value", "is_completed"), [("0001-01-01T00:00:00Z", False), ("2026-11-01", True), (0, False)])
def test_a_task_is_completed_by_a_time_at_which_something_was_done(
    tmp_path: Path, value: Any, *, is_completed: bool
) -> None:
    """One that nothing completes is not created, as it would be open again."""
    record = {"id": 1, "title": "A", "completed_at": value}
    learned = file_of('[tasks]\nsame = ["title"]').follow(learner_of(tmp_path, [record]).type)
    form = mapped(learned, learned.form(record), lambda *_: (True, 9))
    assert form.reason == (TASK_COMPLETED if is_completed else None)


def test_the_form_of_requests_is_a_line_that_a_plan_follows(tmp_path: Path) -> None:
    """By the description, or assumed; what a person writes there counts for each request."""
    records = [{"id": 1, "title": "A"}]
    described = PayloadSchema({"title": of_type()}, wrapped_in="task", method="PUT")
    learner = learner_of(tmp_path, records, ResourceSchema(create=described, change=described))
    assert 'requests = { method = "PUT", wrapped_in = "task" }  # by the description of \'new\'' in text_of([learner])
    learner = learner_of(tmp_path, records)
    text, assumed = text_of([learner]), 'requests = { method = "PATCH" }'
    assert f"{assumed}  # assumed, as the document has it for publications" in text
    answered = text.replace(assumed, 'requests = { method = "PUT", wrapped_in = "job", create = "jobs/new" }')
    learned = file_of(answered).follow(learner.type)
    assert (learned.method, learned.wrapped_in, learned.create) == ("PUT", "job", "jobs/new")
    authorities = learner_of(tmp_path, [{"id": 1, "name": "A"}], resource="authorities")
    merge = 'requests = { merge = "authorities/merge/{id}", merge_method = "POST", merge_field = "target_id" }'
    learned = file_of(f"[authorities]\nsame = ['name']\n{merge}").follow(authorities.type)
    assert learned.merge == MergeRequest("authorities/merge/{id}", "POST", "target_id")


COPIES = [{"id": n, "barcode": f"X{n}", "loan": {"userId": 5 + n % 2, "dueOn": "2026-12-01"}} for n in range(1, 5)]


@pytest.mark.parametrize("many", [False, True])
def test_names_within_objects_are_read_in_any_spelling(tmp_path: Path, *, many: bool) -> None:
    """By the description, or by the target's records."""
    records = [{**copy, "loan": [copy["loan"]] if many else copy["loan"]} for copy in COPIES]
    loan = of_type("object", members={"user_id": of_type("integer"), "due_on": of_type("string")})
    described = takes(barcode="string", loan=of_type("array", entries=loan) if many else loan)
    of_target = {"user_id": 60, "due_on": "2026-12-02"}
    target = [{"id": 9, "barcode": "X", "loan": [of_target] if many else of_target}]
    for schema, target_records in ((described, []), (None, target)):
        learner = learner_of(tmp_path, records, schema, "hard_copies", ["users"], target=target_records)
        text = text_of([learner])
        assert not file_of(text).questions()
        sent = body_of(file_of(text).follow(learner.type), records[0])["loan"]
        assert (sent[0] if many else sent) == {"user_id": 9, "due_on": "2026-12-01"}


def test_what_services_fill_is_moved_within_objects_where_the_target_takes_it(tmp_path: Path) -> None:
    """An address in an object may be what people wrote, and an `id` there a code."""
    href, label = of_type("string"), of_type("string")
    schema = takes(
        name="string",
        website=of_type("object", members={"href": href, "label": label}),
        sources=of_type("array", entries=of_type("object", members={"href": href, "label": label})),
        script=of_type("object", members={"id": of_type("string"), "html_url": FieldSchema(read_only=True)}),
    )
    record = {
        "name": "A",
        "website": {"href": "https://example.org/a", "label": "home"},
        "sources": [{"href": "https://example.org/s", "label": "VIAF"}],
        "script": {"id": "latn-2", "html_url": "https://example.org/latn"},
    }
    learner = learner_of(tmp_path, [{"id": 1, **record}], schema, "authorities")
    learned = file_of(text_of([learner]).replace('"?"', '"nothing"')).follow(learner.type)
    assert body_of(learned, record) == {**record, "script": {"id": "latn-2"}}
    assert learned.form(record).unsent == {"script/html_url": "https://example.org/latn"}


@pytest.mark.parametrize(
    ("described", "shown"),
    [("string", []), ("", [{"id": 9, "title": "B", "location": "Annex"}])],
    ids=["by type", "by records"],
)
def test_the_name_of_a_record_is_no_place_for_its_id(tmp_path: Path, described: str, shown: Sequence[Json]) -> None:
    schema = takes(title="string", location=described or FieldSchema()) if described else None
    learner = learner_of(tmp_path, [{"id": 1, "title": "A", "location_id": 2}], schema, target=shown)
    sent = body_of(file_of(text_of([learner])).follow(learner.type), {"title": "A", "location_id": 2})
    assert "location" not in sent


@pytest.mark.parametrize("shown", [[], *([{"id": 9, "title": "B", "location_id": number}] for number in (7, "a-7"))])
def test_the_id_of_a_record_is_no_place_for_its_name(tmp_path: Path, shown: Sequence[Json]) -> None:
    schema = None if shown else takes(title="string", location_id="string")
    record = {"id": 1, "title": "A", "location": "Annex"}
    sent = body_of(
        file_of(text_of([learner_of(tmp_path, [record], schema, target=shown)])).follow(
            learner_of(tmp_path, [record], schema, target=shown).type
        ),
        record,
    )
    assert "location_id" not in sent


def test_an_empty_list_of_the_target_shows_no_form(tmp_path: Path) -> None:
    records = [{"id": 1, "title": "A", "assignees": [{"id": 5, "name": "A"}, {"id": 6, "name": "B"}]}]
    learner = learner_of(tmp_path, records, read=["users"], target=[{"id": 9, "title": "B", "assignees": []}])
    assert learner.type.fields["assignees"].sent_as == "object"


@pytest.mark.parametrize(
    ("described", "shown", "sent"),
    [
        ("object", {"id": 5}, {"id": 9}),
        ("array", [{"id": 5}], [{"id": 9}]),
        ("array", [5], [9]),
        ("integer", {"id": 5}, 9),
    ],
)
def test_a_description_without_members_leaves_the_form_of_references_to_records(
    tmp_path: Path, described: str, shown: Any, sent: Any
) -> None:
    learner = learner_of(
        tmp_path, [{"id": 1, "title": "A", "assignee": shown}], takes(title="string", assignee=described)
    )
    learned = file_of(text_of([learner]).replace('"?"', '"users"')).follow(learner.type)
    assert body_of(learned, {"title": "A", "assignee": shown})["assignee"] == sent


def test_the_id_of_a_link_is_sent_although_its_record_fills_it_itself(tmp_path: Path) -> None:
    """A description that says of an owner what it says of each user."""
    user = of_type("object", members={"id": FieldSchema(["integer"], read_only=True), "name": of_type("string")})
    user.members["role"] = of_type("string")
    record = {"name": "C", "owner": {"id": 5, "name": "A", "role": "head"}}
    learner = learner_of(tmp_path, [{"id": 1, **record}], takes(name="string", owner=user), "collections", ["users"])
    text = text_of([learner])
    assert "no record of the source has" not in text
    assert body_of(file_of(text).follow(learner.type), record)["owner"] == {"id": 9, "role": "head"}


def test_counters_of_a_link_are_moved_and_addresses_of_its_record_named(tmp_path: Path) -> None:
    owner = {"id": 5, "name": "A", "role": "head", "copies_count": 3, "thumb_url": "https://example.org/a.png"}
    record = {"name": "C", "owner": owner}
    learner = learner_of(tmp_path, [{"id": 1, **record}], resource="collections", read=["users"])
    learned = file_of(text_of([learner]).replace('"?"', '"users"')).follow(learner.type)
    assert body_of(learned, record)["owner"] == {"id": 9, "role": "head", "copies_count": 3}
    assert learned.form(record).unsent == {"owner/thumb_url": "https://example.org/a.png"}


def test_the_answer_to_a_question_about_a_number_is_a_number(tmp_path: Path) -> None:
    """The question mark stands in quotes, and so does what takes its place."""
    learner = learner_of(tmp_path, [{"id": 1, "title": "A", "level": 7}], takes(title="string", level="integer"))
    mapping = file_of('[tasks]\nsame = ["title"]\n[tasks.fields]\nlevel = { values = { 7 = "3" } }')
    assert body_of(mapping.follow(learner.type), {"title": "A", "level": 7}) == {"title": "A", "level": 3}
    assert mapping.doubtful_answers(learner) == []
    [doubt] = file_of(mapping.text.replace('"3"', '"low"')).doubtful_answers(learner)
    assert "the target takes integer, and not" in doubt


@pytest.mark.parametrize("is_described", [True, False])
def test_the_words_of_kinds_are_asked_where_the_target_has_others(tmp_path: Path, *, is_described: bool) -> None:
    """And a record of the target is read back with those of the source, in which all is compared."""
    source = [{"id": n, "title": "A", "about_type": "Desk", "about_id": n} for n in (1, 2)]
    target = [{"id": n, "title": "A", "about_type": "Place", "about_id": n} for n in (1, 2)]
    schema = takes(title="string", about_type=FieldSchema(["string"], choices=["Place"]), about_id="integer")
    learner = learner_of(tmp_path, source, schema if is_described else None, target=target)
    text = text_of([learner])
    assert 'values = { Desk = "?" }' in text
    assert "the target has Place there" in text
    answers = text.replace('{ Desk = "?" }, v', '{ Desk = "locations" }, v').replace('Desk = "?"', 'Desk = "Place"')
    learned = file_of(answers).follow(learner.type)
    sent = {"title": "A", "about_type": "Place", "about_id": 9}
    assert body_of(learned, source[0]) == sent
    assert learned.values(sent)["about_id"] == {"about_type": "Desk", "id": 9}


@pytest.mark.parametrize("is_described", [True, False])
def test_a_list_of_records_is_not_sent_into_their_number(tmp_path: Path, *, is_described: bool) -> None:
    schema = takes(name="string", publications="integer") if is_described else None
    target = [{"id": 9, "name": "Z", "publications": 12}]
    records = [{"id": 1, "name": "A", "publication_ids": [5, 6]}]
    learner = learner_of(tmp_path, records, schema, "collections", ["publications"], target=target)
    assert "publications" not in learner.type.fields


def test_the_name_of_something_else_within_a_record_is_no_key(tmp_path: Path) -> None:
    records = [{"id": n, "label_text": f"L{n}", "owner": {"name": f"N{n}", "office_id": n}} for n in (1, 2)]
    target = [{"id": 9, "label_text": "Z", "owner": {"name": "N1", "office_id": 1}}]
    learner = learner_of(tmp_path, records, resource="collections", target=target)
    assert learner.type.keys[0][0] == "label_text"


@pytest.mark.parametrize("value", ["yes", "1", "true", 1])
@pytest.mark.parametrize("container", ["", "object", "list"])
def test_what_stands_for_a_boolean_is_asked_at_any_depth(tmp_path: Path, value: Any, container: str) -> None:
    flag = of_type("boolean")
    in_object = of_type("object", members={"lost": flag, "by": of_type("string")})
    described = {"": flag, "object": in_object, "list": of_type("array", entries=in_object)}[container]
    records: list[Json] = [
        {"id": n, "title": f"T{n}", "state": {"": lost, "object": {"lost": lost}, "list": [{"lost": lost}]}[container]}
        for n, lost in enumerate((value, value, False), 1)
    ]
    text = text_of([learner_of(tmp_path, records, takes(title="string", state=described))])
    assert len(file_of(text).questions()) == 1
    answered = text.replace('"?"', "true")
    learner = learner_of(tmp_path, records, takes(title="string", state=described))
    assert "true" in json.dumps(body_of(file_of(answered).follow(learner.type), records[0])["state"])


def test_a_field_that_is_asked_may_be_a_key(tmp_path: Path) -> None:
    """Its answer says whether: what is left out, or waits for a later record, names none."""
    records = [{"id": n, "title": "A", "mark": f"B{n}"} for n in (1, 2)]
    learner = learner_of(tmp_path, records)
    text = text_of([learner])
    assert 'keys = [["title", "mark"]]' in text
    answers = {'"nothing"': ("title", "mark"), '"locations"': ("title", "mark"), '"tasks"': ("title",)}
    assert {answer: file_of(text.replace('"?"', answer)).follow(learner.type).keys[0] for answer in answers} == answers
    left_out = 'same = ["title"]\nleft_out = ["mark"]\nkeys = [["title", "mark"]]'
    assert file_of(f"[tasks]\n{left_out}").follow(learner.type).keys == (("title",),)


ACTIONS = '[collections]\nsame = ["name"]\n[collections.after_create]\n'


@pytest.mark.parametrize(
    ("line", "value", "asked_for", "is_named"),
    [
        ('state = "PATCH archive"', "2026-11-29T10:00:00Z", "state", False),
        ('state = "PATCH archive"', True, "state", False),
        ('state = "PATCH archive"', False, None, False),
        ('state = "PATCH archive"', "archived", None, True),
        ('state = "PATCH archive"', "0001-01-01T00:00:00Z", None, True),
        ('state = "PATCH archive"', "9999-12-31", None, True),
        ('state = { archived = "PATCH archive", published = "PATCH publish" }', "published", "state=published", False),
        ('state = { archived = "PATCH archive" }', "draft", None, True),
    ],
)
def test_a_request_after_a_create_is_sent_only_for_its_value(
    tmp_path: Path, line: str, value: Any, asked_for: str | None, *, is_named: bool
) -> None:
    record = {"id": 1, "name": "A", "state": value}
    learned = file_of(ACTIONS + line).follow(learner_of(tmp_path, [record], takes(name="string"), "collections").type)
    form = mapped(learned, learned.form(record), lambda *_: (True, 9))
    assert form.after == ((asked_for,) if asked_for else ())
    assert [reason for reason in form.why.values() if reason != LeftOut.BY_ACTION] == (
        [LeftOut.NOT_MAPPED] if is_named else []
    )


def test_objects_within_a_documented_list_of_users_are_asked(tmp_path: Path) -> None:
    """The document has texts there."""
    records = [{"id": 1, "email": "a@x", "name": "A", "roles": [{"name": "admin", "desk": 2}]}]
    learner = learner_of(tmp_path, records, resource="users")
    assert [question.field for question in file_of(text_of([learner])).questions()] == ["roles"]


def test_one_word_that_the_target_never_has_is_asked_and_no_name_of_a_person(tmp_path: Path) -> None:
    records = [{"id": n, "title": f"T{n}", "state": "in", "handled_by": "Anna"} for n in range(3, 6)]
    target = [{"id": n, "title": f"S{n}", "state": "IN", "handled_by": "Xaver"} for n in range(3, 6)]
    [question] = file_of(text := text_of([learner_of(tmp_path, records, target=target)])).questions()
    assert (question.field, "Anna" in text, "Xaver" in text) == ("state", False, False)


def test_no_example_is_as_long_as_a_telephone_number(tmp_path: Path) -> None:
    text = text_of(
        [
            learner_of(
                tmp_path, [{"id": 1, "title": "A", "contact": {"user_id": 5, "tel": "0170-12345"}}], read=["users"]
            )
        ]
    )
    assert "0170" not in text


def test_a_member_of_authors_that_no_record_has_any_more_is_marked(tmp_path: Path) -> None:
    members = {"orcid": "string", "position": "integer"}
    schema = takes(title="string", authors=takes_of_author(**members))
    texts, text = list[str](), ""
    for night, author in enumerate(({"position": 1}, {}, {"position": 1})):
        (tmp_path / str(night)).mkdir()
        record = {"id": 1, "title": "T", "authors": [AUTHOR | author]}
        learner = learner_of(tmp_path / str(night), [record], schema, "publications")
        text = text_of([learner], text)
        assert text_of([learner], text) == text
        texts.append(text)
    gone = "# No record has any more: authors/position\n"
    assert texts[1].replace(gone, "") == texts[0] == texts[2] != texts[1]


AUTHORS_LINE = "[publications.fields]\nauthors = { many = true, entries = { a = {} } }"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tasks", "is not valid TOML"),
        ("[task]", "[task] is no resource (did you mean 'tasks'?)"),
        ("[tasks]\nsame = ['a']\nleft_out = ['a']", "[tasks] has 'a' twice"),
        ("[tasks]\nsame = ['a']\n[tasks.fields]\na = {}", "[tasks] has 'a' twice"),
        ("[tasks]\nkeys = [['title']]", "'title' is no field that is sent"),
        ("[publications]\nsame = ['authors/orcid']", "`authors = { many = true, entries = { orcid = {} } }` below"),
        ("[tasks.fields]\na = { leads_to = 'location' }", "leads_to = 'location' (did you mean 'locations'?)"),
        ("[tasks.fields]\na = { entries = { b = {} } }", "what the objects of a list have"),
        ("[tasks]\nsame = ['a', 'a/b']", "'a' and a member of it"),
        (
            "[tasks.fields]\na = { lead_to = 'users' }",
            "[tasks.fields] a: 'lead_to' is unknown (did you mean 'leads_to'?)",
        ),
        (
            "[tasks.fields]\na = { many = true, entries = { b = { sent_as = 'txt' } } }",
            "is one of number, text, object,",
        ),
        ("[tasks]\nsames = []", "[tasks]: 'sames' is unknown (did you mean 'same'?). Those are keys, same"),
        ("[tasks.after_create]\na = 'POST done'", "[tasks.after_create] a = 'POST done': it is PATCH or PUT"),
        ("[tasks]\nsame = ['a']\n[tasks.after_create]\na = 'PUT done'", "[tasks] has 'a' twice"),
        ("[tasks]\nsame = 'a'", "Expected `array`"),
        ("[tasks.requests]\nverb = 'PUT'", "[tasks] requests: unknown key verb"),
        ("[tasks.requests]\nleave_out = ['a']", "unknown key leave_out"),
        ("[publications.requests]\nmethod = 'PUT'", "publications are changed by PATCH"),
        ("[publications]\nleft_out = ['abstract']", "'abstract' is documented, and always moved"),
        (f"[publications]\nleft_out = ['authors/a']\n{AUTHORS_LINE}", "has 'authors/a' twice"),
        (AUTHORS_LINE.replace("many", "any_order = true, many"), "the line says only what they have besides"),
        ("[tasks.fields]\na = { leads_to = 'nothing', many = true, post = 'a id' }", "no plain values"),
        ("[tasks.fields]\na = { kinds = { Desk = 'locations' } }", "with `kind`"),
        ("[tasks.fields]\na = { leads_to = 'users', values = { 7 = '9' } }", "stand for none"),
        (
            "[tasks.fields]\na = { kind = 'b', leads_to = 'users', values = { A = 'B', B = 'A' } }",
            "the word of another",
        ),
        ("[tasks.fields]\na = { kind = 'b', kinds = { Desk = 'location' } }", "did you mean 'locations'"),
        ("[tasks.fields]\na = { kind = 'b', kinds = { 7 = 'users' } }", "kinds that are numbers"),
    ],
)
def test_a_mistake_in_the_file_is_named(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        file_of(text)
    assert words in str(refusal.value)
    assert "mappings/old-to-new.toml: " in str(refusal.value)


ROLES: list[Json] = [
    {"id": number, "name": f"C{number}", "contributors": [{"id": 5, "name": "A", "role": role}, {"id": 6, "name": "B"}]}
    for number, role in enumerate(["author", "editor", "author", "editor"], 1)
]


@pytest.mark.parametrize(
    ("entry", "sent", "reason"),
    [
        (None, {"id": 5, "role": "author"}, None),
        ({"id": "integer", "role": "string"}, {"id": 5, "role": "author"}, None),
        ({"id": "integer"}, {"id": 5}, LeftOut.NOT_DESCRIBED),
        ({}, 5, LeftOut.NOT_DESCRIBED),
    ],
    ids=["no description", "described", "not described", "described as numbers"],
)
def test_what_is_said_of_a_link_goes_with_it_or_is_named(
    tmp_path: Path, entry: dict[str, str] | None, sent: Any, reason: LeftOut | None
) -> None:
    """A name belongs to the record to which the link leads, which has it; a role does not."""
    members = {name: of_type(kind) for name, kind in (entry or {}).items()}
    entries = of_type("object", members=members) if members else of_type("integer")
    schema = None if entry is None else takes(name="string", contributors=of_type("array", entries=entries))
    learner = learner_of(tmp_path, ROLES, schema, "collections", ["users"])
    form = learner.type.form(ROLES[0])
    assert body_of_values(learner.type, form.values)["contributors"][0] == sent
    assert form.why == ({} if reason is None else {"contributors/role": reason})
    followed = file_of(text_of([learner])).follow(learner.type)
    assert followed.form(ROLES[0]) == form
    assert form.unsent == ({} if reason is None else {"contributors/role": ["author"]})


def test_a_name_and_a_number_beside_it_are_two_fields(tmp_path: Path) -> None:
    """A record without one of them gets nothing for it (I6), and the other one is no second spelling."""
    records: list[Json] = [
        {"id": 1, "title": "A", "location": "Hall", "location_id": 1, "assignee": 6, "assignee_id": 5},
        {"id": 2, "title": "B", "location": "Attic", "assignee_id": 6},
    ]
    learned = learner_of(tmp_path, records, read=["users"]).type
    sent = {"title": "A", "location": "Hall", "location_id": 9, "assignee": 9, "assignee_id": 9}
    assert body_of(learned, records[0]) == sent
    assert body_of(learned, records[1]) == {"title": "B", "location": "Attic", "assignee_id": 9}
    described = learner_of(tmp_path, records, takes(title="string", location_id="integer"), read=["users"]).type
    assert body_of(described, records[0]) == {"title": "A", "location_id": 9}
    assert {*described.form(records[0]).unsent} == {"location", "assignee", "assignee_id"}
    file = file_of('[tasks]\n[tasks.fields]\ntitle = { from = ["title", "heading"] }')
    record = {"id": 1, "title": "A B", "heading": "B A"}
    assert file.follow(learned).form(record).unsent == {"heading": "B A"}


def test_what_stands_beside_an_id_is_a_copy_only_of_what_that_record_has(tmp_path: Path) -> None:
    """Also where it is the same for the same id each time: `volume` tells of the link, and so does a kind that one record has otherwise."""
    library = [(5, "A", "first", "Book"), (6, "B", "second", "Book"), (7, "C", "third", "Book")]
    records: list[Json] = [
        {"id": number, "title": f"T{number}", "host": {"id": host, "label": label, "volume": volume, "kind": kind}}
        for number, (host, label, volume, kind) in enumerate([*library, (8, "D", "fourth", "Part")] * 4, 1)
    ]
    hosts: list[Json] = [{"id": n, "name": name, "kind": "Book"} for n, name in zip(range(5, 9), "ABCD", strict=True)]
    listings = {"publications": listing(tmp_path, "publications", hosts)}
    source, target = listing(tmp_path, "tasks", records), listing(tmp_path, "target", [])
    learner = learner_between("tasks", source, target, {"tasks": source, **listings}, read=listings)
    answered = file_of(text_of([learner]).replace('"?"', '"publications"')).follow(learner.type)
    assert body_of(answered, records[0]) == {"title": "T1", "host": {"id": 9, "volume": "first", "kind": "Book"}}


def test_false_stands_for_no_record_and_a_cover_is_a_field_like_others(tmp_path: Path) -> None:
    records: list[Json] = [
        {"id": n, "title": f"T{n}", "above": above, "cover": "leather"} for n, above in enumerate([False, 1, 2], 1)
    ]
    learner = learner_of(tmp_path, records, takes(title="string", above="integer", cover="string"))
    answered = file_of(text_of([learner]).replace('"?"', '"tasks"')).follow(learner.type)
    assert body_of(answered, records[1]) == {"title": "T2", "above": 9, "cover": "leather"}
    form = answered.form(records[0])
    assert (body_of(answered, records[0]), form.unsent) == ({"title": "T1", "cover": "leather"}, {})


@pytest.mark.parametrize(
    ("labels", "leads_to"),
    [
        ({5: "Book", 6: "Book"}, "?"),
        ({5: "Ada", 6: "Bea"}, "users"),
        ({5: "Ada", 6: "Book"}, "?"),
        ({5: "Sea", 6: "Air"}, "publications"),
    ],
)
def test_a_text_beside_an_id_names_a_record_where_no_other_has_it(
    tmp_path: Path, labels: dict[int, str], leads_to: str
) -> None:
    """What many have, such as a kind or a state, says nothing. What is no copy of a record's own field goes with the id."""
    library = {
        "publications": [{"id": 5, "title": "Sea", "type": "Book"}, {"id": 6, "title": "Air", "type": "Book"}],
        "users": [{"id": 5, "name": "Ada"}, {"id": 6, "name": "Bea"}],
    }
    records = [
        {"id": number, "title": f"T{number}", "item": {"id": number, "what": labels[number]}} for number in labels
    ]
    listings = {name: listing(tmp_path, name, content) for name, content in library.items()}
    source, target = listing(tmp_path, "tasks", records), listing(tmp_path, "target", [])
    learner = learner_between("tasks", source, target, {"tasks": source, **listings}, read=listings)
    text = text_of([learner])
    assert f'{{ leads_to = "{leads_to}"' in text
    answered = file_of(text.replace('"?"', '"users"')).follow(learner.type)
    sent = body_of(answered, records[0])["item"]
    assert sent == {"id": 9} | ({"what": labels[5]} if leads_to == "?" else {})


@pytest.mark.parametrize(("shift", "leads_to"), [(0, "?"), (1, "publications")])
def test_a_title_beside_the_number_of_a_copy_that_is_numbered_like_its_book_is_no_proof(
    tmp_path: Path, shift: int, leads_to: str
) -> None:
    titles = {5: "Sea", 6: "Air", 7: "Ice"}
    records = [{"id": n, "title": f"T{n}", "item": {"id": n, "title": title}} for n, title in titles.items()]
    tasks = listing(tmp_path, "tasks", records)
    books = listing(tmp_path, "books", [{"id": n, "title": title} for n, title in titles.items()])
    copies = listing(tmp_path, "copies", [{"id": n, "barcode": f"B{n}", "bib": n + shift} for n in titles])
    library = {"tasks": tasks, "publications": books, "hard_copies": copies}
    learner = learner_between("tasks", tasks, listing(tmp_path, "target", []), library)
    assert f'leads_to = "{leads_to}"' in text_of([learner])


def test_copies_without_a_barcode_are_told_by_their_other_fields(tmp_path: Path) -> None:
    """Where they have no call number, by which we know them; else a copy that is there already would be created again."""
    copies = [
        {"id": n, "barcode": code, "publication_id": 5, "signature": f"QA {n}"} for n, code in ((1, "B1"), (2, None))
    ]
    source, target = listing(tmp_path, "copies", copies), listing(tmp_path, "target", [])
    library = {"hard_copies": source, "publications": listing(tmp_path, "books", [{"id": 5, "title": "Sea"}])}
    text = text_of([learner_between("hard_copies", source, target, library)])
    assert 'keys = [["barcode"], ["publication_id", "signature"]]' in text


@pytest.mark.parametrize(
    ("path", "is_parent"),
    [
        ("parent_id", True),
        ("parent/id", True),
        ("relationships/parent/data/id", True),
        ("bound_with_id", False),
        ("origin/parent_id", False),
    ],
)
def test_the_parent_of_a_record_is_known_in_every_form(path: str, *, is_parent: bool) -> None:
    """An entry within a record may have a parent of its own; what a copy is bound with is none."""
    field = FieldMapping(leads_to="hard_copies")
    resource_type = msgspec.structs.replace(RESOURCE_TYPES["hard_copies"], fields={path: field})
    assert resource_type.parents == ({path} if is_parent else set())


def test_names_of_persons_as_keys_are_not_in_the_file(tmp_path: Path) -> None:
    """I10: keys of several words are values, not names of fields."""
    records: list[Json] = [{"id": 1, "title": "A", "taken_part": {"Ada Byron": {"user_id": 5}}}]
    text = text_of([learner_of(tmp_path, records, read=["users"])])
    assert "taken_part" in text
    assert "Ada" not in text


def test_keys_of_several_words_that_most_objects_have_are_names_of_fields(tmp_path: Path) -> None:
    """As people name fields of their own."""
    fields = [{"Call Number": f"QA {n}", "Home Room": 5 + n % 2} for n in (30, 31, 32)]
    records = [{"id": n, "fields": members} for n, members in enumerate(fields, 1)]
    learner = learner_of(tmp_path, records, resource="hard_copies", read=["users"])
    text = text_of([learner])
    assert '"fields/Home Room" = { leads_to = "?" }' in text
    learned = file_of(text.replace('leads_to = "?"', 'leads_to = "users"')).follow(learner.type)
    assert body_of(learned, records[0]) == {"fields": {"Call Number": "QA 30", "Home Room": 9}}


def test_a_number_of_no_record_is_sent_as_none(tmp_path: Path) -> None:
    """As -1 for nobody: otherwise the whole record would wait for its reference."""
    records: list[Json] = [
        {"id": 1, "title": "A", "holder_id": -1, "reader_ids": [5, -1]},
        {"id": 2, "title": "B", "holder_id": 5},
    ]
    line = '{ leads_to = "users", values = { -1 = "" } }'
    text = f'[tasks]\nsame = ["title"]\n[tasks.fields]\nholder_id = {line}\nreader_ids = {line[:-2]}, many = true }}'
    learned = file_of(text).follow(learner_of(tmp_path, records, read=["users"]).type)
    assert [body_of(learned, record) for record in records] == [
        {"title": "A", "reader_ids": [9]},
        {"title": "B", "holder_id": 9},
    ]
    assert learned.form(records[0]).unsent == {}


def test_an_answer_that_leads_texts_with_ids_in_them_to_records_is_named(tmp_path: Path) -> None:
    learner = learner_of(tmp_path, [{"id": n, "title": "A", "kept": {"ref": f"/rooms/{n}"}} for n in (1, 2)])
    text = text_of([learner]).replace('leads_to = "?"', 'leads_to = "locations"')
    [doubt] = file_of(text).doubtful_answers(learner)
    assert doubt.startswith("tasks.kept/ref: most of its values are no ids of locations")
    ids = learner_of(tmp_path, [{"id": n, "title": "A", "kept": {"ref": n}} for n in (1, 2)])
    assert file_of(text.replace(', sent_as = "text"', "")).doubtful_answers(ids) == []


@pytest.mark.parametrize(
    ("source_marks", "target_marks", "keys"),
    [("ABC", "BD", [["mark"]]), ("ABC", "DE", None), ("AAB", "BD", None), ("ABC", "BB", None)],
    ids=["unique", "none is in both", "twice here", "twice there"],
)
def test_a_text_that_tells_records_apart_in_both_libraries_is_the_key(
    tmp_path: Path, source_marks: str, target_marks: str, keys: list[list[str]] | None
) -> None:
    sides = [
        [{"id": n, "mark": mark, "room": "X", "shut": False} for n, mark in enumerate(marks, 1)]
        for marks in (source_marks, target_marks)
    ]
    learner = learner_of(tmp_path, sides[0], resource="hard_copies", target=sides[1])
    text = text_of([learner])
    assert learner.type.keys == (tuple(map(tuple, keys)) if keys else (("mark", "room", "shut"),))
    assert ("no two records of either library" in text) == (keys is not None)
    assert ("no field alone is known" in text) == (keys is None)


@pytest.mark.parametrize(
    ("name", "ids", "leads_to"),
    [
        ("location_id", (1, 2, 5), "?"),
        ("location_id", (1, 2, 9), "locations"),
        ("location_id", (1, 2, 2), "locations"),
        ("location_id", (8, 9, 9), "?"),
        ("task_id", (5, 6, 5), "?"),
    ],
    ids=["others", "one is gone", "all", "none", "own"],
)
def test_a_name_is_doubted_where_the_ids_say_otherwise(
    tmp_path: Path, name: str, ids: Sequence[int], leads_to: str
) -> None:
    """Another resource alone has all, or the named one none; a restore into the own library takes the name's word."""
    records = [{"id": n + 4, "title": f"T{n}", name: number} for n, number in enumerate(ids, 1)]
    library = {
        "tasks": listing(tmp_path, "own", records),
        "locations": listing(tmp_path, "locations", [{"id": 1}, {"id": 2}]),
        "publications": listing(tmp_path, "publications", [{"id": n} for n in range(1, 8)]),
    }
    target = listing(tmp_path, "target", [])
    asked = learner_between("tasks", library["tasks"], target, library)
    assert asked.type.fields[name].leads_to == leads_to
    restored = learner_between("tasks", library["tasks"], target, library, asks_all=False)
    assert restored.type.fields[name].leads_to == ("tasks" if name == "task_id" else "locations")


def test_a_field_with_a_slash_in_its_name_is_named_at_any_depth(tmp_path: Path) -> None:
    """No path leads to it, as those of expanded JSON-LD; a resource without any other field is followed all the same."""
    record = {"id": 5, "title": "A", "of/work": 1, "kept": [{"in/room": 2, "note": "N", "by": 1}]}
    learner = learner_of(tmp_path, [record])
    text = text_of([learner])
    learned = file_of(text.replace('leads_to = "?"', 'leads_to = "locations"')).follow(learner.type)
    form = learned.form(record)
    assert body_of(learned, record) == {"title": "A", "kept": [{"by": 9, "note": "N"}]}
    assert {*form.unsent} == {"of~1work", "kept/in~1room"} <= {*file_of(text).resources["tasks"].left_out}
    alone = learner_of(tmp_path, [{"id": 5, "of/work": 1}])
    assert [*file_of(text_of([alone])).follow(alone.type).match_keys({})] == []

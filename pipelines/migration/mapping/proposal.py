"""What Bookferry writes into the mapping file of two libraries: what is known of each resource, with its source, and what is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from pipelines.errors import ConfigurationError
from pipelines.humanize import counted
from pipelines.inventory import LIST_PATHS
from pipelines.migration.mapping.enumerations import BOOLEANS
from pipelines.migration.mapping.ids_in_values import IdsWithin
from pipelines.migration.mapping.learned_fields import resource_by_name
from pipelines.migration.mapping.learned_types import TypeLearner
from pipelines.migration.mapping.mapping_file import (
    MappingFile,
    ResourceMapping,
    code_of,
    fields_defined_by,
)
from pipelines.migration.model.field_mapping import LEFT_OUT, NOTHING, OPEN, PLAIN, FieldMapping
from pipelines.migration.model.reasons import REASONS
from pipelines.migration.model.resource_types import (
    COMPLETED,
    OF_EACH_OBJECT,
    PUBLICATIONS,
    RESOURCE_TYPES,
    ResourceType,
    Source,
)
from pipelines.records.additional_fields import in_snake_case, is_counter, is_managed
from pipelines.records.files import ASSET, COVER
from pipelines.records.left_out import LeftOut
from pipelines.records.paths import as_part, objects_of
from pipelines.records.shapes.field_names import in_words, keys_of, words_of
from pipelines.records.tables.publication_fields import AUTHORS
from pipelines.report.issues import safe_text

_NO_RECORD_HAS_IT = (
    "no record of the source has it: say what fills every new record, or write "
    '`from = ["..."]` with the name that it has in the source'
)

_FILLED_ANYWHERE = frozenset({"id", "created_at", "updated_at"})
"""Fields that every service fills itself."""

_GONE = "No record has any more:"

_HEADER = """\
# How records of '{source}' become records of '{target}', where the service documents neither. `bookferry migrate map` proposed it: read it,
# and put an answer in place of each question mark. Every `migrate plan {source} {target} --resources ...` follows it, and moves no
# resource with an open question. Run map again after a change in either library: it keeps every answer, and adds what is new.
# To see values: `bookferry query "SELECT payload FROM raw_tasks LIMIT 9"`. docs/first-contact.md says what a line may have.
"""


class Proposal(NamedTuple):
    """What is known and asked of one resource. `comments`: field → where that is known from, or what is asked."""

    resource: str
    about: str
    known_from: str
    """Where the form of its requests is known from."""
    mapping: ResourceMapping
    comments: dict[str, str]
    shown: frozenset[str]
    """The keys that records of the source have."""
    about_keys: str = ""
    """Why these are the keys."""


def propose(learner: TypeLearner, target: str, operations: Collection[str] = ()) -> Proposal | None:
    """The table of a resource; None where it has no records, or is documented and has no other fields.

    `operations`: those that the target describes, such as `PATCH /tasks/{}/complete`.
    """
    learned, shape = learner.type, learner.source
    assumed = RESOURCE_TYPES.get(learned.resource)
    documented = learner.assumed.fields if learner.assumed.documented else {}
    required = [name for name in learned.required if name in learned.fields or name not in documented]
    filled = [
        name
        for name in shape.fields
        if is_managed(name)
        and (is_counter(name) or not documented)
        and not ("/" in name and name.rpartition("/")[2] in OF_EACH_OBJECT)
    ]
    if not shape.records or (
        (assumed is None or assumed.documented)
        and not learner.unknown_references
        and {*learned.fields} <= {*(assumed.fields if assumed else ())}
        and {*required} <= {*learned.fields}
        and not (learned.presign or filled or AUTHORS in learner.apart.objects)
    ):
        return None
    fields = {**learner.asked.fields}
    comments = {name: _known_from(learner, name) for name in fields}
    for name in required:
        if name not in fields:
            why = learned.left_out.get(next((key for key in keys_of(name) if key in learned.left_out), ""))
            fields[name] = FieldMapping(keys=() if why else None, fill=OPEN)
            has = f"what records have is not sent. {REASONS[why].problem}" if why else _NO_RECORD_HAS_IT
            comments[name] = f"'{target}' demands it, and {has}{_one_of(learner, name) or _type_of(learner, name)}"
        elif (
            name in learned.fields
            and name not in learned.references
            and (lacking := learner.source.records - _with_value(learner, _key_in_source(learner, name)))
        ):
            fields[name] = msgspec.structs.replace(fields[name], fill=OPEN)
            comments[name] += (
                f". '{target}' demands it: say what new records get of the {lacking:,} that lack it, or take `fill` away"
            )
    actions = dict(_actions(learned, operations))
    after_create: dict[str, str | dict[str, str]] = {
        name: request for name, request in actions.items() if in_snake_case(name) == COMPLETED
    }
    sent = _keys(fields) | _keys(learned.parts) | after_create.keys()
    left_out = {key: why for key, why in learned.left_out.items() if key not in sent}
    left_out |= {name: LeftOut.FILLED_BY_SERVICE for name in filled if name not in sent | _FILLED_ANYWHERE}
    for name, why in left_out.items():
        comments[name] = REASONS[why].problem
        if name in actions:
            comments[name] += (
                f" '{target}' has `{actions[name]}`: where that is to be sent for each record with a value here, name it in "
                f"[{learned.resource}.after_create]"
            )
    mapping = ResourceMapping(
        tuple(names for names in learned.keys if {*names} <= fields.keys() and learned.resource != PUBLICATIONS),
        tuple(name for name, field in fields.items() if field == PLAIN),
        tuple(left_out),
        {name: field for name, field in fields.items() if field != PLAIN},
        after_create,
        _requests(learned),
    )
    is_described = learned.known_from == Source.DESCRIPTION
    known_from = (
        f"by the description of '{target}'" if is_described else "assumed, as the document has it for publications"
    )
    shown = frozenset({*shape.fields, *learner.apart.objects})
    return Proposal(
        learned.resource,
        _about(learner, target),
        known_from,
        mapping,
        comments,
        shown,
        _about_keys(learner, mapping.keys),
    )


def _actions(learned: ResourceType, operations: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each time that is not sent, and the described request which sets it: `published_at` and `PATCH publish`."""
    for operation in operations:
        method, _, path = operation.partition(f" /{LIST_PATHS[learned.resource]}/{{}}/")
        names = (name for name in learned.left_out if path and words_of(name)[-1:] in (["at"], ["on"]))
        if method in ("PATCH", "PUT") and path.isalpha() and path != "merge":
            yield from ((name, f"{method} {path}") for name in names if words_of(name)[0].startswith(path.lower()))


def _requests(learned: ResourceType) -> dict[str, Any]:
    """The form of the requests that write a resource."""
    if learned.resource == PUBLICATIONS:
        names = {ASSET: "presign", COVER: "cover_presign"}
        return {names[kind]: path for kind, path in learned.presign.items()}
    if learned.documented:
        return {}
    form: dict[str, Any] = {"method": learned.method}
    if learned.answer_id:
        form["answer_id"] = learned.answer_id
    if learned.wrapped_in:
        form["wrapped_in"] = learned.wrapped_in
    if learned.record_type:
        form["record_type"] = learned.record_type
    if learned.merge and learned.merge.described:
        form |= {"merge": learned.merge.path, "merge_method": learned.merge.method, "merge_field": learned.merge.field}
    return form


def proposed_text(earlier: MappingFile | None, proposals: Iterable[Proposal], source: str, target: str) -> str:
    """The text of a new file, or that of an earlier one with what is new, and what is gone; nothing else of it is changed."""
    text = _HEADER.format(source=source, target=target) if earlier is None else earlier.text
    for proposal in proposals:
        mapping = earlier.resources.get(proposal.resource) if earlier is not None else None
        text = f"{text.rstrip()}\n\n{_table(proposal)}" if mapping is None else _with_changes(text, proposal, mapping)
    return text


def _about(learner: TypeLearner, target: str) -> str:
    learned = learner.type
    basis = f"the description of '{target}' says what it takes"
    if learned.known_from != Source.DESCRIPTION:
        basis = f"no description says what '{target}' takes, so that all of this is known from records, or assumed"
    described = learner.schema.create.fields if learner.schema.create else {}
    unshown = [name for name in learned.unproved if name not in described]
    unproved = f". Nothing shows that '{target}' has {', '.join(unshown)}" if unshown else ""
    known = {*learner.assumed.ruled, *learned.left_out, *learned.required, *_keys(learned.parts)}
    filled = {name for name in described if is_managed(name) or name.rpartition("/")[2] in OF_EACH_OBJECT}
    unfilled_fields = [
        name
        for name, field in described.items()
        if not (field.read_only or name in filled or name in known or as_part(name) in known)
        and not ("/" in name and learner.apart.is_shown(name))
    ]
    unfilled = (
        f". It takes other fields, too, which no record of the source has: {', '.join(unfilled_fields)}"
        if unfilled_fields
        else ""
    )
    unknown = (
        f". Not read of the source, so that no field shows their ids: {', '.join(learner.unread)}"
        if learner.unread
        else ""
    )
    return f"{counted(learner.source.records, 'record')}; {basis}{unproved}{unfilled}{unknown}."


def _about_keys(learner: TypeLearner, keys: Sequence[tuple[str, ...]]) -> str:
    """What is known of keys that nobody documents."""
    names = keys[0] if len(keys) == 1 else ()
    if len(names) == 1 and in_words(names[0]) in learner.unique_texts:
        return "no two records of either library have the same there, and some of both do"
    if len(names) > 1:
        return "no field alone is known to tell a record from others: one that is there with another value in these is created again"
    return ""


def _known_from(learner: TypeLearner, name: str) -> str:
    """Where is known from what a field is."""
    learned = learner.type
    key = _key_in_source(learner, name)
    seen, field = _seen(learner, key), learned.fields[name]
    if post := field.post:
        where = f". {_where_known(learner, name, field)}" if field.asks_where else ""
        asked = f"{where}. Which POST adds each to its list? Write a path below the record and a key of the body; or move it to left_out"
        added = f"; the id alone is added by the POST /{LIST_PATHS[learned.resource]}/:id/{post.split()[0]} of the description"
        return f"{seen}{asked if post == OPEN else added}"
    if name not in learned.references:
        return f"{seen}{_one_of(learner, name)}{_codes(learner, name)}"
    parts = [(path, part) for path, part in field.parts(name) if part.refers and not part.entries]
    words = {
        path: f"; the target has {', '.join(taken)} there" for path, (_words, taken) in learner.other_kinds.items()
    }
    known = [
        (path, part.asks_where, f"{_where_known(learner, path, part)}{words.get(path, '')}") for path, part in parts
    ]
    if not field.entries:
        return seen + "".join(f"{'.' if is_asked else ';'} {how}" for _path, is_asked, how in known)
    told = [f"{path.removeprefix(f'{name}/')}: {how}" for path, _is_asked, how in known]
    told += [
        f"{path.removeprefix(f'{name}/')}: {said.lstrip(';. ')}"
        for path, _part in field.parts(name)
        if (said := f"{_one_of(learner, path)}{_codes(learner, path)}")
    ]
    return "; ".join([seen, *told])


def _where_known(learner: TypeLearner, path: str, field: FieldMapping) -> str:
    """Where is known from to which records a field refers; else the question, with the candidates."""
    key = next(key for key in field.keys_of(path) if key in learner.source.fields)
    if field.kinds:
        return _known_by_kind(learner.by_kind[key].owners, field)
    if field.leads_to == OPEN:
        ids = learner.candidates.get(key)
        asked = _ids_among(ids, learner.unread) if ids else "Which records are these?"
        own = ", as an id that each object has of its own" if key.endswith("/id") else ""
        return f'{asked} Answer with a resource where all of it is ids, or "{NOTHING}" to send it as it stands; or move it to left_out{own}'
    if learner.is_known_by_names(key):
        return "by the names beside its numbers"
    if resource_by_name(learner.assumed, (path, key)):
        return "by its name"
    return "an assumption"


def _ids_among(ids: IdsWithin, unread: Sequence[str]) -> str:
    """Of which records ids stand in a field, the most of them first."""
    numbers, not_read = counted(ids.different, "different number"), ", ".join(unread)
    if not ids.of:
        return f"Its {numbers} may be ids of {not_read}, which were not read."
    owners = ", ".join(f"{count:,} of {resource}" for resource, count in ids.of.items())
    doubt = "" if ids.are_values else ", perhaps by chance"
    unknown = f" They may be ids of {not_read}, too, which were not read." if unread else ""
    return f"Ids among its {numbers}{doubt}: {owners}.{unknown}"


def _known_by_kind(owners: Mapping[str, Sequence[str]], field: FieldMapping) -> str:
    if not field.is_open:
        return "by the kinds beside its numbers"
    asked = "; ".join(
        f"{kind}: {', '.join(owners.get(kind, ())) or 'ids of nothing that was read'}"
        for kind, resource in field.kinds.items()
        if resource == OPEN
    )
    return (
        f"Which records are those of each kind? Half of its ids or more are of: {asked}. Answer each with a resource, "
        f'"{NOTHING}" for plain values, or "{LEFT_OUT}"'
    )


def _seen(learner: TypeLearner, key: str) -> str:
    value = learner.examples.get(key, "")
    example = f", such as {value}" if value.strip('["…]') else ""
    return f"{_with_value(learner, key):,} of {counted(learner.source.records, 'record')}{example}"


def _with_value(learner: TypeLearner, key: str) -> int:
    """The records that have a value in a field."""
    field = learner.shape(key)
    return sum(field.kinds.values()) if field is not None else 0


def _key_in_source(learner: TypeLearner, name: str) -> str:
    """The key under which records of the source have a field that is sent."""
    return next(key for key in learner.type.keys_of(name) if learner.shape(key) is not None)


def _one_of(learner: TypeLearner, name: str) -> str:
    choices = ", ".join(learner.choices_of(name))
    if not choices:
        return ""
    if learner.choices_of(name) == BOOLEANS:
        return f". The target takes {choices}: write one of these without quotes"
    return (
        f"; one of {choices}"
        if name in learner.choices
        else f". Records of the target have other words there: {choices}"
    )


def _codes(learner: TypeLearner, path: str) -> str:
    """Of which records a field has codes that are others in the target."""
    if path not in learner.codes:
        return ""
    owners, in_target = learner.codes[path]
    fields = " or ".join(f"`{field}` of {resource}" for resource, field in owners)
    known = ", ".join(f"{code} ({' or '.join(codes)} there)" if codes else code for code, codes in in_target.items())
    return (
        f". These are values of {fields}, which are others in the target: {known}. Write what is sent for "
        "each, or move it to same to send them as they stand"
    )


def _type_of(learner: TypeLearner, name: str) -> str:
    """What a description takes in a field that a person fills, as it is written in the file."""
    described = learner.schema.create.fields.get(name) if learner.schema.create else None
    types = [_AS_WRITTEN[kind] for kind in (described.types if described else ()) if kind in _AS_WRITTEN]
    return f"; it takes {' or '.join(types)}" if types else ""


_AS_WRITTEN = {
    "string": 'a text, such as "A"',
    "integer": "a whole number, such as 1 without quotes",
    "number": "a number, such as 1.5 without quotes",
    "boolean": "true or false without quotes",
}
"""Type of JSON Schema → how a value of it is written."""


def _keys(fields: Mapping[str, FieldMapping]) -> set[str]:
    return {key for name, field in fields.items() for key in {name} | field.keys_sent(name)}


def _table(proposal: Proposal) -> str:
    """The table of a resource in TOML."""
    mapping, resource = proposal.mapping, proposal.resource
    lines = [f"[{resource}]", _comment(proposal.about), f"same = {_toml(mapping.same)}"]
    if mapping.left_out:
        entries = (f"    {_toml(name)},  {_comment(proposal.comments[name])}" for name in mapping.left_out)
        lines += ["left_out = [", *entries, "]"]
    if mapping.keys:
        keys = f"keys = {_toml(mapping.keys)}"
        lines.append(f"{keys}  {_comment(proposal.about_keys)}" if proposal.about_keys else keys)
    if mapping.requests:
        lines += [f"requests = {_toml(mapping.requests)}  {_comment(proposal.known_from)}"]
    lines += ["", f"[{resource}.fields]", *_lines(proposal, mapping.fields)]
    if mapping.after_create:
        about = _comment(
            "Requests of their own, which set a field of a new record where that of the source has a value."
        )
        lines += ["", f"[{resource}.after_create]", about]
        lines += [f"{_key(name)} = {_toml(request)}" for name, request in mapping.after_create.items()]
    return "\n".join([*lines, ""])


def _lines(proposal: Proposal, fields: Mapping[str, FieldMapping]) -> list[str]:
    """A line for each field, with its comment; a question has it above."""
    lines = list[str]()
    for name, field in fields.items():
        line, comment = _line(name, field), _comment(proposal.comments[name])
        lines += [comment, line] if field.is_open else [f"{line}  {comment}"]
    return lines


def _line(name: str, field: FieldMapping) -> str:
    return f"{_key(name)} = {_toml(msgspec.to_builtins(field))}"


def _with_changes(text: str, proposal: Proposal, mapping: ResourceMapping) -> str:
    """The text with the fields that it lacks, and those that no record has any more, at the beginning of the resource's table of fields."""
    resource = proposal.resource
    named, doubtful = mapping.named, _may_name_records_now(proposal, mapping)
    decided = {*mapping.left_out} | _keys({name: field for name, field in named.items() if name not in doubtful})
    around = objects_of(decided)
    new = {
        name: field
        for name, field in proposal.mapping.named.items()
        if decided.isdisjoint((*_keys({name: field}), *objects_of([name]))) and name not in around
    }
    doubtful &= _keys(new) | objects_of(new)
    if doubtful:
        text = _with_same(text, resource, [name for name in mapping.same if name not in doubtful])
    gone = [
        name if field.keys is None else f"{name} (from {', '.join(field.keys)})"
        for name, field in named.items()
        if name not in doubtful and field.fill is None and proposal.shown.isdisjoint(field.keys_of(name))
    ]
    offered = [part for name, field in proposal.mapping.fields.items() for part in field.parts(name)]
    members = {key for path, part in offered for key in part.keys_of(path)}.union(proposal.mapping.left_out)
    gone += [
        path
        for name, field in mapping.fields.items()
        if name in proposal.mapping.fields
        for path, part in field.parts(name)
        if path != name and part.fill is None and members.isdisjoint(part.keys_of(path))
    ]
    known = {*proposal.shown, *proposal.mapping.left_out, *proposal.mapping.after_create}
    known |= objects_of(known)
    gone += [
        name for name in (*mapping.left_out, *mapping.after_create) if known.isdisjoint((name, *objects_of([name])))
    ]
    lines = [_comment(f"{_GONE} {', '.join(gone)}")] if gone else []
    lines += _lines(proposal, new)
    text = _with_new_parts(text, proposal, mapping)
    header = _header_of_fields(text, resource)
    if header is not None:
        earlier = re.compile(rf"\n# {_GONE}[^\n]*").match(text, header.end())
        behind = text[(earlier or header).end() :]
        return "".join([text[: header.end()], *(f"\n{line}" for line in lines), behind])
    if lines and mapping.fields:
        raise ConfigurationError(
            f"The mapping file has no line [{resource}.fields], below which these would be written: {'; '.join(lines)}"
        )
    return "\n".join([text.rstrip(), "", f"[{resource}.fields]", *lines, ""]) if lines else text


def _may_name_records_now(proposal: Proposal, mapping: ResourceMapping) -> set[str]:
    """The fields sent as they stand that have ids of records by now, or a member with some: which records those are is a question."""
    asked = {name for name, field in proposal.mapping.fields.items() if field.asks_where}
    return {*mapping.same} & (_keys({name: proposal.mapping.fields[name] for name in asked}) | objects_of(asked))


def _with_same(text: str, resource: str, names: Sequence[str]) -> str:
    """The text whose list `same` of a resource has these names."""
    table = re.search(rf"^\[{resource}\][^\n]*\n(?:(?!\[).*\n?)*", text, re.MULTILINE)
    same = table and _SAME.search(text, table.start(), table.end())
    return f"{text[: same.start()]}same = {_toml(names)}{text[same.end() :]}" if same else text


_SAME = re.compile(r"""^same\s*=\s*\[(?:"(?:\\.|[^"\\])*"|'[^']*'|\#[^\n]*|[^\]"'\#])*\]""", re.MULTILINE)
"""Matches the list of the fields that are sent as they stand."""


def _with_new_parts(text: str, proposal: Proposal, mapping: ResourceMapping) -> str:
    """The text with each value that came later, and each member of the objects of a list, in the line of its field.

    A field that has no line of its own stays as it is.
    """
    header = _header_of_fields(text, proposal.resource)
    if header is None:
        return text
    lines = text[header.end() :].split("\n")
    for number, line in enumerate(lines):
        if line.startswith("["):
            break
        code = code_of(line).rstrip()
        for name, field in fields_defined_by(code).items():
            proposed = proposal.mapping.named.get(name, PLAIN)
            whole = field.with_members_of(proposed, name, mapping.left_out)
            asked = whole.with_questions_of(proposed)
            if mapping.fields.get(name) == field and asked != field:
                told = _comment(proposal.comments[name]) if whole != field else line[len(code) :].strip()
                lines[number] = f"{_line(name, asked)}  {told}".rstrip()
    return text[: header.end()] + "\n".join(lines)


def _header_of_fields(text: str, resource: str) -> re.Match[str] | None:
    return re.search(rf"^\[{resource}\.fields\][^\n]*", text, re.MULTILINE)


def _comment(text: str) -> str:
    return f"# {safe_text(text, 1000)}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: Any) -> str:
    """A text, a number, a list or a table in TOML."""
    if isinstance(value, dict):
        members = (f"{_key(name)} = {_toml(member)}" for name, member in value.items())
        return f"{{ {', '.join(members)} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

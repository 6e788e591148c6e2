"""The mapping file of two libraries: how records of one become records of the other, where the service documents neither.

`bookferry migrate map` proposes it and asks what cannot be known; a person answers; a plan follows it to the letter.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
from msgspec.structs import replace
from pydantic import ValidationError

from pipelines.errors import ConfigurationError
from pipelines.inventory import RESOURCES
from pipelines.migration.mapping.learned_fields import may_wait
from pipelines.migration.mapping.learned_types import TypeLearner
from pipelines.migration.model.field_mapping import LEFT_OUT, NOTHING, OPEN, PLAIN, FieldMapping, SentAs, plain
from pipelines.migration.model.resource_types import PUBLICATIONS, RESOURCE_TYPES, FieldRule, ResourceType
from pipelines.records.additional_fields import is_managed
from pipelines.records.left_out import LeftOut
from pipelines.records.paths import objects_of
from pipelines.records.tables.publication_fields import AUTHORS, WRITTEN
from pipelines.records.values import compact_json, text_of
from pipelines.report.issues import safe_text
from pipelines.settings.settings import Settings
from pipelines.settings.validation_messages import did_you_mean, explain
from pipelines.settings.write_requests import RequestForm, request_problem

_ACTION = re.compile(r"(PATCH|PUT) [A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")
"""Matches a request that sets a field of a record."""

_POST = re.compile(r"[A-Za-z0-9_-]+ [A-Za-z0-9_-]+")
"""Matches how an id is added to a list below a record."""

_QUESTION = re.compile(r"""["']\?["']""")
"""Matches an open question in a line without its comment."""

_CODE = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|[^"'#])*""")
"""Matches a line without its comment."""


class ResourceMapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the records of one resource are moved, as the file has it."""

    keys: tuple[tuple[str, ...], ...] = ()
    """As `ResourceType.keys`; those that Bookferry assumes if none are named."""
    same: tuple[str, ...] = ()
    """The fields that are sent as they stand."""
    left_out: tuple[str, ...] = ()
    """The fields that are not sent."""
    fields: dict[str, FieldMapping] = {}
    """All other fields that are sent."""
    after_create: dict[str, str | dict[str, str]] = {}
    """Field → the request that sets it in a new record; or value of the field → that request."""
    requests: dict[str, Any] = {}
    """As `RequestForm`."""

    @property
    def form(self) -> RequestForm:
        """The form of its writes. Raises `ValidationError`."""
        return RequestForm(**self.requests)

    @property
    def actions(self) -> dict[str, str]:
        """The same as `ResourceType.after_create` has it."""
        by_value = {
            name: known if isinstance(known, dict) else {"": known} for name, known in self.after_create.items()
        }
        return {
            f"{name}={value}" if value else name: request
            for name, requests in by_value.items()
            for value, request in requests.items()
        }

    @property
    def named(self) -> dict[str, FieldMapping]:
        """Every field that is sent."""
        return plain(*self.same) | _without_kinds_of_nothing(self.fields)

    def apply_to(self, learned: ResourceType) -> ResourceType:
        """The type that moves what the file says, and nothing else; a field with an open question is left out.

        So is one that may have numbers of records, where the file does not say what those are; only what fills it is sent.
        `learned`: says what the target takes in its fields, and in which form.
        """
        named = self.named
        fields = {name: field for name, field in named.items() if not field.is_open}
        unnamed = {key for key, why in learned.left_out.items() if why in (LeftOut.UNKNOWN_REFERENCE, LeftOut.LINK)}
        may_name_records = unnamed | _references_of(learned)
        may_name_records |= objects_of(may_name_records)
        unknown = {
            name
            for name, field in fields.items()
            if any(
                not (part.refers or part.entries or part.values or part.leads_to == NOTHING)
                and any(
                    key in may_name_records or not unnamed.isdisjoint(objects_of([key])) for key in part.keys_of(path)
                )
                for path, part in field.parts(name)
            )
        }
        for name in unknown:
            if fields[name].fill is None:
                del fields[name]
            else:
                fields[name] = replace(fields[name], keys=())
        by_key = {key: field for name, field in learned.fields.items() for key in field.keys_of(name)}
        for name in fields.keys() & self.fields.keys():
            proposed = next((by_key[key] for key in fields[name].keys_of(name) if key in by_key), PLAIN)
            fields[name] = fields[name].with_questions_of(proposed)
        parts = [part for name, field in fields.items() for part in field.parts(name)]
        by_path = dict(parts)
        sent = {key for path, part in parts for key in part.keys_sent(path)} | self.after_create.keys()
        unsent = {
            key: LeftOut.NOT_MAPPED
            for path, part in learned.parts.items()
            for key in part.keys_of(path)
            if key not in sent
        }
        unsent |= {
            key: LeftOut.FILLED_BY_SERVICE if is_managed(key) else LeftOut.NOT_MAPPED
            for key in self.left_out
            if is_managed(key) or learned.left_out.get(key) == LeftOut.UNKNOWN_REFERENCE
        }
        unsent |= {
            key: LeftOut.UNKNOWN_REFERENCE
            for name, field in named.items()
            if field.asks_where or name in unknown
            for key in field.keys_of(name)
        }
        return (
            replace(
                learned,
                fields=fields,
                keys=_without_waiting(self.keys or learned.keys, fields, learned.resource),
                takes={
                    name: _with_answers(rule, by_path[name])
                    for name, rule in learned.takes.items()
                    if name in by_path and not by_path[name].refers  # its line says in which form it is sent
                },
                left_out={key: why for key, why in learned.left_out.items() if key not in sent} | unsent,
                unproved=tuple(name for name in fields if name in learned.unproved or name not in learned.fields),
                after_create=self.actions,
            )
            .without_parts_of_links()
            .sent_by(self.form)
        )


def _without_waiting(
    keys: Sequence[tuple[str, ...]], fields: Mapping[str, FieldMapping], resource: str
) -> tuple[tuple[str, ...], ...]:
    """These keys without references that may lead to records which do not exist yet, and without what is not sent.

    Of the last group a record need not have all, so that the others stay. Where none is left, `id`, by which no record is known.
    """
    known = {name for name, field in fields.items() if not may_wait(field, resource)}
    last = [tuple(name for name in names if name in known) for names in keys[-1:]]
    groups = (*(names for names in keys[:-1] if known.issuperset(names)), *last)
    return tuple(filter(None, groups)) or (("id",),)


def _without_kinds_of_nothing(fields: Mapping[str, FieldMapping]) -> dict[str, FieldMapping]:
    """These fields, and a plain one for each word beside a value that refers to nothing: it is the kind of no record."""
    apart = dict[str, FieldMapping]()
    for name, field in fields.items():
        is_kind = field.kind and field.leads_to != NOTHING
        apart |= {} if is_kind or not field.kind else {field.kind: PLAIN}
        entries = _without_kinds_of_nothing(field.entries)
        apart[name] = replace(field, kind=field.kind if is_kind else "", entries=entries)
    return apart


class Question(NamedTuple):
    """A question of the file without an answer."""

    resource: str
    field: str
    line: int


class MappingFile:
    """The mapping of two libraries. Raises `ConfigurationError` for a file that cannot be followed.

    `text`: its content, if it is not read from `path`.
    """

    def __init__(self, path: Path, text: str | None = None) -> None:
        self.path = path
        try:
            self.text = path.read_text(encoding="utf-8-sig") if text is None else text
            tables = tomllib.loads(self.text)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path}: cannot be read ({error}).") from None
        except tomllib.TOMLDecodeError as error:
            raise ConfigurationError(f"{path}: is not valid TOML: {error}. Correct that line.") from None
        self.resources = {name: _mapping_of(path, name, table) for name, table in tables.items()}

    @property
    def sha256(self) -> str:
        """SHA-256 of its text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def referred_by(self, resources: Iterable[str]) -> set[str]:
        """The resources to which fields of these lead."""
        mappings = [self.resources[name] for name in resources if name in self.resources]
        return {referred for mapping in mappings for field in mapping.fields.values() for referred in field.resources}

    def questions(self) -> list[Question]:
        """The questions without an answer, in the order of the file."""
        lines = [code_of(line) for line in self.text.splitlines()]
        return [
            Question(resource, name, _line_of(lines, resource, name))
            for resource, mapping in self.resources.items()
            for name, field in mapping.fields.items()
            if field.is_open
        ]

    def unanswered(self, resource: str) -> str:
        """Why a resource is not planned, or of publications fields, such as `in mappings/old-to-new.toml place (line 12) has no answer`."""
        file = f"{self.path.parent.name}/{self.path.name}"
        if resource not in self.resources:
            assumed = RESOURCE_TYPES.get(resource)
            return "" if assumed is None or assumed.documented else f"{file} does not have them"
        questions = [question for question in self.questions() if question.resource == resource]
        if not questions:
            return ""
        fields = ", ".join(f"{safe_text(question.field)} (line {question.line})" for question in questions)
        return f"in {file} {fields} {'has' if len(questions) == 1 else 'have'} no answer"

    def doubtful_answers(self, learner: TypeLearner) -> list[str]:
        """The answers that the target's description, or the records of the source, contradict, in words. They are followed all the same."""
        learned = learner.type
        mapping, words = self.resources.get(learned.resource, ResourceMapping()), list[str]()
        for name, field in mapping.fields.items():
            rule = learned.takes.get(name, FieldRule())
            of_values = FieldRule(rule.choices, rule.entry_types or rule.types)
            doubtful = [value for value in field.answers() if of_values.refusal(value)]
            doubtful += [field.fill] if field.fill not in (OPEN, None) and rule.refusal(field.fill) else []
            if doubtful:
                takes = " or ".join(rule.choices or rule.types)
                said = ", ".join(safe_text(compact_json(value), 60) for value in doubtful)
                words.append(
                    f"{learned.resource}.{name}: by its description, the target takes {takes}, and not {said} of {self.path.name}."
                )
        known = {
            key for path, part in learned.parts.items() for key in (part.kind, *part.keys_of(path))
        } | learned.left_out.keys()
        for path, part in (part for name, field in mapping.fields.items() for part in field.parts(name)):
            if part.kind and part.kind not in known:
                words.append(
                    f"{learned.resource}.{path}: no record of the source has `{safe_text(part.kind)}`, which {self.path.name} names "
                    "as the kind of its records. It is a path, such as `subject/type`."
                )
            known_ids = (learner.candidates[key] for key in part.keys_of(path) if key in learner.candidates)
            if part.leads_to in RESOURCES and not all(ids.are_most for ids in known_ids):
                words.append(
                    f"{learned.resource}.{path}: most of its values are no ids of {part.leads_to}, to which {self.path.name} leads them. "
                    "An id within a text, or in an address, is not followed: move it to left_out."
                )
        for name in mapping.same:
            if values := learned.fields.get(name, PLAIN).values:
                said = ", ".join(safe_text(value, 60) for value in values)
                words.append(
                    f"{learned.resource}.{name}: {self.path.name} sends {said} as they stand: in the target, those are other records."
                )
        return words

    def follow(self, learned: ResourceType) -> ResourceType:
        """How the file moves the records of a resource; of one that it does not have, the documented fields."""
        mapping = self.resources.get(learned.resource)
        if mapping is None:
            assumed = RESOURCE_TYPES.get(learned.resource)
            documented = assumed.fields if assumed is not None and assumed.documented else ()
            mapping = ResourceMapping(
                fields={name: field for name, field in learned.fields.items() if name in documented},
            )
        return mapping.apply_to(learned)


def _with_answers(rule: FieldRule, field: FieldMapping) -> FieldRule:
    """What the target takes by its description, and the values that a person writes, whatever their type."""
    if not field.values:
        return rule
    return FieldRule(rule.choices and (*rule.choices, *(text_of(value) or "" for value in field.values.values())))


def _references_of(learned: ResourceType) -> set[str]:
    """The keys of records that have numbers of others, and the paths of those in objects."""
    return {
        number
        for name in learned.references
        for path, part in learned.fields[name].parts(name)
        if part.refers and not part.entries
        for key in (path, *part.keys_of(path))
        for number in (key, f"{key}/id")
    }


def mapping_path(settings: Settings, source: str, target: str) -> Path:
    """Where the mapping of two tenants is."""
    return settings.path.parent / "mappings" / f"{source}-to-{target}.toml"


def find_mapping(settings: Settings, source: str, target: str) -> MappingFile | None:
    """The mapping of two tenants, if there is one."""
    path = mapping_path(settings, source, target)
    return MappingFile(path) if path.exists() else None


def _mapping_of(path: Path, resource: str, table: Any) -> ResourceMapping:
    """The mapping in a table. Raises `ConfigurationError` for one that cannot be followed."""
    fields = table.get("fields") if isinstance(table, dict) else None
    parts = (
        [(f"[{resource}.fields] {name}", field) for name, field in fields.items()] if isinstance(fields, dict) else []
    )
    where = f"[{resource}]"
    try:
        for where, field in parts:  # noqa: B007  named by the message
            msgspec.convert(field, FieldMapping)
        where = f"[{resource}]"
        mapping = msgspec.convert(table, ResourceMapping)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{path}: {where}: {_explained(str(error), where)}") from None
    try:
        problem = next(_problems(resource, mapping), None)
    except ValidationError as error:
        raise ConfigurationError(
            explain(f"{path}: [{resource}] requests", error, lambda _: RequestForm.model_fields)
        ) from None
    if problem is not None:
        raise ConfigurationError(f"{path}: {problem}")
    return mapping


def _explained(error: str, where: str) -> str:
    """What msgspec says is wrong in a line of a field or in the table of a resource, with the words that may stand there."""
    is_field = ".fields]" in where or ".fields" in error
    allowed = [field.encode_name for field in msgspec.structs.fields(FieldMapping if is_field else ResourceMapping)]
    if unknown := re.search("unknown field `(.*?)`", error):
        return f"'{unknown[1]}' is unknown{did_you_mean(unknown[1], allowed)}. Those are {', '.join(allowed)}."
    forms = f" `sent_as` is one of {', '.join(get_args(SentAs))}." if "sent_as`" in error else ""
    return f"{error}.{forms} docs/first-contact.md says what a line may have."


def _problems(resource: str, mapping: ResourceMapping) -> Iterator[str]:
    if resource not in RESOURCES:
        yield f"[{resource}] is no resource{did_you_mean(resource, RESOURCES)}. Those are {', '.join(RESOURCES)}."
    named = mapping.named
    parts = {path for name, field in mapping.fields.items() if field.entries for path, _part in field.parts(name)}
    twice = (
        parts & {*mapping.left_out}
        | {*mapping.same} & {*mapping.fields}
        | named.keys() & {*mapping.left_out, *mapping.after_create}
    )
    for name in sorted(twice | mapping.after_create.keys() & {*mapping.left_out}):
        places = f"`same`, `left_out`, [{resource}.fields] or [{resource}.after_create]"
        yield f"[{resource}] has '{name}' twice: a field is in one of {places}."
    for name, request in mapping.actions.items():
        if not _ACTION.fullmatch(request):
            yield (
                f"[{resource}.after_create] {name} = '{request}': it is PATCH or PUT, which may be repeated, and a path below the "
                'record, such as "PATCH complete".'
            )
    yield from _problems_of_publications(mapping) if resource == PUBLICATIONS else ()
    if mistake := request_problem({resource: mapping.form}):
        yield f"[{resource}] requests: {mistake}"
    known = named.keys() | objects_of(named) | {*mapping.left_out}
    for name in (name for names in mapping.keys for name in names if name not in known):
        yield f"[{resource}] keys: '{name}' is no field that is sent."
    for name in sorted(objects_of(named) & named.keys()):
        yield f"[{resource}] has '{name}' and a member of it: send the whole object, or its members."
    for name, field in mapping.fields.items():
        yield from _problems_of_field(f"[{resource}.fields] {name}", field)


def _problems_of_publications(mapping: ResourceMapping) -> Iterator[str]:
    for name in sorted(name for name in mapping.named if name.startswith(f"{AUTHORS}/")):
        line = f"authors = {{ many = true, entries = {{ {name.removeprefix(f'{AUTHORS}/')} = {{}} }} }}"
        yield f"[publications] has '{name}': what objects of a list have stands in its line, `{line}` below [publications.fields]."
    for name in sorted({*WRITTEN} & {*mapping.left_out} - {AUTHORS}):
        yield f"[publications] left_out: '{name}' is documented, and always moved."
    authors = mapping.fields.get(AUTHORS, PLAIN)
    if authors != FieldMapping(many=authors.many, entries=authors.entries):
        yield f"[publications.fields] {AUTHORS}: they are documented; the line says only what they have besides, in `entries`."


def _problems_of_field(where: str, field: FieldMapping) -> Iterator[str]:
    answers = (*RESOURCES, NOTHING)
    if field.leads_to not in ("", OPEN, *answers):
        yield f"{where}: leads_to = '{field.leads_to}'{did_you_mean(field.leads_to, answers)}. It is one of {', '.join(answers)}."
    if field.post not in ("", OPEN) and not _POST.fullmatch(field.post):
        yield f"{where}: post = '{field.post}': write a path below the record and a key of the body, as in 'publications publication_id'."
    if field.post and (not field.many or field.entries or field.leads_to == NOTHING):
        yield f"{where}: `post` adds numbers of several records (`many = true`), and no plain values, and none inside of objects."
    if field.entries and (not field.many or field.leads_to or field.kinds or field.values):
        yield f"{where}: `entries` says what the objects of a list have (`many = true`), and where the number in each member leads."
    sent = {word: value for word, value in field.values.items() if value not in ("", OPEN)}
    is_clear = len({*sent.values()}) == len(sent) and all(
        value == word or value not in sent for word, value in sent.items()
    )
    if field.refers and sent and not (field.kind and is_clear):
        yield (
            f'{where}: `values` of a field with numbers of records says which of them stand for none, as in `{{ -1 = "" }}`, and with '
            "`kind`, which word of the target is sent for each: another one for each, and for none the word of another."
        )
    yield from _problems_of_kinds(where, field)
    for name, entry in field.entries.items():
        yield from _problems_of_field(f"{where}: entries: {name}", entry)


def _problems_of_kinds(where: str, field: FieldMapping) -> Iterator[str]:
    answers = (*RESOURCES, NOTHING, LEFT_OUT)
    if numbers := [kind for kind in field.kinds if kind.isdigit()]:
        yield (
            f"{where}: kinds: {', '.join(numbers)}: kinds that are numbers are those of one library, and cannot be sent. Move the field, "
            "and that of its kinds, to left_out."
        )
    for kind, resource in field.kinds.items():
        if resource not in (OPEN, *answers):
            yield f"{where}: kinds: {kind} = '{resource}'{did_you_mean(resource, answers)}. It is one of {', '.join(answers)}."
    if field.kinds and (not field.kind or field.leads_to or field.post or field.many):
        yield f"{where}: `kinds` says where each `kind` beside an id leads: with `kind`, and without `leads_to`, `post` and `many`."


def _line_of(lines: list[str], resource: str, name: str) -> int:
    """The number of the line with the question about a field; that of the first question where it stands in another form."""
    begins = re.compile(rf"""\s*["']?{re.escape(name)}["']?\s*[=.]""")
    fields, table = f"[{resource}.fields]", ""
    questions = list[int]()
    for number, line in enumerate(lines, 1):
        if line.startswith("["):
            table = re.sub(r"""[\s"']""", "", line)
        if _QUESTION.search(line):
            if (table == fields and begins.match(line)) or f"{table[:-1]}.".startswith(f"{fields[:-1]}.{name}."):
                return number
            questions.append(number)
    return questions[0] if questions else 1


def code_of(line: str) -> str:
    """A line without its comment."""
    code = _CODE.match(line)
    return code[0] if code else ""


def fields_defined_by(code: str) -> dict[str, FieldMapping]:
    """The field that a line defines; none where it is only a part of one."""
    try:
        return msgspec.convert(tomllib.loads(code), dict[str, FieldMapping])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError):
        return {}

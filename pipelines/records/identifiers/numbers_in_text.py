"""Finds ISBNs and ISSNs, numbers with a check digit, in fields with several numbers or with words around them.

A valid number is never split. A run of digit groups is first read as one number, then as a row of numbers without a rest, and only then
blank by blank. If two ways lead to numbers, neither is used. Lost zeros are added to a number that is alone in its field, as in the cell of
a spreadsheet; beside other text, they are added only if another number of the field is the same.

After a number, words in any language and prices are its qualifiers and terms of availability (ISBD, area 8): the check digit proves the
number. Before a number, unknown words may change its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from pipelines.records.identifiers.cleaning import cleaned, in_ascii
from pipelines.records.identifiers.rules import Rule
from pipelines.records.identifiers.verdicts import (
    GOOD,
    INVALID,
    REPAIRED,
    UNRECOGNISED,
    FoundIdentifier,
    accepted,
    join_rules,
    without_repetition,
)


class Validation(NamedTuple):
    """The result of checking one number: its value and the rules used, or no value and the reason."""

    value: str | None
    rules: tuple[Rule, ...]


class NumberStandard(NamedTuple):
    """A standard of numbers with a check digit. `validate` checks a run of digits and separators.

    `with_words`: found in a text whose number stays certain if unknown words follow it.
    """

    name: str
    label: re.Pattern[str]
    address: re.Pattern[str]
    lengths: frozenset[int]
    validate: Callable[[str], Validation]
    with_words: re.Pattern[str]


_BRACKETS = re.compile(r"\([^()\[\]]*(?:\)|$)|\[[^()\[\]]*(?:\]|$)")
"""Innermost brackets, or one that is never closed."""

_PIECES = re.compile(
    rf"(?:{_BRACKETS.pattern}|[^;|,]|(?<=[0-9]),(?=[0-9]{{2}}(?![0-9-])|[0-9]{{3}}(?![0-9-]| [0-9])))+"
)
"""Text between separators; brackets may contain separators, and amounts a comma."""

LABEL_ISBN = (
    r"(?:e-?)?i?sbn(?:[- ]?13(?=[\s:]+97[89])|[- ]?10(?=\s*:|\s+(?:[0-9][ -]?){9}[0-9x](?![0-9]))|-?1[03](?![0-9]))?"
)
LABEL_ISSN = r"[ep]?-?issn(?:-l)?"


def labels(*names: str) -> re.Pattern[str]:
    """Matches any of these names before a number, and the signs between name and number."""
    return re.compile(
        rf"(?<![A-Za-z0-9])(?:urn:|info:)?(?:{'|'.join(names)})(?![A-Za-z])\s*[:.=#/]*|(?<![A-Za-z0-9])is\s*-(?=\s)",
        re.IGNORECASE,
    )


def addresses(name: str) -> re.Pattern[str]:
    """Matches any web address that names a number, such as https://portal.issn.org/resource/ISSN/0378-5955: its host proves nothing."""
    return re.compile(
        rf"(?<![\w./-])(?:https?://)?(?:[a-z0-9-]+\.)+[a-z]{{2,}}(?::[0-9]+)?/(?:[^\s;|,]*[/?&:=])?(?:{name})[/:=]?([0-9][0-9-]*[0-9x])/?"
        r"(?:[?#&][^\s;|,]*)?(?=[\s;|,()\[\]<>\"'}]|$)",
        re.IGNORECASE,
    )


_LABELS = labels(LABEL_ISBN, LABEL_ISSN)
_TERMS = (
    r"(?:pbk|hbk|hdbk|paperback|hardback|hardcover|softcover|softback|cloth|paper|cased|bound|print|printed"
    r"|online|electronic|elec|ebook|e-book|epub|pdf|web|cd-rom|linking|set|and|und|et|or)(?![A-Za-z0-9])"
)
_WORDS = re.compile(
    rf"(?<![A-Za-z0-9])(?:{_TERMS}"
    r"|(?:v|vol|bd|band|t|tom[eo]?|teil|del|deel|cz|sv|т|том|ч|кн)\.?\s?[0-9]{1,2}|(?:[$£€¥]|eur|usd|gbp|chf|dm)\s?[0-9]{1,4}(?:\.[0-9]{2})?(?:-[0-9]{1,4})?)(?![A-Za-z0-9])[.:]?",
    re.IGNORECASE,
)
"""Words, volumes and prices that cataloguers put beside a number. Any other word may change the meaning of a number after it."""

_CURRENCY = rf"(?:(?!{_TERMS}|e?is[bs]n|pmid)[^\W\d_]{{1,5}}\.?[$¢-¥฿₠-⃀￠-￦]?|[$¢-¥฿₠-⃀￠-￦])"
_SUM = r"(?:[0-9]{1,3}(?:[.,' ][0-9]{3})+|[0-9]{1,6})(?:[.,][0-9]{1,2}|[.,:/]-{1,2})?"
_ENDS = r"(?![0-9-]|[.,][0-9])"
_AMOUNT = _SUM + _ENDS
_MILLIONS = rf"(?:[0-9](?=[0-9]{{6}}(?![0-9])))?{_AMOUNT}"
"""Amounts of rials or rupiahs have seven digits; eight may be an ISSN."""

_TWO_SUMS = rf"(?=[1-9]){_SUM} ?- ?(?=[1-9]){_SUM}{_ENDS}"
_RANGE = rf"(?:[1-9][0-9]{{7}}{_ENDS}|{_TWO_SUMS})"
"""Amounts whose check digit may be right by accident: two of them, or one of eight digits."""

_NAMED = r"(?P<named>(?:issn(?!\))[^0-9;]*|(?:print|online|electronic|linking)[\s):\]]*)(?:[0-9]{8}|[0-9]{4}-[0-9]{4})(?![0-9-]))"
_AFTER_PRICE = r"(?=\s*(?:[;|,.()\[\]-]|is[bs]n|$))"
_PRICE = re.compile(
    rf"{_NAMED}|\s?:\s*(?:{_CURRENCY}\s?(?:{_MILLIONS}|{_RANGE})|(?:{_MILLIONS}|{_RANGE})\s?{_CURRENCY}"
    rf"|(?![0-9]{{4}}-[0-9]{{4}}(?![0-9])){_TWO_SUMS}){_AFTER_PRICE}",
    re.IGNORECASE,
)
"""Terms of availability after a number (ISBD, area 8): a colon, a currency in any language, an amount or a range. No named number."""

LIKE_A_PRICE = re.compile(
    rf"{_NAMED}|\s?:\s*(?:{_CURRENCY}\s?)?{_RANGE}(?!\s?[(\[]?{_TERMS})"
    rf"|(?<![\w.-])(?<![:=] )(?:{_CURRENCY}\s?{_RANGE}|{_RANGE}\s?{_CURRENCY}){_AFTER_PRICE}",
    re.IGNORECASE,
)
"""A number that is no certain ISSN or ISBN in the field of another kind: after ISBD's colon, or beside what may be a currency."""

_CARD = " .:=+*\"'{}<>-"
"""Signs that may remain around a number: punctuation of the catalogue card (ISBD), quotation marks, braces."""

_ONLY_NUMBERS = re.compile(r"[0-9][0-9Xx .+Ee/-]*")
_HEAD = re.compile(r"(?:[0-9][0-9Xx.+Ee/-]*|(?<=[0-9] )[Xx](?![^\W_])|[ ;:.=+*\"'{}<>-])+")
"""Numbers before the first word."""

_BARE_RUN = re.compile(r"[0-9](?:[ -]?[0-9])*(?:[ -]?[Xx])?")
"""Digit groups and nothing else, as most values are."""

_GROUPS = re.compile(r"[0-9Xx]+")
_BARE = re.compile(r"[='\"]*[0-9]+X?(?:\.0+)?['\"]*", re.IGNORECASE)
_YEARS = re.compile(r"\s*((?:1[5-9]|20)[0-9]{2}) ?- ?((?:1[5-9]|20)[0-9]{2})\s*")
_MANY_DIGITS = re.compile(r"(?:[0-9][ -]*){7}")


def read_numbers(numbers: NumberStandard, text: str) -> list[FoundIdentifier]:
    """Every value in a text. A piece with unknown words around its numbers is not recognised."""
    if _BARE_RUN.fullmatch(text):
        alone = _BARE.fullmatch(text) is not None
        return without_repetition(_with_zeros(numbers, _read_run(numbers, text, ()), alone=alone))
    tidy, rules = cleaned(text)
    tidy, more = in_ascii(tidy)
    alone = _BARE.fullmatch(numbers.label.sub("", tidy).strip()) is not None
    used = [*rules, *more]
    tidy, count = numbers.address.subn(r";\1;", tidy)
    used += [Rule.ADDRESS] * (count > 0)
    before, tidy = tidy, _PRICE.sub(lambda price: price["named"] or ";", tidy)
    used += [Rule.QUALIFIER] * (tidy != before)
    identifiers = _with_zeros(numbers, _read_pieces(numbers, tidy, tuple(used)), alone=alone)
    if all(identifier.verdict == UNRECOGNISED for identifier in identifiers):
        return [FoundIdentifier(numbers.name, text, UNRECOGNISED, Rule.TEXT)]
    return without_repetition(identifiers)


def _read_pieces(numbers: NumberStandard, text: str, rules: tuple[str, ...]) -> list[FoundIdentifier]:
    """The numbers of each piece between separators. Words and amounts after a number belong to it."""
    identifiers: list[FoundIdentifier] = []
    for piece in map(str.strip, _PIECES.findall(text)):
        read = _read_piece(numbers, piece, rules)
        if read is None:
            read = _read_head(numbers, piece, rules)
        has_number = any(value.verdict != UNRECOGNISED for value in identifiers)
        if read or _MANY_DIGITS.search(piece) or not has_number:
            identifiers += read if read is not None else [FoundIdentifier(numbers.name, piece, UNRECOGNISED, Rule.TEXT)]
    return identifiers


def _read_piece(numbers: NumberStandard, piece: str, rules: tuple[str, ...]) -> list[FoundIdentifier] | None:
    """The numbers of a piece that has only known words; `None` if it has others. No number continues after a word."""
    rest, used, inner = piece, list(rules), list[FoundIdentifier]()
    while brackets := _BRACKETS.search(rest):
        content = brackets[0][1:].rstrip(")]")
        if _MANY_DIGITS.search(content) and (brackets[0] == piece or not _are_years(content)):
            inner += _read_pieces(numbers, content, (*rules, Rule.ENCLOSED))
        else:
            used.append(Rule.QUALIFIER)
        rest = f"{rest[: brackets.start()]};{rest[brackets.end() :]}"
    for pattern, rule in ((numbers.label, Rule.LABEL), (_WORDS, Rule.QUALIFIER)):
        rest, count = pattern.subn(";", rest)
        used += [rule] * (count > 0)
    parts = [part for part in rest.split(";") if part.lstrip()[:1] != ":" or _unpriced(numbers, part)]
    runs = [run.strip(_CARD) for run in parts]
    if any(run != part.strip() for run, part in zip(runs, parts, strict=True)):
        used.append(Rule.PUNCTUATION)
    runs = [run for run in runs if run]
    if not all(map(_ONLY_NUMBERS.fullmatch, runs)):
        return None
    runs = [*runs[:1], *(run for run in runs[1:] if not re.fullmatch(_AMOUNT, run))]  # a price without its currency
    return [identifier for run in runs for identifier in _read_run(numbers, run, tuple(used))] + inner


def _are_years(text: str) -> bool:
    """Whether a text is a row of years, such as those of a journal: beside a number, they are no other one."""
    years = _YEARS.fullmatch(text)
    return years is not None and years[1] <= years[2]


def _read_head(numbers: NumberStandard, piece: str, rules: tuple[str, ...]) -> list[FoundIdentifier] | None:
    """The right numbers before the first unknown word of a piece; `None` if there are others, or none."""
    masked = piece
    for pattern in (_BRACKETS, numbers.label, _WORDS):
        masked = pattern.sub(lambda match: ";" * len(match[0]), masked)
    head = _HEAD.match(masked)
    ends = [group.end() for group in _GROUPS.finditer(masked, 0, head.end() if head else 0)]
    for end in ends[:-4:-1]:  # the last ones may be an amount
        before, rest = piece[:end], piece[end:].lstrip()
        in_a_word = piece[end : end + 1].isalnum() and piece[end] < "\u0590"  # scripts that have blanks between words
        if in_a_word or not numbers.with_words.search(before):
            continue
        identifiers = _read_piece(numbers, before, (*rules, Rule.QUALIFIER))
        if identifiers and all(identifier.verdict in GOOD for identifier in identifiers):
            return [*identifiers, *_unread(numbers, rest)]
    return None


def _unread(numbers: NumberStandard, words: str) -> list[FoundIdentifier]:
    """Words after a number, if they have another one, whose meaning they may change."""
    has_number = _MANY_DIGITS.search(_unpriced(numbers, words))
    return [FoundIdentifier(numbers.name, words, UNRECOGNISED, Rule.TEXT)] if has_number else []


def _unpriced(numbers: NumberStandard, words: str) -> str:
    """The words without what may be a price; all of them if they are a number of this standard."""
    return words if numbers.validate(words.strip(_CARD)).value else LIKE_A_PRICE.sub(r"\g<named>", words)


def _read_run(numbers: NumberStandard, run: str, rules: tuple[str, ...]) -> list[FoundIdentifier]:
    """The numbers of a run of digit groups."""
    whole = numbers.validate(run)
    if whole.value is not None:
        identifier = accepted(numbers.name, whole.value, (*rules, *whole.rules))
        return [identifier._replace(value=run, verdict=INVALID) if Rule.LEADING_ZEROS in whole.rules else identifier]
    row = _row(numbers, run)
    if row is None:
        return [FoundIdentifier(numbers.name, run, INVALID, Rule.AMBIGUOUS)]
    if row:
        return [accepted(numbers.name, number.value or "", (*rules, *number.rules)) for number in row]
    chunks = [chunk for part in re.split("[ /]+", run) if (chunk := part.strip(_CARD))]
    if len(chunks) > 1:
        numerals = [chunk for chunk in chunks if not re.fullmatch(_AMOUNT, chunk)]  # an amount, the price in a bar code
        rules = rules if numerals == chunks else (*rules, "qualifier")
        values = [value for chunk in numerals for value in _read_run(numbers, chunk, rules)]
        if any(value.verdict in GOOD for value in values):
            return values
    return [FoundIdentifier(numbers.name, run, INVALID, join_rules(whole.rules))]


def _with_zeros(numbers: NumberStandard, identifiers: list[FoundIdentifier], *, alone: bool) -> list[FoundIdentifier]:
    """The same values, with a decision about the numbers that need leading zeros, which `_read_run` leaves open."""
    proved = {identifier.value for identifier in identifiers if identifier.verdict in GOOD}
    settled: list[FoundIdentifier] = []
    for identifier in identifiers:
        if identifier.verdict == INVALID and Rule.LEADING_ZEROS in identifier.rule:
            value = numbers.validate(identifier.value).value or ""
            certain = alone or value in proved
            settled.append(
                identifier._replace(value=value, verdict=REPAIRED)
                if certain
                else identifier._replace(rule=Rule.ZEROS_UNPROVED)
            )
        else:
            settled.append(identifier)
    return settled


def _row(numbers: NumberStandard, run: str) -> list[Validation] | None:
    """A row of numbers that fills the whole run; empty if there is none, None if there are several ways."""
    groups = [(group.start(), group.end()) for group in _GROUPS.finditer(run)]
    longest = max(numbers.lengths)
    ways: list[list[list[Validation]]] = [[[]], *([] for _ in groups)]
    for end in range(1, len(groups) + 1):
        length = 0
        for start in range(end - 1, -1, -1):
            length += groups[start][1] - groups[start][0]
            if length > longest:
                break
            if length in numbers.lengths and ways[start]:
                judged = numbers.validate(run[groups[start][0] : groups[end - 1][1]])
                if judged.value is not None:
                    ways[end] += [[*way, judged] for way in ways[start][:2]]
    complete = ways[-1]
    if len(complete) > 1:
        return None
    return complete[0] if complete else []


def only_words(text: str) -> bool:
    """Whether a text has nothing but words and signs that cataloguers put beside numbers."""
    while _BRACKETS.search(text) and not _MANY_DIGITS.search(text):
        text = _BRACKETS.sub(" ", text)
    return not _WORDS.sub(" ", _LABELS.sub(" ", text)).strip(_CARD + ";|,/&")

"""Explains mistakes in bookferry.toml: file, key, mistake, remedy. No message shows a value that may be a secret."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

KnownKeys = Callable[[Sequence[str]], Iterable[str]]
"""Returns the keys that a table of the file may have; the argument is the path of the table, empty for the whole file."""


def explain(place: Path | str, error: ValidationError, known_keys: KnownKeys) -> str:
    """Returns every mistake of a file, or of a table of it, on a line of its own."""
    return "\n".join(
        f"{place}: {_explain_one(problem['loc'], problem['type'], problem, known_keys)}" for problem in error.errors()
    )


def did_you_mean(word: str, known_words: Iterable[str]) -> str:
    """Returns the known word that a person may have meant, as the end of a sentence."""
    close = difflib.get_close_matches(word, list(known_words), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def _explain_one(
    location: tuple[int | str, ...], kind: str, problem: Mapping[str, object], known_keys: KnownKeys
) -> str:
    parts = [str(part) for part in location if part != "[key]"]
    key = ".".join(parts)
    if kind == "extra_forbidden":
        return _refused_key(parts, known_keys)
    if kind == "missing":
        return f"{key}: is missing. Add it."
    if kind == "string_pattern_mismatch" and location[-1] == "[key]":
        name = "the name of a type" if parts[0] == "identifiers" else "a tenant's name"
        return f"{key}: {name} is lower case letters, digits and _, and starts with a letter. Rename it."
    if key == "nightly_at":
        return f"{key}: {problem['input']!r} is not a time of day such as 02:00."
    if (form := _form_of_secret(parts)) is not None:
        return f"{key}: must be {form}"
    message = str(problem["msg"]).removeprefix("Value error, ")
    value = "" if "notify" in parts else _value_text(problem["input"])
    return f"{key}: {value}{message[:1].lower()}{message[1:]}."


def _refused_key(parts: Sequence[str], known_keys: KnownKeys) -> str:
    names = sorted(known_keys(parts[:-1]))
    return f"unknown key {'.'.join(parts)}{did_you_mean(parts[-1], names)}. Known keys here: {', '.join(names)}."


def _form_of_secret(parts: Sequence[str]) -> str | None:
    """What a key about a secret must be. Messages do not show its value, which may be the secret itself."""
    if parts[-1].endswith("_env") or "properties_env" in parts:
        return f"the name of an environment variable, such as {parts[-1].upper()}. Never write the secret itself."
    if "password_command" in parts:
        return 'a list of words, such as ["pass", "show", "library"].'
    return None


def _value_text(value: object) -> str:
    """Returns a wrong value for the message, unless it is a table, or an address that may contain a password."""
    return f"{value!r} " if isinstance(value, str | int | float) and "@" not in str(value) else ""

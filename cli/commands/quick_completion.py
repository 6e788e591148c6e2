"""Answers a shell that completes a command line, from a table of the commands: Typer and what it imports would take three times as long.

The table, words.json, is made from the commands by `make docs`. A line that is not plain (a word in quotes that has not ended, an option
that does not exist, `--option=value`) is left to Typer, as are other shells.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cli.commands import names

TABLE = Path(__file__).with_name("words.json")


class Item(NamedTuple):
    """A word to offer, and what it means."""

    word: str
    help: str = ""


class Answer(NamedTuple):
    """What to print, and the exit status."""

    text: str
    status: int = 0


class NotPlainError(Exception):
    """Typer must answer."""


def answer(asked: str, environment: Mapping[str, str]) -> Answer | None:
    """The answer to `asked`, which is complete_bash and so on; None if Typer must answer."""
    try:
        shell = asked.removeprefix("complete_")
        words, incomplete = _bash(environment) if shell == "bash" else _others(environment)
        items = Line(json.loads(TABLE.read_bytes()), words, incomplete).items()
        return _FORMS[shell](items, environment)
    except (NotPlainError, KeyError, ValueError, OSError):  # a variable is missing, or the table
        return None


def _bash(environment: Mapping[str, str]) -> tuple[list[str], str]:
    words, place = shlex.split(environment["COMP_WORDS"], comments=False), int(environment["COMP_CWORD"])
    return words[1:place], words[place] if place < len(words) else ""


def _others(environment: Mapping[str, str]) -> tuple[list[str], str]:
    line = environment["_TYPER_COMPLETE_ARGS"]
    words = shlex.split(line, comments=False)[1:]
    return (words[:-1], words[-1]) if words and not line.endswith(" ") else (words, "")


class Line:
    """A command line: `words` are complete, `incomplete` is the beginning of the next one."""

    def __init__(self, table: Mapping[str, Any], words: Sequence[str], incomplete: str) -> None:
        if "=" in incomplete or any(one in {"--", "="} for one in words):
            raise NotPlainError
        self._incomplete = incomplete
        self._command = table
        self._used: set[int] = set()
        self._arguments: list[str] = []
        self._config: str | None = None
        self._awaited: Mapping[str, Any] | None = None
        rest = iter(words)
        for word in rest:
            if word.startswith("-") and len(word) > 1:
                self._take_option(word, next(rest, None) if self._option(word)[1]["value"] else "")
            else:
                self._take(word)

    def items(self) -> list[Item]:
        """What can follow."""
        incomplete = self._incomplete
        if incomplete.startswith("-"):
            if self._awaited is not None:
                raise NotPlainError
            return [
                Item(name, option["help"])
                for place, option in enumerate(self._command["options"])
                for name in option["names"]
                if name.startswith(incomplete) and (option["multiple"] or place not in self._used)
            ]
        if self._awaited is not None:
            return self._offered(self._awaited["offers"])
        if len(self._arguments) < len(self._command.get("arguments", ())):
            return self._offered(self._command["arguments"][len(self._arguments)])
        commands = self._command.get("commands", {}).items()
        return [Item(name, command["help"]) for name, command in commands if name.startswith(incomplete)]

    def _take_option(self, word: str, value: str | None) -> None:
        place, option = self._option(word)
        if value is None:  # the word to complete is its value
            self._awaited = option
            return
        if value.startswith("-"):
            raise NotPlainError
        self._used.add(place)
        if word == "--config":
            self._config = value

    def _option(self, word: str) -> tuple[int, Mapping[str, Any]]:
        for place, option in enumerate(self._command["options"]):
            if word in option["names"]:
                return place, option
        raise NotPlainError

    def _take(self, word: str) -> None:
        if "commands" in self._command:
            if word not in self._command["commands"]:
                raise NotPlainError
            self._command, self._used = self._command["commands"][word], set()
            return
        self._arguments.append(word)
        if len(self._arguments) > len(self._command["arguments"]):
            raise NotPlainError

    def _offered(self, offers: str | Sequence[str]) -> list[Item]:
        """`offers`: a kind of names, the choices, or "file" for whatever the shell completes."""
        if offers == "file":
            return [Item(self._incomplete)]
        if isinstance(offers, str):
            found = names.offered(offers, self._config, self._arguments, self._incomplete) if offers else []
        else:
            found = [one for one in offers if one.startswith(self._incomplete)]
        return [Item(one) for one in found]


def _for_bash(items: Sequence[Item], _: Mapping[str, str]) -> Answer:
    return Answer("\n".join(one.word for one in items) + "\n")


def _for_zsh(items: Sequence[Item], _: Mapping[str, str]) -> Answer:
    lines = "\n".join(f'"{_zsh(one.word)}"' + (f':"{_zsh(one.help)}"' if one.help else "") for one in items)
    return Answer(f"_arguments '*: :(({lines}))'\n" if items else "_files\n")


def _zsh(text: str) -> str:
    quoted = text.replace('"', '""').replace("'", "''").replace("$", "\\$")
    return quoted.replace("`", "\\`").replace(":", r"\\:")


def _for_fish(items: Sequence[Item], environment: Mapping[str, str]) -> Answer:
    if environment.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return Answer("", 0 if items else 1)
    return Answer("\n".join(f"{one.word}\t{one.help}" if one.help else one.word for one in items) + "\n")


_FORMS = {"bash": _for_bash, "zsh": _for_zsh, "fish": _for_fish}
"""Shell → the form of the answer that its script from `--show-completion` expects."""

"""The commands that the runbook tells an operator to type, and the services of compose.yaml that run them."""

import re
import shlex
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml
from django.core.management import get_commands

from tests.docs.pages import DOCS, ROOT

SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
# Fenced commands, also those within a list, or what stands between backticks.
_TYPED = re.compile(
    r"^(?P<heading>#)|^ *```sh\n(?P<fenced>.*?)^ *```$|`(?P<span>[^`\n]+)`", re.MULTILINE | re.DOTALL
)
# Not between single quotes.
_AND = re.compile(r" && (?=(?:[^']*'[^']*')*[^']*$)")
_SUBSTITUTED = re.compile(r"\$\((\S+) (\S+)\)")
_PROGRAMS = {"docker", "make", "python", "manage.py", "curl", "psql", "echo", "install", "sudo"}
_WITH_VALUE = {"-u", "--entrypoint", "--profile"}


@dataclass(frozen=True)
class Typed:
    """One command: its words, and where Compose runs them."""

    words: tuple[str, ...]
    service: str | None = None
    # The page only mentions it by its name.
    is_bare: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return shlex.join(self.words) + (f" in {self.service}" if self.service else "")

    @property
    def line(self) -> str:
        return " ".join(self.words)


def typed() -> list[Typed]:
    """
    Return each command of the page once, as it is written most fully.

    An option that is explained belongs to the command fenced before it, under the same heading.
    """
    every = list(dict.fromkeys(_typed((DOCS / "runbook.md").read_text())))
    return [command for command in every if not any(_names(command, other) for other in every)]


def _names(command: Typed, other: Typed) -> bool:
    """Return whether the first only names what the other has in full."""
    begins_alike = other.words[: len(command.words)] == command.words
    if command.words[-1].startswith("--") and len(other.words) > len(command.words):
        return begins_alike
    return begins_alike and command.is_bare and not other.is_bare


def _typed(page: str) -> Iterator[Typed]:
    above: Typed | None = None
    for match in _TYPED.finditer(page):
        if match["heading"]:
            above = None
        elif match["fenced"]:
            for statement in _statements(textwrap.dedent(match["fenced"])):
                above = _read(statement)
                yield above
        elif (words := match["span"].split()) and _is_command(words):
            yield from map(_read, _AND.split(match["span"]))
        elif words[0].startswith("--") and above and words[0] not in above.words:
            yield Typed((*above.words, *words), above.service)


def _statements(script: str) -> Iterator[str]:
    """Yield the commands of a script; a quotation may have several lines."""
    pending = ""
    for line in script.splitlines():
        pending = f"{pending}\n{line}" if pending else line
        if pending.count("'") % 2 == 0:
            yield from _AND.split(pending)
            pending = ""


def _is_command(words: list[str]) -> bool:
    return words[0] in _PROGRAMS or words[0] in get_commands() or words[0].startswith("pg_arch")


def _read(statement: str) -> Typed:
    words, service = shlex.split(_SUBSTITUTED.sub(r"$(\1\\ \2)", statement)), None
    is_bare = words[0] not in _PROGRAMS
    if words[:2] == ["docker", "compose"] and words[2] in ("exec", "run"):
        inside = _after_options(words[3:])
        if inside[1:]:
            service, words = inside[0], inside[1:]
    for prefix in (["python", "manage.py"], ["manage.py"]):
        words = words[len(prefix) :] if words[: len(prefix)] == prefix else words
    return Typed(tuple(words), service, is_bare)


def _after_options(words: list[str]) -> list[str]:
    while words[0].startswith("-"):
        words = words[2 if words[0] in _WITH_VALUE else 1 :]
    return words


_OPTIONS = {"-d", "--no-deps", "--wait", "--rm", "--resolve-image-digests"}


def unknown_words(words: tuple[str, ...]) -> list[str]:
    """Return the words of a Compose command that are no option and no service of compose.yaml in its profile."""
    rest, profile = list(words[2:]), None
    if rest[0] == "--profile":
        profile, rest = rest[1], rest[2:]
    return [word for word in rest[1:] if word not in _OPTIONS and not _is_there(word, profile)]


def _is_there(name: str, profile: str | None) -> bool:
    return name in SERVICES and profile in SERVICES[name].get("profiles", [profile])

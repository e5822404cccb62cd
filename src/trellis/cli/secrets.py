"""Takes the passwords of commands from a prompt or a file, and never from an argument."""

import sys
from collections.abc import Mapping
from typing import Any

import typer

from trellis.cli.terminal import MISUSED, Failure, read_line
from trellis.core.fields import Field
from trellis.core.operation import Operation


def take_secrets(operation: Operation, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of an operation, with passwords from files and the prompt. Raises Failure for a password in an argument."""
    taken = dict(raw)
    for field in (field for field in operation.takes if field.is_secret):
        for name in (name for name in (field.name, *field.also) if name in raw):
            if raw[name] not in (None, ""):  # these remove a password
                taken[name] = _read_file(name, raw[name])
        if field.required and not any(name in raw for name in (field.name, *field.also)):
            taken[field.name] = _ask(field)
    return taken


def _read_file(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.startswith("@"):
        raise _refuse(name)
    path = value.removeprefix("@")
    try:
        line = read_line(path)
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{name} could not be read from '{path}': {error}", MISUSED) from None
    if not line:
        raise Failure(f"The first line of '{path}', which should be {name}, is empty.", MISUSED)
    return line


def _ask(field: Field) -> str:
    if not sys.stdin.isatty():
        raise _refuse(field.name)
    return str(typer.prompt(field.label, hide_input=True, confirmation_prompt=True, err=True))


def _refuse(name: str) -> Failure:
    return Failure(
        f"{name} is not accepted as an argument, which others on this machine could see. At a terminal, leave it out to be asked "
        f"for it; otherwise give a file whose first line it is: {name}=@FILE, or {name}=@- for standard input.",
        MISUSED,
    )

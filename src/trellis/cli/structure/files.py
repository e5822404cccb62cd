"""Reads the files of structure documents, with passwords from the environment, and writes files."""

import os
import secrets
import stat
import sys
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from trellis.cli.terminal import STDIN, Failure, progress_at_terminal
from trellis.core.kind import NodeKind
from trellis.core.structure import LARGEST_DOCUMENT, LinedMapping, Unreadable, read_document
from trellis.store.engine import sync_folder

_CHILDREN: Final = "children"
_MOST_BYTES: Final = len(BOM_UTF8) + LARGEST_DOCUMENT
_LONGEST: Final = 255  # characters of a file's name that a refusal shows


@dataclass(slots=True)
class DocumentFiles:
    """Documents in the form that operations take, each {file, content}, and the faults found while reading them, one line each."""

    sent: list[dict[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the files, as refusals show them."""
        return tuple(one["file"] for one in self.sent)


def read_files(names: Sequence[str], kinds: Iterable[NodeKind]) -> DocumentFiles:
    """Read documents from files and standard input (`-`). Raises Failure for a file that cannot be read."""
    if names.count(STDIN) > 1:
        raise Failure("Standard input (-) can be read only once.")
    documents = DocumentFiles()
    hidden = {kind.name: [f.name for f in kind.secrets] for kind in kinds if kind.secrets}
    for name in names:
        shown = os.fsencode(name).decode("utf-8", "replace")  # file names need not be UTF-8, but what is sent must be
        file, content = shown[:_LONGEST] if name != STDIN else "standard input", _read(name)
        try:
            with progress_at_terminal(f"Reading {file}"):
                content = read_document(content)
        except Unreadable:  # the operation refuses the text, together with all that is wrong in other files
            pass
        else:
            documents.faults += [f"{file}, line {line}: {detail}" for line, detail in _fill_in_passwords(content, hidden)]
        documents.sent.append({"file": file, "content": content})
    return documents


def _read(name: str) -> Any:
    try:
        with nullcontext(sys.stdin.buffer) if name == STDIN else Path(name).open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)  # a device may have no end
        if len(raw) > _MOST_BYTES:
            raise Failure(f"{name} is larger than {LARGEST_DOCUMENT >> 20} MiB. Split the document by section.")
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise Failure(f"{name} could not be read: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise Failure(f"{name}, line {line}: This is not UTF-8.") from None


def write_whole(path: Path, text: str) -> None:
    """Write a file, or replace it: whoever reads it finds either the old or the new one. Raises Failure."""
    try:
        target = Path(os.path.realpath(path))  # the file that a link leads to; of no folder if this one was deleted
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")  # a device or a pipe, which may have no name but this link
            return
        work = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}")
        try:
            with work.open("x", encoding="utf-8") as file:
                if target.exists():
                    work.chmod(stat.S_IMODE(target.stat().st_mode))  # those who may read it stay the same
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            work.replace(target)
            sync_folder(target.parent)
        finally:
            work.unlink(missing_ok=True)
    except OSError as error:
        raise Failure(f"{path} could not be written: {error.strerror or error}.") from None


def _fill_in_passwords(content: Any, hidden: Mapping[str, Sequence[str]]) -> Iterator[tuple[int, str]]:
    """Replace each `{env: NAME}` by a password from the environment; yield the line and the fault of those that cannot be replaced.

    A password at fault is removed, so that it is not sent anywhere.
    """
    for section, names in hidden.items():
        waiting = [content.get(section)] if isinstance(content, Mapping) else []
        while waiting:
            entries = waiting.pop()
            for entry in entries if isinstance(entries, list) else ():
                if isinstance(entry, LinedMapping):
                    waiting.append(entry.get(_CHILDREN))
                    for name in names:
                        if (detail := _fill_in(entry, name)) is not None:
                            del entry[name]
                            yield entry.lines[name], detail


def _fill_in(entry: LinedMapping, name: str) -> str | None:
    value = entry.get(name)
    if value is None or value == "":  # these remove a password
        return None
    if not isinstance(value, Mapping) or value.keys() != {"env"}:
        shape = f"{name} must be {{env: NAME}}" if isinstance(value, Mapping) else f"{name} is in plain text here"
        return f"{shape}. Write {name}: {{env: NAME}}, and set NAME in the environment."
    variable = value["env"]
    if not isinstance(variable, str) or not (found := os.environ.get(variable)):
        return f"{name} has to come from the environment, but {variable!r} is not set there, or is empty."
    entry[name] = found
    return None

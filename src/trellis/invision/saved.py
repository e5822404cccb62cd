"""Saved answers: a folder with a file for each answer, named after the requested path, or one file with all of them.

    core/hello.json
    forums/forums/page-1.json  page-2.json …
    forums/forums/12.json

A single file is an object: path → the answer, or a list of the pages.
"""

import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from trellis.invision.answers import HELLO, Answers, Parser, ReadingFailed

MOST_BYTES: Final = 64 * 2**20  # of one file
_PAGE: Final = re.compile(r"page-([0-9]{1,6})\.json", re.ASCII)
_DRAFT: Final = re.compile(r"[0-9a-f]{8}", re.ASCII)  # ends the name of a folder until all answers are in it
_NOTHING: Final = "There are no answers of a community in it: it would have folders such as forums/forums with page-1.json."


def read_saved(source: Path, paths: Iterable[str]) -> Answers:
    """Read the saved answers for the lists at these paths, from a folder or a file. Raises ReadingFailed."""
    try:
        answers = _read_folder(source, paths) if source.is_dir() else _read_file(source, paths)
    except OSError as error:
        raise ReadingFailed(f"{error.filename or source} could not be read: {error.strerror or error}.") from None
    if not answers.pages:
        raise ReadingFailed(f"{source}: {_NOTHING}")
    for path in answers.pages:
        if missing := answers.count_missing(path):
            answers.cautions.append(
                f"{path}: the answers report {missing:,} more records than were saved. Save all pages of the list."
            )
    return answers


def _read_folder(folder: Path, paths: Iterable[str]) -> Answers:
    answers, parser = Answers(), Parser()
    hello = folder / f"{HELLO}.json"
    if hello.exists():
        answers.hello = _as_hello(_read_json(hello, parser))
    for path in paths:
        found = (folder / path).iterdir() if (folder / path).is_dir() else ()
        pages = sorted((int(match[1]), file) for file in found if (match := _PAGE.fullmatch(file.name)))
        if not pages:
            continue
        numbers = [number for number, _ in pages]
        if numbers != [*range(1, len(numbers) + 1)]:
            gap = next(number for number, there in enumerate(numbers, 1) if number != there)
            raise ReadingFailed(f"{folder / path}: page-{gap}.json is missing. Save the community again.")
        answers.pages[path] = [_read_json(file, parser) for _, file in pages]
    return answers


def _read_file(file: Path, paths: Iterable[str]) -> Answers:
    read = _read_json(file, Parser())
    if not isinstance(read, Mapping):
        raise ReadingFailed(f"{file}: This must be an object with the answers by their paths, such as 'forums/forums'.")
    answers = Answers(_as_hello(read.get(HELLO)))
    for path in paths:
        if path in read:
            answers.pages[path] = _list_pages(read[path])
    return answers


def _list_pages(answer: Any) -> list[Any]:
    """Return the pages of a list, which may be several answers or one. A single one may be a bare list of records."""
    several = isinstance(answer, list) and all(isinstance(one, Mapping) and "results" in one for one in answer)
    return answer if several else [answer]


def _as_hello(read: Any) -> Mapping[str, Any] | None:
    return read if isinstance(read, Mapping) else None


def _read_json(file: Path, parser: Parser) -> Any:
    with file.open("rb") as opened:
        raw = opened.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise ReadingFailed(f"{file} is larger than {MOST_BYTES >> 20} MiB. Save the community again, in smaller pages.")
    try:
        return parser.parse(raw)
    except orjson.JSONDecodeError as error:
        line = raw.count(b"\n", 0, error.pos) + 1
        raise ReadingFailed(f"{file}, line {line}: This is not JSON ({error.msg}). Save the community again.") from None


def write_saved(folder: Path, answers: Iterable[tuple[str, Any]]) -> int:
    """Write named answers into a new folder, all or none; return their number. Raises ReadingFailed, OSError."""
    folder = Path(os.path.abspath(folder))  # noqa: PTH100  # resolve() would follow a link with the name of the folder
    check_folder(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    start = f".{folder.name[:100]}."
    _remove_leftovers(folder.parent, start)
    work, lock = _make_draft(folder.parent, start)
    try:
        count = 0
        for count, (name, answer) in enumerate(answers, 1):  # noqa: B007  # the number is known only at the end
            file = work / f"{name}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(_write_json(name, answer))
        if folder.is_dir():
            work.chmod(stat.S_IMODE(folder.stat().st_mode))  # those who may read an empty folder stay the same
        work.replace(folder)
        return count
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    finally:
        os.close(lock)


def _make_draft(parent: Path, start: str) -> tuple[Path, int]:
    """Make a folder of which others know by a lock that somebody uses it; return it with the lock, which closes with its file."""
    while True:
        work = parent / f"{start}{secrets.token_hex(4)}"
        work.mkdir()
        with suppress(FileNotFoundError):  # somebody has removed it before it was locked
            lock = os.open(work, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            if work.exists():
                return work, lock
            os.close(lock)


def _remove_leftovers(parent: Path, start: str) -> None:
    """Remove the folders that killed processes have left: those that no process has locked."""
    for left in parent.iterdir():
        if not left.name.startswith(start) or not _DRAFT.fullmatch(left.name[len(start) :]):
            continue
        with suppress(OSError):
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(lock)


def _write_json(name: str, answer: Any) -> bytes:
    try:
        return orjson.dumps(answer, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        raise ReadingFailed(f"{name}: This is nested too deeply to be saved. Leave out --save; nothing was written.") from None


def check_folder(folder: Path) -> None:
    """Raise ReadingFailed unless a folder is new or empty."""
    try:
        is_free = not any(folder.iterdir()) if folder.is_dir() else not (folder.exists() or folder.is_symlink())
    except OSError as error:
        raise ReadingFailed(f"{folder} could not be read: {error.strerror or error}. Name a new folder.") from None
    if not is_free:
        raise ReadingFailed(f"{folder} already exists. Name a new folder; nothing was written.")


def name_answers(answers: Answers) -> Iterator[tuple[str, Any]]:
    """Yield answers with their names in a folder."""
    if answers.hello is not None:
        yield HELLO, answers.hello
    for path, pages in answers.pages.items():
        yield from ((f"{path}/page-{number}", page) for number, page in enumerate(pages, 1))

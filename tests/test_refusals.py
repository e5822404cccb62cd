"""The table of refusals: whole, in step with the contract, and read rather than repeated."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

import trellis
from trellis.compose import catalogue_of
from trellis.kinds import KINDS
from trellis.refusals import REFUSALS, Refusal, Scope, with_codes

PACKAGE: Final = Path(trellis.__file__).parent
each_refusal = pytest.mark.parametrize("refusal", REFUSALS.values(), ids=list(REFUSALS))

# Section 5 of the contract: status, message and codes, of which the first is that of the table where it is not a kind's own.
CONTRACT: Final = (
    (401, "NO_API_KEY", ("2S290/6",)),
    (401, "INVALID_API_KEY", ("3S290/7",)),
    (403, "IP_ADDRESS_NOT_ALLOWED", ("2S290/8",)),
    (403, "CANNOT_USE_KEY_AS_URL_PARAM", ("2S290/B",)),
    (403, "NO_PERMISSION", ("2S291/3",)),
    (404, "NO_ENDPOINT", ("2S291/1",)),
    (405, "BAD_METHOD", ("3S291/2",)),
    (404, "INVALID_ID", ("1C358/1", "1F363/1", "1S359/1")),
    (400, "NO_TITLE", ("1F363/2", "1L364/2")),
    (400, "NO_REDIRECT_URL", ("1F363/3",)),
    (400, "INVALID_TYPE", ("1F363/4",)),
    (403, "CANNOT_DELETE", ("2C358/3",)),
    (400, "INVALID_TARGET", ("1S359/2",)),
    (409, "HAS_CHILDREN", ("1S359/3",)),
    (429, "TOO_MANY_REQUESTS_WITH_BAD_KEY", ("1S290/D",)),
    (429, "RATE_LIMITED", ("1T103/1",)),
    # Named in the sections before it.
    (400, "INVALID_PARENT", ("1T101/3",)),
    (400, "INVALID_POSITION", ("1T101/4",)),
    (412, "PRECONDITION_FAILED", ("1T102/1",)),
    (422, "IDEMPOTENCY_KEY_REUSED", ("1T102/2",)),
    (409, "IDEMPOTENCY_KEY_IN_USE", ("1T102/3",)),
    (415, "UNSUPPORTED_MEDIA_TYPE", ("1T100/2",)),
    (413, "BODY_TOO_LARGE", ("1T100/3",)),
    (400, "MALFORMED_REQUEST", ("1T100/1",)),
    (500, "INTERNAL_ERROR", ("4T104/2",)),
)


def test_code_and_message_are_unique_together_and_so_is_the_title() -> None:
    for column in ("code", "message", "title"):
        counts = Counter(getattr(refusal, column) for refusal in REFUSALS.values())
        assert [value for value, times in counts.items() if times > 1] == []


@each_refusal
def test_a_row_is_well_formed(refusal: Refusal) -> None:
    assert REFUSALS[refusal.message] is refusal
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", refusal.message)
    assert re.fullmatch(r"[0-9][A-Z][0-9]{3}/[0-9A-Z]", refusal.code)
    assert 400 <= refusal.status < 600
    assert refusal.title[0].isupper()
    assert not refusal.title.endswith(".")
    assert refusal.when.endswith(".")
    assert all(member.doc.endswith(".") for member in refusal.members)


@each_refusal
def test_headers_are_filled_from_members(refusal: Refusal) -> None:
    members = {member.name: 1 for member in refusal.members}
    assert all(value.format_map(members) for value in refusal.headers.values())


def test_the_headers_that_http_asks_for_are_brought() -> None:
    asked = {401: "WWW-Authenticate", 405: "Allow", 429: "Retry-After", 503: "Retry-After"}
    for refusal in REFUSALS.values():
        assert set(refusal.headers) == ({asked[refusal.status]} if refusal.status in asked else set())


@pytest.mark.parametrize(("status", "message", "codes"), CONTRACT, ids=[message for _, message, _ in CONTRACT])
def test_the_table_agrees_with_the_contract(status: int, message: str, codes: tuple[str, ...]) -> None:
    declared = {code for operation in catalogue_of(KINDS).values() for one, code in operation.refusals if one == message}
    assert REFUSALS[message].status == status
    assert REFUSALS[message].code in codes
    assert set(codes) <= declared | {REFUSALS[message].code}


def test_nobody_can_add_a_row_elsewhere() -> None:
    with pytest.raises(TypeError):
        REFUSALS["OUT_OF_TEA"] = REFUSALS["BUSY"]  # type: ignore[index]  # that is the point


def test_an_operation_declares_refusals_with_their_codes() -> None:
    assert with_codes("BUSY", "NO_TITLE") == (("BUSY", "4T104/1"), ("NO_TITLE", "1F363/2"))


# --- the rest of the package --------------------------------------------------------------------------------------


@cache
def named() -> tuple[tuple[str, Path, ast.expr, ast.AST], ...]:
    """Return each place outside the table where a message stands, with what it stands in."""
    return tuple(find_named())


def find_named() -> Iterator[tuple[str, Path, ast.expr, ast.AST]]:
    """Go through the code of the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.parent == PACKAGE / "refusals":
            continue
        for outer in ast.walk(ast.parse(path.read_text())):
            for node in ast.iter_child_nodes(outer):
                if isinstance(node, ast.Constant) and node.value in REFUSALS:
                    yield str(node.value), path, node, outer


def test_every_refusal_is_raised_or_declared_somewhere() -> None:
    assert {message for message, *_ in named()} == set(REFUSALS)


def test_what_an_operation_declares_is_in_the_scope_of_declared_refusals() -> None:
    declared = {message for operation in catalogue_of(KINDS).values() for message, _ in operation.refusals}
    assert {message for message in declared if REFUSALS[message].scope is not Scope.DECLARED} == set()


def test_nobody_chooses_what_to_do_by_the_name_of_a_refusal() -> None:
    """A message is raised and declared; who reacts to one asks its row (its status, its members)."""
    asking = (ast.Compare, ast.Set, ast.MatchValue, ast.Subscript)
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: {message}"
        for message, path, node, outer in named()
        if isinstance(outer, asking)
    ]
    assert found == []
    pages = [path for path in PACKAGE.joinpath("admin").rglob("*.*") if path.suffix in {".html", ".js"}]
    assert [path.name for path in pages if re.search(rf"\b({'|'.join(REFUSALS)})\b", path.read_text())] == []

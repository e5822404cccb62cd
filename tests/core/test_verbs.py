"""Verbs as data: the records agree with HTTP, and no module of the package asks which verb an operation has."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

import trellis
from tests.community import CATALOGUE
from trellis.core.verbs import _PAST, CREATE, SHARED, Body, Response, Verb, past_tense, singular_of

SOURCE: Final = Path(trellis.__file__).parent
RECORDS: Final = frozenset(name.upper() for name in SHARED)
VERBS: Final = tuple(dict.fromkeys(operation.verb for operation in CATALOGUE.values() if operation.verb is not None))
# What stands in the source of every question. Most modules have none of it, and need not be parsed: that takes far longer.
MENTIONS: Final = re.compile(rf"\b(?:verb|{'|'.join(sorted(RECORDS))})\b|\.\s*operation\s*\(")
# Of several syllables, with a last letter that is doubled if the last one is stressed; those whose last one is not; and the rest.
LONG: Final = re.compile("[a-z]*[aeiou][a-z]*[^aeiou][aeiou][^aeiouwxy]")
UNSTRESSED: Final = frozenset(("order", "redeliver"))
IRREGULAR: Final = frozenset(
    (
        *("bind", "break", "bring", "build", "buy", "cast", "catch", "choose", "cut", "draw", "feed", "find", "forbid", "forget"),
        *("freeze", "give", "hide", "hold", "keep", "lay", "lead", "leave", "lend", "let", "lose", "make", "mean", "meet", "pay"),
        *("read", "rebuild", "redo", "rewrite", "run", "sell", "send", "shut", "speak", "spend", "split", "take", "tell"),
        *("unbind", "undo", "unfreeze", "unhide", "win", "write"),
    )
)
each_verb = pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)


def questions(source: str) -> Iterator[int]:
    """Return the lines on which some code compares a verb, or the name of an operation, with one in particular."""
    if MENTIONS.search(source) is None:
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and any(map(_is_verb, (node.left, *node.comparators))):
            if not all(isinstance(one, ast.Constant) and one.value is None for one in node.comparators):
                yield node.lineno
        elif isinstance(node, ast.Match) and _is_verb(node.subject):
            yield node.lineno


def _is_verb(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr="name", value=value):
            return _is_verb(value)
        case ast.Attribute(attr="verb") | ast.Name(id="verb"):
            return True
        case ast.Name(id=name):
            return name in RECORDS
        case ast.Call(func=ast.Attribute(attr="operation")):
            return True
    return False


def test_no_module_asks_which_verb_it_is() -> None:
    found = {str(path.relative_to(SOURCE)): list(questions(path.read_text(encoding="utf-8"))) for path in SOURCE.rglob("*.py")}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        'operation.verb == "delete"',
        'operation.verb.name in {"create", "update"}',
        "verb is DELETE",
        "route.verb != other",
        'event.operation == kind.operation("delete")',
        "match operation.verb:\n    case _:\n        pass",
    ],
)
def test_a_question_about_a_verb_is_found(source: str) -> None:
    assert list(questions(source)) == [1]


@pytest.mark.parametrize(
    "source", ["operation.verb is None", "verb.writes", "for verb in STANDARD: pass", "route.verb.status == 201"]
)
def test_what_a_record_says_may_be_asked(source: str) -> None:
    assert list(questions(source)) == []


@each_verb
def test_a_verb_keeps_to_its_method(verb: Verb) -> None:
    assert verb.writes == (verb.method != "GET")
    assert verb.idempotent or verb.method == "POST"
    assert (verb.status == 201) == verb.creates
    assert verb.writes or not (verb.destructive or verb.body or verb.if_match or verb.idempotency_key or verb.keeps_rows)
    assert (verb.response is Response.NULL) <= (verb.method == "DELETE")
    assert verb.body is not Body.CHANGES or (verb.path_parameter and verb.if_match)


@each_verb
def test_a_verb_that_can_be_sent_twice_has_a_guard_against_it(verb: Verb) -> None:
    assert verb.idempotent or verb.idempotency_key


def test_an_operation_is_what_its_verb_says() -> None:
    for operation in CATALOGUE.values():
        if (verb := operation.verb) is not None:
            assert (operation.writes, operation.has_target) == (verb.writes, verb.has_target), operation.name
            assert (operation.path is None) <= (operation.kind is not None), operation.name


def test_no_two_verbs_share_a_name_or_a_code() -> None:
    alike = {replace(verb, if_match=False) for verb in VERBS}  # what has no version is restored without one
    names, codes = [verb.name for verb in alike], [verb.code for verb in alike if verb.code]
    assert len(names) == len(set(names))
    assert len(codes) == len(set(codes))
    assert not {"2", "3", "4"} & set(codes)  # those are other refusals of a kind


@pytest.mark.parametrize(
    ("name", "past"),
    [
        *(("create", "created"), ("restore", "restored"), ("copy", "copied"), ("revoke", "revoked"), ("deploy", "deployed")),
        *(
            ("swap", "swapped"),
            ("pin", "pinned"),
            ("stop", "stopped"),
            ("touch", "touched"),
            ("fix", "fixed"),
            ("clear", "cleared"),
        ),
    ],
)
def test_an_event_has_the_past_tense(name: str, past: str) -> None:
    assert past_tense(name) == past


@pytest.mark.parametrize(
    ("resource", "singular"),
    [
        *(("forums", "forum"), ("categories", "category"), ("images", "image"), ("courses", "course")),
        *(("quizzes", "quiz"), ("series", "series"), ("classes", "class"), ("boxes", "box"), ("wishes", "wish")),
    ],
)
def test_an_event_has_the_singular(resource: str, singular: str) -> None:
    assert singular_of(resource) == singular


@each_verb
def test_the_past_tense_of_a_verb_that_leaves_events_is_beyond_doubt(verb: Verb) -> None:
    first = verb.name.partition("_")[0]
    is_doubtful = first in IRREGULAR or (LONG.fullmatch(first) and first not in UNSTRESSED)
    assert first in _PAST or not (verb.writes and is_doubtful), (
        f"Its events would be named '{verb.event}' for good: state its past tense in _PAST in trellis/core/verbs.py."
    )


def test_a_doubtful_past_tense_is_noticed() -> None:
    for name in ("submit", "refer", "unpin", "send", "hide"):
        with pytest.raises(AssertionError, match="for good"):
            test_the_past_tense_of_a_verb_that_leaves_events_is_beyond_doubt(replace(CREATE, name=name))


@pytest.mark.parametrize(
    ("name", "past"),
    [("sign_in", "signed_in"), ("refuse_sign_in", "refused_sign_in"), ("set_password", "set_password"), ("begin", "begun")],
)
def test_verbs_of_several_words_have_a_past_tense(name: str, past: str) -> None:
    assert past_tense(name) == past

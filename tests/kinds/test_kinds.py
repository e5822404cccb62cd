"""Every kind that this community holds: its declaration agrees with itself and with the contract."""

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types of its own

from tests.fixture_types import Run
from trellis.core.fields import Boolean, Choice, Field, Groups, InputForm, Integer, Type
from trellis.core.kind import Leaf, NodeKind
from trellis.core.verbs import _SINGULARS, DELETE, GET, LIST, singular_of
from trellis.kinds import KINDS

each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def test_there_are_the_five_of_the_contract() -> None:
    served = {kind.name: (kind.path, kind.also, kind.over_rest) for kind in KINDS}
    assert served == served | {
        "groups": ("/core/groups", (), (LIST, GET, DELETE)),
        "forums": ("/forums/forums", (), None),
        "blogs": ("/blog/blogs", (), (LIST, GET, DELETE)),
        "calendars": ("/calendar/calendar", ("/calendar/calendars",), None),
        "categories": ("/downloads/category", ("/downloads/categories",), None),
    }


def test_no_two_kinds_share_a_code_or_a_path() -> None:
    codes = Counter(kind.code for kind in KINDS)
    paths = Counter(path for kind in KINDS for path in (kind.path, *kind.also))
    assert max(codes.values()) == max(paths.values()) == 1


def test_permissions_are_given_to_one_kind() -> None:
    assert [kind.name for kind in KINDS if kind.is_group] == ["groups"]


@each_kind
def test_no_two_fields_share_a_name_or_an_alias(kind: NodeKind) -> None:
    taken = Counter(name for field in kind.accepted for name in (field.name, *field.also))
    assert [name for name, times in taken.items() if times > 1] == []


@each_kind
def test_every_field_and_option_is_explained_in_a_sentence(kind: NodeKind) -> None:
    docs = {field.name: field.doc for field in (*kind.accepted, *kind.response_fields)} | dict(kind.options) | {kind.name: kind.doc}
    assert [name for name, doc in docs.items() if not (doc[:1].isupper() and doc.endswith((".", ").")))] == []


@each_kind
def test_names_are_in_one_spelling(kind: NodeKind) -> None:
    names = [*(field.name for field in kind.accepted), *kind.options]
    assert [name for name in names if not (name.isalnum() and name[0].islower())] == []


@each_kind
def test_its_name_is_a_word_of_small_letters(kind: NodeKind) -> None:
    assert re.fullmatch("[a-z]+", kind.name), (
        f"'{kind.name}': published patterns, of events (forum.created) and of records within bounds (forums:12), allow only a to z."
    )


def test_a_name_that_the_patterns_do_not_allow_is_noticed() -> None:
    for name in ("photo_galleries", "photoGalleries", "top10", "caf\u00e9s"):
        with pytest.raises(AssertionError, match="allow only a to z"):
            test_its_name_is_a_word_of_small_letters(replace(KINDS[0], name=name))


@each_kind
def test_its_events_are_named_by_its_singular(kind: NodeKind) -> None:
    assert kind.name in _SINGULARS or singular_of(kind.name) == kind.singular.split()[-1], (
        f"Its events would be named '{singular_of(kind.name)}.created' for good: state the right singular of '{kind.name}' in "
        "_SINGULARS in trellis/core/verbs.py."
    )


@each_kind
def test_every_default_is_a_value_that_its_own_type_keeps(kind: NodeKind) -> None:
    for field in kind.fields:
        if field.default is not None:
            parsed = field.type.parse(field.default)
            stored = list(parsed) if isinstance(parsed, tuple) else parsed
            assert stored == field.default, f"{field.name}: the default must be what is stored: {stored!r}."
            assert is_valid(field, field.default), field.name


@each_kind
def test_what_is_stored_without_a_default_is_a_value_of_the_type(kind: NodeKind) -> None:
    for field in kind.fields:
        if field.default is None and not (field.required or field.write_only):
            assert is_valid(field, None), (
                f"{field.name}: without a default, null is stored. Give it one, or a type with nullable=True."
            )


def is_valid(field: Field, value: Any) -> bool:
    return bool(Draft202012Validator(field.type.schema()).is_valid(value))


def test_a_field_that_stores_something_else_is_noticed() -> None:
    def holding(type_: Type, default: Any = None) -> NodeKind:
        return replace(KINDS[0], fields=(Field("more", type_, "More.", default=default),))

    test_every_default_is_a_value_that_its_own_type_keeps(holding(Groups(), "*"))
    test_every_default_is_a_value_that_its_own_type_keeps(holding(Groups(), []))
    with pytest.raises(AssertionError, match=r"what is stored: \[\]"):
        test_every_default_is_a_value_that_its_own_type_keeps(holding(Groups(), ()))
    with pytest.raises(AssertionError, match="what is stored: True"):
        test_every_default_is_a_value_that_its_own_type_keeps(holding(Boolean(), "true"))
    test_what_is_stored_without_a_default_is_a_value_of_the_type(holding(Integer(1, nullable=True)))
    with pytest.raises(AssertionError, match="nullable=True"):
        test_what_is_stored_without_a_default_is_a_value_of_the_type(holding(Integer(1)))


@each_kind
def test_what_must_not_have_children_is_told_by_one_of_its_choices(kind: NodeKind) -> None:
    types = {field.name: field.type for field in kind.fields}
    chosen = types.get(kind.leaf.field)
    assert kind.leaf == Leaf() or (isinstance(chosen, Choice) and kind.leaf.value in chosen.words), kind.leaf


@each_kind
def test_every_example_is_taken(kind: NodeKind) -> None:
    examples = {field.name: field.example for field in kind.accepted if field.example is not None and not field.read_only}
    given = InputForm(kind.accepted).read(examples)
    assert given.faults == ()
    assert set(given.values) == set(examples)


@each_kind
def test_a_node_of_nothing_but_a_name_is_as_declared(kind: NodeKind, run: Run) -> None:
    made = run(f"{kind.name}.create", name="Plain")
    assert list(made) == [field.name for field in kind.response_fields]
    defaults = {f.name: f.default for f in kind.fields if not f.write_only}
    assert {name: made[name] for name in defaults} == defaults
    assert made.get("permissions", {}) == {option: [] for option in kind.options}


@each_kind
def test_an_answer_agrees_with_the_schemas_of_its_members(kind: NodeKind, run: Run) -> None:
    made = run(
        f"{kind.name}.create",
        **{f.name: f.example for f in kind.accepted if f.example is not None and f.name != "parentId"},
    )
    for field in kind.response_fields:
        Draft202012Validator(field.schema()).validate(made[field.name])


@each_kind
def test_what_get_answers_can_be_sent_back_and_changes_nothing(kind: NodeKind, run: Run) -> None:
    made = run(f"{kind.name}.create", name="Round trip")
    got = run(f"{kind.name}.get", made["id"])
    assert run(f"{kind.name}.update", made["id"], **got) == got == made
    assert len(run("events.list")["results"]) == 1


ALIASES = {
    "groups": {"title": "name"},
    "forums": {
        "title": "name",
        "parent": "parentId",
        "sitemap_priority": "sitemapPriority",
        "min_content": "minContent",
        "can_see_others": "canSeeOthers",
        "redirect_url": "redirectUrl",
    },
    "blogs": {"title": "name"},
    "calendars": {
        "title": "name",
        "approve_events": "approveEvents",
        "allow_comments": "allowComments",
        "approve_comments": "approveComments",
        "allow_reviews": "allowReviews",
        "approve_reviews": "approveReviews",
    },
    "categories": {
        "title": "name",
        "parent": "parentId",
        "moderation_edits": "moderationEdits",
        "allowss": "allowScreenshots",
        "reqss": "requireScreenshots",
        "comments_moderation": "commentsModeration",
        "reviews_mod": "reviewsModeration",
        "reviews_download": "reviewsDownload",
    },
}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name in ALIASES], ids=lambda kind: kind.name)
def test_the_older_names_of_the_contract_are_accepted(kind: NodeKind) -> None:
    assert {alias: field.name for field in kind.accepted for alias in field.also} == ALIASES[kind.name]

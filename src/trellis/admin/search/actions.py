"""Actions as somebody would type them: `new forum under News`, `revoke Calendar sync`. A new one is one row here."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from trellis.admin.keys import RECIPES
from trellis.admin.nodes import find_actions
from trellis.core.catalogue import Catalogue
from trellis.core.nodes import NodeKind
from trellis.languages import Language
from trellis.sentences import say

_SHORTEST: Final = 3  # letters that a word needs to stand for a longer one, unless it is the last word
_ENDING: Final = 2  # letters of an ending at most


def _can_have_children(kind: NodeKind, record: Mapping[str, Any]) -> bool:
    return not kind.leaf_only(record)


def _can_go(kind: NodeKind, record: Mapping[str, Any]) -> bool:
    return record["id"] not in kind.built_in


@dataclass(frozen=True, slots=True)
class Command:
    """An action, named by the words that it is typed with; `optional` are those that may be left out.

    `also` are other words for the action, which are understood but not shown. Each of them may be typed with an ending, as in
    German.

    If the action needs a record, `resource` is the record's resource, `path` contains {id}, and `applies` decides whether the
    action is possible for a record.
    """

    words: str
    path: str
    resource: str = ""
    optional: str = ""
    applies: Callable[[Mapping[str, Any]], bool] = lambda _: True
    also: str = ""

    @property
    def title(self) -> str:
        """The title of the action."""
        return self.words[:1].upper() + self.words[1:]

    def said_in(self, language: Language) -> "Command":
        """Return this action with its words in a language."""
        words, optional, also = (language.sentence(one) for one in (self.words, self.optional, self.also))
        return replace(self, words=words, optional=optional, also=also)

    def read(self, text: str) -> str | None:
        """Return what follows the words of this action in a text; None if the text is neither this action nor its beginning."""
        rest = self._read(self.words, text)
        return self._read(self.also, text, has_endings=True) if rest is None else rest

    def _read(self, words: str, text: str, *, has_endings: bool = False) -> str | None:
        typed, at, optional = text.split(), 0, self.optional.casefold().split()
        for word in words.casefold().split():
            if at == len(typed):
                break
            one = typed[at].casefold()
            is_last = at == len(typed) - 1
            if (
                word == one
                or (word.startswith(one) and (is_last or len(one) >= _SHORTEST))
                or (has_endings and one.startswith(word))
            ):
                at += 1
            elif word not in optional:
                return None
        return None if at == 0 else " ".join(typed[at:])

    def is_named(self, text: str) -> bool:
        """Return whether a text contains all words of this action except the optional ones, so that what follows names a record."""
        typed = [one.casefold() for one in text.split()]
        optional = self.optional.casefold().split()
        needed = [word for word in self.words.casefold().split() if word not in optional]
        others = self.also.casefold().split()
        return all(any(word.startswith(one) for one in typed) for word in needed) or (
            bool(others) and all(any(word.startswith(one) or one.startswith(word) for one in typed) for word in others)
        )


def begins_action(actions: Sequence[Command], text: str) -> bool:
    """Return whether a text says what to do: by its first word, or by the one after the name of a resource, as in German."""
    words = _list_words(action.words for action in actions)
    others = _list_words(action.also for action in actions)
    names = _list_words(action.optional for action in actions)
    first = next((one for one in text.casefold().split() if one not in names), "")
    endings = {first[: len(first) - length] for length in range(_ENDING + 1)}
    return first in words or not endings.isdisjoint(others - names)


def _list_words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in text.casefold().split()}


def _on_nodes(catalogue: Catalogue, kinds: Iterable[NodeKind]) -> Iterator[Command]:
    for kind in kinds:
        one, here = kind.singular, f"/{kind.name}"
        yield Command(say("new {one}", one=one), f"{here}/new", also=say("create {one}", one=one))
        if kind.tree:
            yield Command(
                say("new {one} under", one=one),
                f"{here}/new?parentId={{id}}",
                kind.name,
                applies=partial(_can_have_children, kind),
                also=say("create {one} under", one=one),
            )
        yield Command(say("change {one}", one=one), f"{here}/{{id}}", kind.name, optional=one)
        if kind.ordered:
            yield Command(say("move {one}", one=one), f"{here}/{{id}}/move", kind.name, optional=one)
        for action in find_actions(catalogue, kind):
            yield Command(
                say("{verb} {one}", verb=say(action.verb.name), one=one),
                f"{here}/{{id}}/{action.verb.name}",
                kind.name,
                optional=one,
            )
        if kind.is_group:
            yield Command(say("access of {one}", one=one), f"{here}/{{id}}/access", kind.name, optional=one)
        yield Command(
            say("delete {one}", one=one),
            f"{here}/{{id}}/delete",
            kind.name,
            optional=one,
            applies=partial(_can_go, kind),
        )


def _is_in(*states: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda key: key["state"] in states


_OTHERS: Final = (
    Command(say("new key"), "/keys/new", also=say("create key")),
    *(Command(say("new key {recipe}", recipe=recipe.words), f"/keys/new?recipe={name}") for name, recipe in RECIPES.items()),
    Command(say("copy key"), "/keys/new?copy={id}", "keys", say("key")),
    Command(say("change key"), "/keys/{id}/edit", "keys", say("key"), _is_in("active", "paused", "expired")),
    Command(say("revoke key"), "/keys/{id}/revoke", "keys", say("key"), _is_in("active", "paused", "expired")),
    Command(say("rotate key"), "/keys/{id}/rotate", "keys", say("key"), _is_in("active", "paused", "expired")),
    Command(say("pause key"), "/keys/{id}/pause", "keys", say("key"), _is_in("active")),
    Command(say("resume key"), "/keys/{id}/resume", "keys", say("key"), _is_in("paused")),
    Command(say("requests of key"), "/requests?key={id}", "keys", say("key")),
    Command(say("activity of key"), "/keys/{id}/activity", "keys", say("key")),
    Command(say("new webhook"), "/webhooks/new", also=say("create webhook")),
    Command(say("change webhook"), "/webhooks/{id}/edit", "webhooks", say("webhook")),
    Command(say("delete webhook"), "/webhooks/{id}/delete", "webhooks", say("webhook")),
    Command(say("undo event"), "/events/{id}/undo", "events"),
    Command(say("check the database"), "/check"),
    Command(say("invite administrator"), "/administrators/new", also=say("new administrator")),
    Command(say("my account"), "/account", optional=say("my")),
    Command(say("sign out"), "/sign-out"),
)


def build_actions(catalogue: Catalogue, kinds: Iterable[NodeKind]) -> tuple[Command, ...]:
    """Return all actions."""
    return (*_on_nodes(catalogue, kinds), *_OTHERS)

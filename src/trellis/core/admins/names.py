"""The names of administrators, by which events and alarms tell people who did something: none may pass for another actor."""

from functools import cache
from typing import Final

from trellis.core.actor import OWN_NAMES
from trellis.core.fields import isolate
from trellis.core.operation import Context
from trellis.errors import Fault
from trellis.invisible import fold_lookalike
from trellis.languages import OFFERED, load_offered
from trellis.sentences import say
from trellis.store.admins import administrators

LONGEST_NAME: Final = 100


def check_name(context: Context, name: str | None, own: int = 0) -> tuple[Fault, ...]:
    """Return the fault of a name that looks like that of another administrator, or of an actor that is not a person.

    Each such name counts in every language. `own` is the id of the administrator who is to have the name, if there is one already.
    """
    wanted = fold_lookalike(name or "")
    if not wanted:
        return ()
    taken = (fold_lookalike(other) for number, other in administrators.list_names(context.tx) if number != own)
    if wanted in read_own_names():
        told = say("name {name} is what Trellis calls a part of itself. Choose another.", name=isolate(name or ""))
    elif wanted in taken:
        told = say("name {name} is too similar to that of another administrator. Choose another.", name=isolate(name or ""))
    else:
        return ()
    return (Fault("name", "INVALID_VALUE", told),)


def tell_apart(context: Context, name: str | None, login: str | None) -> str | None:
    """Return a name that a provider tells, with the login in brackets if the name alone would pass for another actor."""
    if not (name and login and check_name(context, name)):
        return name
    brackets = f" ({login})"
    return (name[: max(1, LONGEST_NAME - len(brackets))] + brackets)[:LONGEST_NAME]


@cache
def read_own_names() -> frozenset[str]:
    """Return what Trellis calls itself and its parts in every language, folded. The first call reads the catalogues.

    That takes half a second, so operations load them in their preparation, while other writes go on.
    """
    return frozenset(fold_lookalike(language.sentence(name)) for language in map(load_offered, OFFERED) for name in OWN_NAMES)

"""The exception for refusals, which names a row of the table of refusals and describes what was wrong in the case at hand."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trellis.refusals import REFUSALS, Refusal
from trellis.sentences import join, say

NO_MEMORY: Final = say("The service has too little memory for this at present.")


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in one field: its name as documented, the message of a refusal, and a sentence that explains what to do.

    `code` is the code of the refusal, unless the kind has its own.
    """

    field: str
    message: str
    detail: str
    code: str = ""

    def __post_init__(self) -> None:
        """Fill in the code. Raises KeyError for a message that is not in the table."""
        object.__setattr__(self, "code", self.code or REFUSALS[self.message].code)


@dataclass(eq=False)  # not frozen: Python sets the traceback of an exception
class Refused(Exception):
    """A refusal, which means that nothing has changed.

    `message` names a row of REFUSALS. `detail` explains what was wrong, where, and what to do. `code` is the code of the row,
    unless the kind has its own. `faults` are the invalid fields, and `more_faults` the number of further ones that are not listed
    because there are too many. `facts` are the values of the row's additional members, for programs.
    """

    message: str
    detail: str
    code: str = ""
    faults: tuple[Fault, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    more_faults: int = 0

    def __post_init__(self) -> None:
        """Fill in the code. Raises KeyError for a message that is not in the table."""
        self.code = self.code or self.refusal.code

    @property
    def refusal(self) -> Refusal:
        """The row of the table."""
        return REFUSALS[self.message]

    @property
    def status(self) -> int:
        """The HTTP status. Code in this package also uses it to distinguish refusals."""
        return self.refusal.status

    def __str__(self) -> str:
        return f"{self.message}: {self.detail}"


def raise_faults(faults: Iterable[Fault]) -> None:
    """Raise Refused if there are faults."""
    if found := tuple(faults):
        raise refuse_faults(*found)


def refuse_faults(*faults: Fault) -> Refused:
    """Return one refusal for all faults of a request, with the code of the first one.

    It lists as many faults as the first one's row allows, and counts the others. Unknown parameters come last, so that a misspelt
    name does not determine the code.
    """
    ordered = sorted(faults, key=lambda fault: REFUSALS[fault.message].yields)
    listed = tuple(ordered[: REFUSALS[ordered[0].message].most_faults])
    more = len(ordered) - len(listed)
    first, detail = listed[0], join(dict.fromkeys(fault.detail for fault in listed))  # one sentence may be about several fields
    if len(ordered) > 1:
        detail = say("{count:,} fields are invalid: {faults}", count=len(ordered), faults=detail)
    if more:
        detail = say("{faults} The other {count:,} are not listed.", count=more, faults=detail)
    return Refused(first.message, detail, first.code, listed, more_faults=more)


def refuse_fault(field: str, message: str, detail: str) -> Refused:
    """Return the refusal of a request for one fault."""
    return refuse_faults(Fault(field, message, detail))


def refuse_out_of_memory() -> Refused:
    """Return the refusal of what there is too little memory for."""
    return Refused("BUSY", say("{reason} As far as we know, nothing was changed; try again.", reason=NO_MEMORY))


def drop_tracebacks(error: BaseException) -> None:
    """Drop the traceback of an exception that nobody will log, and of those from which it was raised.

    A frame that refers to its own exception, as through a future, would keep all that the frames refer to, such as the values of a
    large request, in memory until the next full garbage collection.
    """
    found: BaseException | None = error
    while found is not None:
        found.__traceback__ = None
        found = found.__context__


class LongRead(Exception):
    """A read on an event loop has found so much that all other requests would wait for it: it is to be run again, in a thread."""

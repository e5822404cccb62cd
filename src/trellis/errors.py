"""How a refusal is raised: an exception that names a row of the table of refusals, and says what was wrong in this case."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trellis.refusals import REFUSALS, Refusal


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one field: its name as documented, the message of a refusal, and a sentence that says what to do.

    `code` is the refusal's, unless the kind has its own.
    """

    field: str
    message: str
    detail: str
    code: str = ""

    def __post_init__(self) -> None:
        """Fill in the code. Raises KeyError for a message that is in no row of the table."""
        object.__setattr__(self, "code", self.code or REFUSALS[self.message].code)


@dataclass(eq=False)  # not frozen: Python writes a traceback into what it raises
class Refused(Exception):
    """A refusal. Nothing was changed.

    `message` names a row of REFUSALS, `detail` says what was wrong, where, and what to do; `code` is the row's, unless the kind
    has its own; `faults` lists every field at fault; `facts` are the row's further members, for a program to read.
    """

    message: str
    detail: str
    code: str = ""
    faults: tuple[Fault, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Fill in the code. Raises KeyError for a message that is in no row of the table."""
        self.code = self.code or self.refusal.code

    @property
    def refusal(self) -> Refusal:
        """The row of the table."""
        return REFUSALS[self.message]

    @property
    def status(self) -> int:
        """The HTTP status, which is also how a caller inside tells what kind of refusal it is."""
        return self.refusal.status

    def __str__(self) -> str:
        return f"{self.message}: {self.detail}"


def refuse_faults(faults: tuple[Fault, ...]) -> Refused:
    """Make one refusal of all faults of a request; the first one gives it its code.

    An unknown parameter comes last, so that the code names what was meant rather than what was misspelt.
    """
    first, *rest = faults = tuple(sorted(faults, key=lambda fault: REFUSALS[fault.message].yields))
    detail = first.detail if not rest else f"{len(faults)} fields are at fault: " + " ".join(f.detail for f in faults)
    return Refused(first.message, detail, first.code, faults)

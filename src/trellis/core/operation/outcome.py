"""The outcome of a call of an operation."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from trellis.core.bounds import Use
from trellis.core.verbs import Verb
from trellis.store.engine import Shown, Transaction


class RawText(NamedTuple):
    """A result that is text with its own media type, and not a JSON value."""

    text: str
    media_type: str


class Outcome(NamedTuple):
    """What an operation did. `result` is returned to the caller; the rest is for the event log.

    `happened` is false if nothing changed; then no event is recorded. `changed` names the members that an update has changed,
    including write-only ones. `public` is the result without the secrets in it, if there are any, and `plan` is what a dry run
    returns, if that is something else. `undoes` is the event that was undone. An operation that runs others records no event
    itself: `event` is the last event that those recorded, and `verb` is the verb whose success it reports. `shows` lists what the
    result of a read depends on among the nodes; None means on everything. `recount` reads its total again. `uses` are the uses of
    grants that its reads were counted as.
    """

    result: Any
    resource_id: int | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    changed: tuple[str, ...] = ()
    happened: bool = True
    touched: tuple[Mapping[str, Any], ...] = ()
    public: Any = None
    plan: Any = None
    undoes: int | None = None
    event: int | None = None
    verb: Verb | None = None
    shows: tuple[Shown, ...] | None = None
    recount: Callable[[Transaction], int] | None = None
    uses: tuple[Use, ...] = ()

    @property
    def kept(self) -> Any:
        """What may be stored of the result, such as for an Idempotency-Key: it never contains a secret."""
        return self.result if self.public is None else self.public

    @property
    def tried(self) -> Any:
        """What a dry run returns. It never contains a secret."""
        return self.kept if self.plan is None else self.plan

    def list_touched(self, resource: str) -> list[int]:
        """Return the ids of the records of a resource that were created, changed or deleted."""
        own = [] if self.resource_id is None else [self.resource_id]
        return own + [one["id"] for one in self.touched if one["resource"] == resource]


class Fate(NamedTuple):
    """What has become of a record that was created earlier: whether it exists, and if not, which event deleted it.

    A record that the caller may not know of counts as not existing, and an event that the caller may not know of is not named.
    """

    is_there: bool
    deleted_by: int | None = None

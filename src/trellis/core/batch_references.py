"""References in a batch: values that stand for what earlier operations of the batch returned."""

from collections.abc import Mapping
from typing import Any, Final

from trellis.core.fields import quote
from trellis.errors import Refused, refuse_fault
from trellis.sentences import say
from trellis.store.engine import Transaction

MOST_BYTES: Final = 8 * 2**20  # for which all references of a batch may stand together
REFERENCE: Final = "$ref"


def is_reference(value: Any) -> bool:
    """Return whether a value is a reference: an object with `$ref` alone."""
    return isinstance(value, Mapping) and value.keys() == {REFERENCE}


class ReferenceResolver:
    """Resolves the references of a batch. `results` are the results of its operations, by the names that the request gives them.

    `size` is how many bytes the references that have been resolved stand for.
    """

    def __init__(self, tx: Transaction) -> None:
        self.results: dict[str, Any] = {}
        self._tx = tx
        self.size = 0

    def resolve(self, value: Any) -> Any:
        """Replace references by what they refer to. Raises Refused if that is nothing, or too much in all."""
        if is_reference(value):
            found = self._follow(value[REFERENCE])
            self.size += len(self._tx.encode(found))
            if self.size > MOST_BYTES:
                raise _refuse_references()
            return found
        if isinstance(value, Mapping):
            return {name: self.resolve(below) for name, below in value.items()}
        return [self.resolve(below) for below in value] if isinstance(value, list | tuple) else value

    def _follow(self, reference: Any) -> Any:
        name, *path = str(reference).split(".")
        found: Any = self.results if name else {}
        for member in (name, *path):
            if not isinstance(found, Mapping) or member not in found:
                detail = say(
                    "{reference} {reference2} refers to nothing: write the `as` of an earlier operation and a member, such as "
                    "news.id.",
                    reference=REFERENCE,
                    reference2=quote(reference),
                )
                raise refuse_fault(REFERENCE, "INVALID_VALUE", detail)
            found = found[member]
        return found


def _refuse_references() -> Refused:
    return Refused(
        "BATCH_TOO_LARGE",
        say(
            "Up to here, the references of the batch stand for more than {most_bytes} MiB, which is the limit. Send fewer "
            "operations at once.",
            most_bytes=MOST_BYTES >> 20,
        ),
    )

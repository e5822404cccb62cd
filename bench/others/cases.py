"""What is sent to trellis and to other services alike, and what is to be reached."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from bench.process import Server

Kind = Literal["read", "list", "create", "update"]
OURS: Final = "trellis"
FORUMS: Final = 10_000
PAGE: Final = 25
BOUND: Final = 20.0  # how many times the rate of another service is to be reached, in every case


@dataclass(frozen=True, slots=True)
class Case:
    """One load: how many of a hundred requests are of which kind, and the ids that they are about (of parents, for creates)."""

    name: str
    title: str
    shares: Mapping[Kind, int]
    ids: tuple[int, int]

    @property
    def fixed(self) -> bool:
        """Whether every answer is the same."""
        return self.shares.keys() == {"list"} or (self.shares.keys() == {"read"} and self.ids[0] == self.ids[1])


CASES: Final = (
    Case("read-hot", "read one, always the same", {"read": 100}, (4711, 4711)),
    Case("read-random", f"read one, random over {FORUMS:,}", {"read": 100}, (1, FORUMS)),
    Case("list-25", f"list {PAGE}", {"list": 100}, (1, FORUMS)),
    Case("mixed", "mixed: 95 reads, 5 writes", {"read": 76, "list": 19, "update": 3, "create": 2}, (1, 1000)),
    Case("update", "update", {"update": 100}, (1, 1000)),
    Case("create", "create", {"create": 100}, (1, 5000)),
)


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent for a kind, where {id} stands for an id and {n} for a number, and the status of its answer."""

    method: str
    path: str
    body: str = ""
    status: int = 200


@dataclass(frozen=True, slots=True)
class Service:
    """A service that runs over the forums: how it is asked, what it answers, and how many forums it has."""

    name: str
    version: str
    server: Server
    token: str
    requests: Mapping[Kind, Request]
    records: Callable[[Any], list[dict[str, Any]]]  # the records, each with id and name, of the body of a read or of a list
    total: Callable[[], int]

"""Loads the sample community through the gate, with one operation per node; those of a tree all or none."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from trellis.cli.community import act, list_all
from trellis.cli.terminal import progress_of
from trellis.core.fields import EVERYONE
from trellis.core.gate import Gate

_REASON: Final = "The sample community"
# Forums come last, and all or none, so a community that has forums has the complete sample.
_KINDS: Final = ("groups", "calendars", "categories", "blogs", "forums")
_ALONE: Final = "blogs"  # which a batch does not create
_CALLED: Final = {"categories": "download categories"}

Seed = Mapping[str, Any]  # a node to create


@cache
def read_sample() -> Mapping[str, list[Seed]]:
    """Read the nodes of each kind, in order."""
    import yaml  # noqa: PLC0415  # start-up time: most commands load no sample

    content = yaml.load(Path(__file__).with_name("sample.yaml").read_bytes(), Loader=yaml.CSafeLoader)  # it is a safe loader
    return {kind: content[kind] for kind in _KINDS}


def count_seeds(seeds: Iterable[Seed]) -> int:
    """Count nodes, with all below them."""
    return sum(1 + count_seeds(seed.get("children", ())) for seed in seeds)


def load_sample(gate: Gate) -> dict[str, int] | None:
    """Create the sample's nodes; return the number of nodes of each kind. None if there are forums: then nothing is done.

    Another kind that already has nodes is left alone.
    """
    if act(gate, "forums.list", {"perPage": 1}).value["totalResults"]:
        return None
    with progress_of("Loading the sample community") as progress:
        return _Loading(gate, progress).load()


class _Loading:
    """The state of loading the sample: the existing groups, and the progress."""

    def __init__(self, gate: Gate, progress: Callable[[int, int], None]) -> None:
        self._gate = gate
        self._progress = progress
        self._done = 0
        self._total = sum(map(count_seeds, read_sample().values()))
        self._groups: dict[str, int] = {group["name"]: group["id"] for group in list_all(gate, "groups.list")}
        if (groups := gate.environment.group_kind) is not None:  # built-in groups may have been renamed
            self._groups |= {name.capitalize(): number for number, name in groups.built_in.items()}

    def load(self) -> dict[str, int]:
        for kind, seeds in read_sample().items():
            if kind == "groups":
                self._make_groups(seeds)
            elif kind == _ALONE:
                self._make_alone(kind, seeds)
            elif self._count(kind) == 0:
                operations = list(self._list_operations(kind, seeds, None))
                self._do("core.batch", operations=operations)
                self._step(len(operations))
        return {_CALLED.get(kind, kind): self._count(kind) for kind in _KINDS}

    def _make_groups(self, seeds: Iterable[Seed]) -> None:
        for seed in seeds:
            if seed["name"] not in self._groups:
                self._groups[seed["name"]] = self._do("groups.create", **seed)["id"]
            self._step(1)

    def _make_alone(self, kind: str, seeds: Iterable[Seed]) -> None:
        """Create the nodes that are missing, unless there are others than those of the sample."""
        operations = {operation["body"]["name"]: operation for operation in self._list_operations(kind, seeds, None)}
        there = {node["name"] for node in list_all(self._gate, f"{kind}.list")}
        for name, operation in operations.items():
            if there <= operations.keys() and name not in there:
                self._do(operation["operation"], **operation["body"])
        self._step(len(operations))

    def _list_operations(self, kind: str, seeds: Iterable[Seed], parent: str | None) -> Iterator[dict[str, Any]]:
        """Yield the operations of a batch that create nodes. `parent` is the name of the operation that creates their parent."""
        for place, seed in enumerate(seeds):
            raw = {member: value for member, value in seed.items() if member != "children"}
            if "groups" in raw:
                raw["groups"] = self._ids(raw["groups"])
            if parent is not None:
                raw["parentId"] = {"$ref": f"{parent}.id"}
            if "permissions" in raw:
                raw["permissions"] = {option: self._ids(who) for option, who in raw["permissions"].items()}
            name = f"{parent or kind}-{place}"
            yield {"operation": f"{kind}.create", "as": name, "body": raw}
            yield from self._list_operations(kind, seed.get("children", ()), name)

    def _ids(self, who: Any) -> str | list[int]:
        return EVERYONE if who == EVERYONE else sorted(self._groups[name] for name in who)

    def _count(self, kind: str) -> int:
        return int(self._do(f"{kind}.list", perPage=1)["totalResults"])

    def _step(self, count: int) -> None:
        self._done += count
        self._progress(self._done, self._total)

    def _do(self, operation: str, **raw: Any) -> Any:
        return act(self._gate, operation, raw, reason=_REASON).value

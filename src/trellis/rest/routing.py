"""The routing table: a dict from path shape to the routes by method."""

from collections.abc import Iterable, Mapping

from trellis.http.routes import Route

Methods = Mapping[str, Route]


class Table:
    """The routes, found by path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._plain: dict[str, dict[str, Route]] = {}
        self._with_id: dict[str, dict[str, Route]] = {}
        self._with_tail: dict[tuple[str, str], dict[str, Route]] = {}  # by the parts before and after the id
        for route in routes:
            for path in (route.path, *route.also):
                head, mark, last = path.partition("/{")
                tail = last.partition("}")[2]
                if tail:
                    self._with_tail.setdefault((head, tail), {})[route.method] = route
                else:
                    (self._with_id if mark else self._plain).setdefault(head, {})[route.method] = route

    def find(self, path: str) -> tuple[Methods | None, str | None]:
        """Return the routes at a path by method, and the text in the place of the id."""
        if (methods := self._plain.get(path)) is not None:
            return methods, None
        head, _, last = path.rpartition("/")
        if (methods := self._with_id.get(head)) is not None:
            return methods, last
        head, _, target = head.rpartition("/")
        return self._with_tail.get((head, f"/{last}")), target

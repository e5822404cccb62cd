"""A plugin by which the walks over all operations and pages, in a copy of the project, keep to what the tutorials add there.

Beside that they walk over one kind that the project has: to see that a grant of the one lets nobody use the other.
"""

from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

import pytest

_NEW: Final = ("courses", "touch")
_COMPARED: Final = "forums"


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Shorten what the modules walk over, once all of their tests are known."""
    modules: dict[str, ModuleType] = {item.path.relative_to(item.config.rootpath).as_posix(): item.module for item in items}
    _shorten_walk(modules["tests/sweeps/test_operations.py"].Sweep)
    for module, *names in (("tests/admin/test_app.py", "PAGES", "_CLOSED", "_WRITES"), ("tests/admin/test_tokens.py", "PAGES")):
        for name in names:
            pages = [page for page in getattr(modules[module], name) if any(new in page.path for new in _NEW)]
            assert pages
            setattr(modules[module], name, pages)


def _shorten_walk(sweep: Any) -> None:
    walk = sweep.__iter__

    def shorter(self: Any) -> Iterator[Any]:
        routes = list(walk(self))
        near = [route for route in routes if any(name in route.operation.name for name in (*_NEW, _COMPARED))]
        assert {new for new in _NEW for route in near if new in route.operation.name} == set(_NEW)
        assert len(near) < len(routes)
        yield from near

    sweep.__iter__ = shorter

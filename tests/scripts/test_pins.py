"""The pins of the dependencies can be installed by any pip, whatever has appeared since they were written."""

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FILES = sorted((Path(__file__).parents[2] / "requirements").glob("*.txt"))


def read_pins(file: Path) -> dict[str, set[str]]:
    """Return the extras that each package in a file of pins is pinned with, by its name."""
    lines = [line.removesuffix("\\") for line in file.read_text().splitlines() if "==" in line and not line.startswith((" ", "#"))]
    pins = [Requirement(line.strip()) for line in lines]
    return {canonicalize_name(pin.name): pin.extras for pin in pins}


def find_asked(pins: dict[str, set[str]]) -> Iterator[tuple[str, Requirement]]:
    """Yield what each package of some pins that is installed here asks of others here, with the name of who asks."""
    for name, extras in pins.items():
        try:
            asked = [Requirement(text) for text in requires(name) or ()]
        except PackageNotFoundError:
            continue
        for one in asked:
            if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras | {""}):
                yield name, one


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_package_is_pinned_with_the_extras_that_others_ask_of_it(file: Path) -> None:
    # pip before 23.3 reads `coverage[toml]` apart from a pin of `coverage`: it takes the newest, and refuses it for want of a hash.
    pins = read_pins(file)
    asked = list(find_asked(pins))
    assert len(asked) > len(pins) / 2
    missing = [f"{name} asks for {one}" for name, one in asked if not one.extras <= pins[canonicalize_name(one.name)]]
    assert not missing

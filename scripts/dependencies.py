"""The Python packages that Trellis needs at run time, as they are installed here: each as it is pinned, and as it was recorded."""

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from importlib.metadata import Distribution, distribution
from pathlib import Path, PurePosixPath
from typing import Final
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_PIN: Final = re.compile(r"^([a-z0-9][a-z0-9._-]*)(?:\[[a-z,]+\])?==([^\s;]+)", re.MULTILINE)
_OF_INSTALLERS: Final = {"INSTALLER", "REQUESTED", "direct_url.json", "RECORD"}


class NotAsPinned(Exception):
    """A package is not installed as it is pinned, or its files are not those that were installed."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """A package, and the names of those that it needs itself."""

    name: str
    version: str
    needs: tuple[str, ...]
    distribution: Distribution


def find_dependencies(wheel: Path, locked: str) -> dict[str, Dependency]:
    """Return by name all that a wheel needs on this machine, with what that needs. Raises NotAsPinned."""
    pins = {canonicalize_name(name): version for name, version in _PIN.findall(locked)}
    found: dict[str, Dependency] = {}
    open_ones = list(_needs(wheel))
    while open_ones:
        wanted = open_ones.pop()
        name = canonicalize_name(wanted.name)
        installed = distribution(name)
        if installed.version != pins.get(name):
            raise NotAsPinned(f"{name} is installed as {installed.version}, and pinned as {pins.get(name)}: run `make setup`")
        needs = list(_applying(installed.requires or (), wanted.extras))
        known = found.get(name)
        names = {canonicalize_name(one.name) for one in needs} | set(known.needs if known else ())
        if known is None or names != set(known.needs):
            found[name] = Dependency(name, installed.version, tuple(sorted(names)), installed)
            open_ones.extend(needs)
    return dict(sorted(found.items()))


def list_needs(wheel: Path) -> list[str]:
    """Return the names of what a wheel itself needs on this machine."""
    return sorted({canonicalize_name(one.name) for one in _needs(wheel)})


def _needs(wheel: Path) -> Iterator[Requirement]:
    with ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        told = HeaderParser().parsestr(archive.read(metadata).decode())
    return _applying(told.get_all("Requires-Dist", []), set())


def _applying(requirements: list[str] | tuple[str, ...], extras: set[str]) -> Iterator[Requirement]:
    for text in requirements:
        one = Requirement(text)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield one


def copy_files(dependency: Dependency, target: Path, left_out: tuple[str, ...] = ()) -> None:
    """Copy a package into a folder as its wheel has it, but for programs and some folders. Raises NotAsPinned if one differs."""
    record = []
    for file in sorted(dependency.distribution.files or (), key=str):
        path = PurePosixPath(file)
        if (
            file.hash is None
            or path.parts[0] == ".."
            or "__pycache__" in path.parts
            or path.name in _OF_INSTALLERS
            or str(path).startswith(left_out)
        ):
            continue
        content = Path(str(file.locate())).read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.new(file.hash.mode, content).digest()).rstrip(b"=").decode()
        if digest != file.hash.value:
            raise NotAsPinned(f"{dependency.name}: {path} is not as it was installed")
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(content)
        record.append(f"{path},{file.hash.mode}={digest},{len(content)}\n")
    folder = next(line.partition("/")[0] for line in record if ".dist-info/" in line)
    (target / folder / "RECORD").write_text("".join((*record, f"{folder}/RECORD,,\n")))

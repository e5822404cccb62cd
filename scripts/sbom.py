"""The software bill of materials of a release, as CycloneDX.

It lists Trellis, the packages that it needs on this kind of machine, and the libraries that these bring. The same release has the
same one: its serial number follows from what it lists.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageMetadata
from typing import Final
from uuid import NAMESPACE_URL, uuid5

import apsw
import psycopg.pq
from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from scripts.dependencies import Dependency

_LICENSES: Final = LicenseFactory()


def write_sbom(version: str, needs: Iterable[str], dependencies: dict[str, Dependency], epoch: int) -> str:
    """Return the document: of a version of Trellis, what it needs itself, and all that it needs, by name."""
    bom = Bom()
    trellis = _component("trellis-community", version, ComponentType.APPLICATION)
    trellis.licenses.add(_LICENSES.make_from_string("MIT"))
    bom.metadata.component = trellis
    components = {name: _package(one) for name, one in dependencies.items()}
    for name, one in dependencies.items():
        bom.components.add(components[name])
        bom.register_dependency(components[name], [components[other] for other in one.needs])
    bom.register_dependency(trellis, [components[name] for name in needs])
    told = f"{version} {sorted((one.name, one.version) for one in dependencies.values())}"
    bom.serial_number = uuid5(NAMESPACE_URL, told)
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, UTC)
    return f"{json.dumps(json.loads(JsonV1Dot6(bom).output_as_string()), indent=1, sort_keys=True)}\n"


def _component(name: str, version: str, kind: ComponentType = ComponentType.LIBRARY) -> Component:
    purl = PackageURL("pypi", None, name, version)
    return Component(name=name, version=version, type=kind, purl=purl, bom_ref=purl.to_string())


def _package(dependency: Dependency) -> Component:
    component = _component(dependency.name, dependency.version)
    told = dependency.distribution.metadata
    component.description = told["Summary"]
    if licenses := _find_licenses(told):
        component.licenses.add(_LICENSES.make_from_string(licenses))
    for name, version in _BROUGHT.get(dependency.name, {}).items():
        component.components.add(Component(name=name, version=version, bom_ref=f"{component.bom_ref}#{name}"))
    return component


def _find_licenses(told: PackageMetadata) -> str:
    """Return an expression of SPDX, or what a package says in place of one."""
    if (named := told["License-Expression"] or told["License"]) and "\n" not in named and len(named) < 80:
        return str(named)
    of_classifiers = (line.rpartition(" :: ")[2] for line in told.get_all("Classifier") or () if line.startswith("License ::"))
    return next(of_classifiers, "")


# Libraries inside of wheels, as they tell their versions themselves.
_BROUGHT: Final = {
    "apsw": {"sqlite": apsw.sqlite_lib_version()},
    "psycopg-binary": {"libpq": f"{psycopg.pq.version() // 10_000}.{psycopg.pq.version() % 10_000}"},
}

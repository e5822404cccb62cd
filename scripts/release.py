"""Build what a release consists of, into dist/.

That is wheel, source distribution, exact constraints, bill of materials, Debian package, and the checksums of all.
The same commit gives the same bytes: everything is built twice and compared. Exits with 1 if it differs.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from scripts.debian import UNDATED, build_package, can_build
from scripts.dependencies import find_dependencies, list_needs

ROOT: Final = Path(__file__).parent.parent
_PIN: Final = re.compile(r"^([a-z0-9][a-z0-9._-]*(?:\[[a-z,]+\])?==\S+)( ; [^\\]+?)? \\$", re.MULTILINE)


def build(target: Path, root: Path = ROOT, *, debian: bool = True) -> list[Path]:
    """Build a release into a folder; return its files, the checksums last. It has a Debian package where it can."""
    from scripts.sbom import write_sbom  # noqa: PLC0415  # whoever only asks for constraints does not wait for its library

    environment = os.environ | {"SOURCE_DATE_EPOCH": str(UNDATED)}
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target)]
    subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True)
    (wheel,) = target.glob("*.whl")
    name, version = wheel.name.split("-")[:2]
    locked = (root / "requirements" / "runtime.txt").read_text()
    (target / f"{name}-{version}-constraints.txt").write_text(list_constraints(locked))
    dependencies = find_dependencies(wheel, locked)
    sbom = write_sbom(version, list_needs(wheel), dependencies, UNDATED)
    (target / f"{name}-{version}-sbom.cdx.json").write_text(sbom)
    if debian and can_build():
        build_package(wheel, dependencies, sbom, root, target)
    files = sorted(target.iterdir())
    sums = target / "SHA256SUMS"
    sums.write_text("".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files))
    return [*files, sums]


def list_constraints(locked: str) -> str:
    """Return the pinned dependencies without their hashes, as `pip install -c` takes them."""
    return "".join(f"{name}{marker or ''}\n" for name, marker in _PIN.findall(locked))


def main() -> int:
    """Build twice, compare, and keep one in dist/."""
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        print("Building the release …", flush=True)
        files, again = build(Path(first)), build(Path(second))
        different = [one.name for one, other in zip(files, again, strict=True) if one.read_bytes() != other.read_bytes()]
        if different:
            print(f"Built twice, these differ: {', '.join(different)}")
            return 1
        if not can_build():
            print("There is no dpkg-deb here: the release has no Debian package.")
        target = ROOT / "dist"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(first, target)
    for file in sorted(target.iterdir()):
        print(f"{file.stat().st_size:>12,}  dist/{file.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

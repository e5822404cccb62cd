"""The Debian package of a release: Trellis, with all the Python packages that it needs, in a virtual environment of its own.

It is made by dpkg-deb from what is installed here as it is pinned, and so for the kind of machine and the Python that build it.
"""

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from zipfile import ZipFile

from scripts.dependencies import Dependency, copy_files

UNDATED: Final = 1577836800  # 2020-01-01: the time of files in what is built, whenever that is
NAME: Final = "trellis-community"
_PYTHON: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"
_HOME: Final = Path("usr/lib/trellis")
_MAIL: Final = "maintainers@trellis-community.invalid"  # there is no list yet
_LEFT_OUT: Final = ("apsw/sqlite_extra_binaries/",)  # tools, which nobody loads
_DOCS: Final = Path("usr/share/doc") / NAME
_FILES: Final = {  # of packaging/debian: where each goes, and its mode
    "trellis": ("usr/bin/trellis", 0o755),
    "trellis.init": ("etc/init.d/trellis", 0o755),
    "trellis.env": ("etc/trellis/trellis.env", 0o640),
    "trellis.logrotate": ("etc/logrotate.d/trellis", 0o644),
    "lintian-overrides": ("usr/share/lintian/overrides/trellis-community", 0o644),
    "postinst": ("DEBIAN/postinst", 0o755),
    "prerm": ("DEBIAN/prerm", 0o755),
    "postrm": ("DEBIAN/postrm", 0o755),
}
_OF_UNIT: Final = {  # what differs where the package has made a user, who is that of the init script too
    "# Trellis as a service of systemd. Copy it to /etc/systemd/system, and see docs/install.md.\n": "",
    "ExecStart=/opt/trellis/bin/trellis serve --host 127.0.0.1 --port 8000\n": "ExecStart=/usr/bin/trellis serve $SERVE_OPTIONS\n",
    "DynamicUser=yes\n": "User=trellis\nGroup=trellis\n",
}


def can_build() -> bool:
    """Return whether this machine has what Debian packages are built with."""
    return shutil.which("dpkg-deb") is not None


def build_package(
    wheel: Path,
    dependencies: dict[str, Dependency],
    sbom: str,
    root: Path,
    target: Path,
    *,
    compression: str = "gzip",
) -> Path:
    """Build the package of a wheel into a folder; return its file."""
    version = f"{wheel.name.split('-')[1]}-1"
    architecture = _ask("dpkg", "--print-architecture")
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        _lay_environment(tree, wheel, dependencies)
        _lay_files(tree, root)
        _lay_documents(tree, root, version, sbom)
        _close(tree, root, version, architecture)
        file = target / f"{NAME}_{version}_{architecture}.deb"
        environment = os.environ | {"SOURCE_DATE_EPOCH": str(UNDATED)}
        command = ["dpkg-deb", "--root-owner-group", f"-Z{compression}", "--build", str(tree), str(file)]
        subprocess.run(command, env=environment, check=True, capture_output=True)
    return file


def _ask(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _lay_environment(tree: Path, wheel: Path, dependencies: dict[str, Dependency]) -> None:
    """Lay a virtual environment on Debian's Python. Its modules are compiled when it is installed."""
    home = tree / _HOME
    packages = home / "lib" / _PYTHON / "site-packages"
    packages.mkdir(parents=True)
    with ZipFile(wheel) as archive:
        archive.extractall(packages)
    for dependency in dependencies.values():
        copy_files(dependency, packages, _LEFT_OUT)
    (home / "bin").mkdir()
    (home / "bin" / "python3").symlink_to(f"/usr/bin/{_PYTHON}")
    told = {"home": "/usr/bin", "include-system-site-packages": "false", "version": _PYTHON.removeprefix("python")}
    (home / "pyvenv.cfg").write_text("".join(f"{name} = {value}\n" for name, value in told.items()))


def _lay_files(tree: Path, root: Path) -> None:
    for name, (place, mode) in _FILES.items():
        path = tree / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((root / "packaging" / "debian" / name).read_bytes())
        path.chmod(mode)
    unit = (root / "packaging" / "trellis.service").read_text()
    for before, after in _OF_UNIT.items():
        if unit.count(before) != 1:
            raise ValueError(f"packaging/trellis.service has no line {before!r}")
        unit = unit.replace(before, after)
    path = tree / "lib/systemd/system/trellis.service"
    path.parent.mkdir(parents=True)
    path.write_text(unit)


def _lay_documents(tree: Path, root: Path, version: str, sbom: str) -> None:
    docs, manual = tree / _DOCS, tree / "usr/share/man/man1/trellis.1.gz"
    docs.mkdir(parents=True)
    manual.parent.mkdir(parents=True)
    dated = format_datetime(datetime.fromtimestamp(UNDATED, UTC))
    signed = f" -- Trellis contributors <{_MAIL}>  {dated}"
    history = f"{NAME} ({version}) stable; urgency=medium\n\n  * See changelog.gz.\n\n{signed}\n"
    licence = "".join(f" {line or '.'}\n" for line in (root / "LICENSE").read_text().splitlines()[4:])
    (docs / "copyright").write_text((root / "packaging/debian/copyright").read_text() + licence)
    (docs / "changelog.gz").write_bytes(gzip.compress((root / "CHANGELOG.md").read_bytes(), mtime=0))
    (docs / "changelog.Debian.gz").write_bytes(gzip.compress(history.encode(), mtime=0))
    (docs / "sbom.cdx.json").write_text(sbom)
    manual.write_bytes(gzip.compress((root / "packaging/debian/trellis.1").read_bytes(), mtime=0))


def _close(tree: Path, root: Path, version: str, architecture: str) -> None:
    """Give all the modes of a package, whatever those of this clone are, and write what dpkg has to know."""
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink() and "DEBIAN" not in path.parts)
    given = {tree / place for place, _ in _FILES.values()}
    for path in files:
        if path not in given:
            path.chmod(0o644)
    for folder in (tree, *(path for path in tree.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    (tree / "etc/trellis").chmod(0o755)
    places = [path.relative_to(tree).as_posix() for path in files]
    told = {
        "VERSION": version,
        "ARCHITECTURE": architecture,
        "PYTHON": _PYTHON,
        "MAIL": _MAIL,
        "SIZE": str(sum(-(-path.stat().st_size // 1024) for path in files)),
    }
    control = (root / "packaging/debian/control").read_text()
    for name, value in told.items():
        control = control.replace(f"@{name}@", value)
    written = {
        "control": control,
        "conffiles": "".join(f"/{place}\n" for place in places if place.startswith("etc/")),
        "md5sums": "".join(
            f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {place}\n"
            for path, place in zip(files, places, strict=True)
            if not place.startswith("etc/")
        ),
    }
    for name, text in written.items():
        (tree / "DEBIAN" / name).write_text(text)
        (tree / "DEBIAN" / name).chmod(0o644)

"""The Debian package: the same bytes from the same commit, and its whole life on a copy of this machine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from scripts.debian import build_package, can_build
from scripts.dependencies import NotAsPinned, copy_files, find_dependencies
from scripts.release import ROOT
from trellis.settings import Settings
from trellis.store.migrate import migrate

PYTHON: Final = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
LIFE: Final = Path(__file__).parent / "debian_life.py"
# A copy of this machine's files that is gone with the last process in it, and a network of its own.
ON_A_COPY: Final = """
    set -e
    mount -t tmpfs tmpfs "$1" && cd "$1" && mkdir changes work root
    mount -t overlay overlay -o lowerdir=/,upperdir=changes,workdir=work root
    mount -t proc proc root/proc && mount --rbind /dev root/dev && mount -t tmpfs tmpfs root/run && mount -t tmpfs tmpfs root/mnt
    cp "$2"/* root/mnt
    shift 2
    chroot root "$@" || exit 1  # not exec: this shell takes the exit statuses of services that were stopped, as init does
    exit 0
"""
# Of a plain machine: the tests may be started from an environment that has a `trellis` of its own.
PLAIN: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
UNSHARE: Final = ("unshare", "--mount", "--pid", "--fork", "--net", "--kill-child", "sh", "-c", ON_A_COPY, "sh")


def find_hindrance(folder: Path) -> str | None:
    """Return why the package cannot be installed on a copy of this machine."""
    if os.geteuid() != 0:
        return "only root can install a package"
    if missing := [name for name in ("dpkg", "unshare", "adduser", "start-stop-daemon") if shutil.which(name) is None]:
        return f"there is no {missing[0]} here"
    if not PYTHON.exists():
        return f"there is no {PYTHON} of Debian here"
    (folder / "nothing").mkdir()
    (folder / "nothing" / "file").touch()
    (folder / "place").mkdir()
    tried = subprocess.run([*UNSHARE, folder / "place", folder / "nothing", "true"], capture_output=True, text=True, check=False)
    return f"this machine cannot be copied: {tried.stderr.strip()}" if tried.returncode else None


def raise_revision(package: Path, folder: Path) -> Path:
    """Make the same package of the next revision, beside the first."""
    tree, raised = folder / "tree", package.with_name(package.name.replace("-1_", "-2_"))
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    control = tree / "DEBIAN" / "control"
    told = control.read_text()
    assert told.count("-1\n") == 1
    control.write_text(told.replace("-1\n", "-2\n"))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, raised], check=True, stdout=subprocess.DEVNULL)
    return raised


@pytest.mark.slow
@pytest.mark.timeout(1800)  # dpkg installs 2,500 files twice, and compiles them
@pytest.mark.skipif(not can_build(), reason="there is no dpkg-deb here")
def test_the_package_is_installed_used_upgraded_and_purged(release: list[Path], tmp_path: Path) -> None:
    if (hindrance := find_hindrance(tmp_path)) is not None:
        pytest.skip(hindrance)
    files = tmp_path / "files"
    files.mkdir()
    (wheel,) = (file for file in release if file.suffix == ".whl")
    dependencies = find_dependencies(wheel, (ROOT / "requirements" / "runtime.txt").read_text())
    older = build_package(wheel, dependencies, "{}", ROOT, files, compression="none")
    newer = raise_revision(older, tmp_path)
    migrate(Settings(database_url=f"sqlite:///{files}/old.db"), to="0013")
    shutil.copy(LIFE, files)
    told = [f"/mnt/{name}" for name in (LIFE.name, older.name, newer.name, "old.db")]
    command = [*UNSHARE, str(tmp_path / "place"), str(files), str(PYTHON), *told]
    ran = subprocess.run(command, env=PLAIN, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "All of it was well.\n"


@pytest.mark.slow
def test_a_file_that_was_changed_is_not_shipped(release: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (wheel,) = (file for file in release if file.suffix == ".whl")
    locked = (ROOT / "requirements" / "runtime.txt").read_text()
    typer = find_dependencies(wheel, locked)["typer"]
    copy_files(typer, tmp_path)
    assert (tmp_path / "typer" / "main.py").exists()
    monkeypatch.setattr(Path, "read_bytes", lambda _path: b"changed")
    with pytest.raises(NotAsPinned, match="is not as it was installed"):
        copy_files(typer, tmp_path)
    with pytest.raises(NotAsPinned, match=r"typer is installed as .*, and pinned as 0\.0"):
        find_dependencies(wheel, locked.replace(f"typer=={typer.version}", "typer==0.0"))

"""The life of the Debian package, as root on a machine without systemd: installed, used, upgraded, removed and purged.

Run by `test_debian.py` on a copy of this machine, with Debian's own Python and nothing else. It is given the older package, the
newer one, and a database of an old step.
"""

import fcntl
import grp
import json
import os
import pwd
import socket
import struct
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

ADDRESS = "http://127.0.0.1:8000"
SETTINGS = Path("/etc/trellis/trellis.env")
DATA = Path("/var/lib/trellis")


def run(*command: str, status: int = 0) -> str:
    """Run a command that has to end with a status; return what it printed."""
    ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if ran.returncode != status:
        raise AssertionError(f"{command} ended with {ran.returncode}:\n{ran.stdout}\n{ran.stderr}")
    return ran.stdout


def raise_loopback() -> None:
    """Switch the loopback interface of this network on."""
    with socket.socket() as opened:
        fcntl.ioctl(opened, 0x8914, struct.pack("16sh14s", b"lo", 0x49, b""))


def start() -> None:
    """Start the service by its init script, and wait until it is ready."""
    run("/etc/init.d/trellis", "start")
    for _ in range(600):
        with suppress(OSError):
            fetch("/readyz")
            break
        time.sleep(0.1)
    else:
        raise AssertionError(Path("/var/log/trellis/trellis.log").read_text())
    run("/etc/init.d/trellis", "status")
    assert Path("/var/log/trellis/trellis.log").owner() == "trellis", "root would follow a link that was put in its place"


def fetch(path: str, content: bytes | None = None, headers: dict[str, str] | None = None) -> bytes:
    """Send a request to the service, which has to succeed."""
    with urlopen(Request(ADDRESS + path, content, headers or {}), timeout=30) as answer:  # noqa: S310  # to this machine
        return bytes(answer.read())


def call(key: str, path: str, body: Any = None) -> Any:
    """Call the API."""
    content = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    return json.loads(fetch(f"/api{path}", content, headers))


def running() -> dict[str, str]:
    """Return the programs that the service's user runs, by their numbers."""
    user = pwd.getpwnam("trellis").pw_uid
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if folder.stat().st_uid == user:
                found[folder.name] = (folder / "cmdline").read_text().replace("\0", " ")
    return found


def live(older: str, newer: str, old_database: str) -> None:
    """Go through it all."""
    raise_loopback()
    Path("/usr/sbin/policy-rc.d").unlink(missing_ok=True)  # with which container images keep packages from starting anything
    Path("/sbin/init").touch()  # where there is none, packages do not stop anything either
    Path("/var/lib/man-db/auto-update").unlink(missing_ok=True)  # or all manual pages of the machine are gone through three times
    run("dpkg", "--force-unsafe-io", "--install", older)
    start()
    assert all("/usr/bin/trellis serve" in program for program in running().values())
    assert len(running()) == 1
    assert SETTINGS.stat().st_mode & 0o777 == 0o640
    assert grp.getgrgid(SETTINGS.stat().st_gid).gr_name == "trellis"
    assert DATA.stat().st_mode & 0o777 == 0o700
    key = json.loads(run("trellis", "keys", "create", "Plugin", "--grant", "forums.*", "--json"))["key"]
    assert call(key, "/forums/forums", {"name": "From the package"})["id"] == 1
    for page in ("/admin/sign-in", "/api/docs"):
        fetch(page)
    run("trellis", "backup", str(DATA / "copy.db"))
    assert "at the newest step" in run("trellis", "doctor")
    assert {path.owner() for path in DATA.iterdir()} == {"trellis"}
    with SETTINGS.open("a") as file:
        file.write("TRELLIS_COMMUNITY_NAME='Kept $HOME'\n")

    before = set(running())
    run("dpkg", "--force-unsafe-io", "--install", newer)
    assert not before & set(running())
    assert run("dpkg-query", "--show", "--showformat=${Version}", "trellis-community").endswith("-2")
    start()
    assert call(key, "/forums/forums/1")["name"] == "From the package"
    hello = call(key, "/core/hello")
    assert hello["communityName"] == "Kept $HOME", hello

    run("/etc/init.d/trellis", "stop")
    assert running() == {}
    run("install", "-o", "trellis", "-m", "0600", old_database, str(DATA / "old.db"))
    assert "Restored" in run("trellis", "backup", "restore", str(DATA / "old.db"))
    os.environ["TRELLIS_DATABASE_URL"] = f"sqlite:///{DATA}/old.db"
    assert "still works with the database afterwards" in run("trellis", "migrate", "--plan", status=3)
    assert "is ready" in run("trellis", "migrate")
    del os.environ["TRELLIS_DATABASE_URL"]
    start()

    run("dpkg", "--remove", "trellis-community")
    assert running() == {}
    assert (DATA / "trellis.db").exists()
    assert SETTINGS.exists()
    assert not Path("/usr/lib/trellis").exists()
    run("dpkg", "--purge", "trellis-community")
    left = [
        path
        for path in ("/etc/trellis", "/etc/init.d/trellis", "/etc/logrotate.d/trellis", "/var/log/trellis", DATA)
        if Path(path).exists()
    ]
    assert left == []
    assert list(Path("/etc").glob("rc*.d/*trellis")) == []
    assert "trellis" not in Path("/etc/passwd").read_text()


if __name__ == "__main__":
    live(*sys.argv[1:])
    print("All of it was well.")  # noqa: T201  # what the test waits for

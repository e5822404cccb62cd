"""A release: the wheel runs where there is no clone, and what is shipped beside it names what exists."""

import json
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from scripts.release import ROOT, list_constraints
from tests.program import running
from trellis import __version__
from trellis.cli import workers
from trellis.settings import PREFIX, Settings, definitions, variable
from trellis.store.migrate import migrate

PACKAGING = ROOT / "packaging"


def test_every_pin_is_a_constraint_with_its_condition_and_without_hashes() -> None:
    locked = (ROOT / "requirements" / "runtime.txt").read_text()
    listed = list_constraints(locked).splitlines()
    assert len(listed) == sum("==" in line and not line.lstrip().startswith("#") for line in locked.splitlines())
    assert not any("hash" in line or line.endswith("\\") for line in listed)
    assert any(line.startswith("apsw==") and " ; " in line for line in listed)


def test_what_is_shipped_beside_names_settings_that_exist() -> None:
    known = {variable(name) for name in definitions()}
    named = {file.name: set(re.findall(rf"\b{PREFIX}\w+", file.read_text())) for file in PACKAGING.rglob("*") if file.is_file()}
    assert any(named.values())
    assert {file: unknown for file, names in named.items() if (unknown := names - known)} == {}


def test_the_containers_of_the_compose_file_may_do_only_what_they_must() -> None:
    compose: dict[str, Any] = yaml.safe_load((PACKAGING / "compose.yaml").read_text())
    services = compose["services"]
    assert services["migrate"]["environment"] == services["trellis"]["environment"]
    for name in ("migrate", "trellis"):
        assert services[name]["image"] == f"localhost/trellis:{__version__}"
        assert services[name]["read_only"]
        assert (services[name]["cap_drop"], services[name]["security_opt"]) == (["ALL"], ["no-new-privileges"])
    assert all(re.search(r":\d", service["image"]) for service in services.values())
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    assert not any(service.get("privileged") or service.get("network_mode") for service in services.values())
    waited_for = {other for service in services.values() for other in service.get("depends_on", {})}
    assert waited_for <= set(services)
    volumes = {volume.partition(":")[0] for service in services.values() for volume in service.get("volumes", ())}
    assert volumes == set(compose["volumes"])
    networks = {network for service in services.values() for network in service.get("networks", ())}
    assert networks <= {*compose["networks"], "default"}


def test_supervisors_wait_until_the_service_has_ended_by_itself() -> None:
    compose: dict[str, Any] = yaml.safe_load((PACKAGING / "compose.yaml").read_text())
    unit = re.search(r"^TimeoutStopSec=(\d+)$", (PACKAGING / "trellis.service").read_text(), re.MULTILINE)
    assert unit is not None
    assert min(int(unit[1]), int(compose["services"]["trellis"]["stop_grace_period"].removesuffix("s"))) > workers.END


def test_the_container_has_no_root_and_tells_its_health() -> None:
    lines = (PACKAGING / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    told = [(line.split()[0], line) for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"FROM \S+:\d+\.\d+-slim( AS build)?", line) for name, line in told if name == "FROM")
    names = [name for name, _ in told]
    last = names[len(names) - 1 - names[::-1].index("FROM") :]  # the stage that is the image
    assert {"USER", "HEALTHCHECK", "ENTRYPOINT"} <= set(last)
    assert "ADD" not in names
    assert ("USER", "USER 10001") in told
    assert "RUN" not in last[last.index("USER") :]


@pytest.mark.parametrize(
    ("name", "folder"), [("Containerfile", "WORKDIR /data"), ("trellis.service", "WorkingDirectory=/var/lib/trellis")]
)
def test_the_address_of_the_database_may_be_in_a_file_there(tmp_path: Path, name: str, folder: str) -> None:
    written = (PACKAGING / name).read_text()
    given = dict(re.findall(r"(TRELLIS_\w+)=(\S+)", written))
    assert folder in written.splitlines()  # where the database is unless it is said
    (tmp_path / "address").write_text("postgresql://localhost/trellis")
    settings = Settings.load(given | {"TRELLIS_DATABASE_URL_FILE": str(tmp_path / "address")}, None)
    assert settings.database_url == "postgresql://localhost/trellis"
    assert Settings.load(given, None).database_url == "sqlite:///trellis.db"


def test_the_container_file_passes_its_linter() -> None:
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists():
        pytest.skip("there is no hadolint for this kind of machine")
    ran = subprocess.run(
        [program, "--failure-threshold=style", PACKAGING / "Containerfile"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "")


@pytest.mark.slow
def test_the_bill_of_materials_is_valid_and_names_all_that_is_needed(release: list[Path]) -> None:
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415  # each process that collects the tests would load it
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415  # the same

    (file,) = (file for file in release if file.name.endswith("-sbom.cdx.json"))
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read_text()) is None
    bom = json.loads(file.read_text())
    assert (bom["metadata"]["component"]["name"], bom["metadata"]["component"]["version"]) == ("trellis-community", __version__)
    listed = {(one["name"], one["version"]) for one in bom["components"]}
    pinned = set(
        re.findall(
            r"^([\w-]+)(?:\[\w+\])?==(\S+)", list_constraints((ROOT / "requirements" / "runtime.txt").read_text()), re.MULTILINE
        )
    )
    assert listed <= pinned
    assert {"sqlalchemy", "starlette", "psycopg-binary", "argon2-cffi-bindings"} <= {name for name, _ in listed}
    assert not {"hatchling", "pytest"} & {name for name, _ in listed}
    assert all(one["licenses"] for one in bom["components"])
    edges = {one["ref"]: set(one.get("dependsOn", ())) for one in bom["dependencies"]}
    reached, open_ones = set(), {bom["metadata"]["component"]["bom-ref"]}
    while open_ones:
        reached |= open_ones
        open_ones = set().union(*(edges[one] for one in open_ones)) - reached
    assert {one["bom-ref"] for one in bom["components"]} <= reached


@pytest.mark.slow
def test_the_wheel_runs_where_there_is_nothing_else(release: list[Path], tmp_path: Path) -> None:
    wheel = next(file for file in release if file.suffix == ".whl")
    assert [file.name.replace(__version__, "VERSION") for file in release] == [
        "trellis_community-VERSION-constraints.txt",
        "trellis_community-VERSION-py3-none-any.whl",
        "trellis_community-VERSION-sbom.cdx.json",
        "trellis_community-VERSION.tar.gz",
        "SHA256SUMS",
    ]
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=wheel.parent, check=True)

    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    install = [sys.executable, "-m", "pip", f"--python={python}", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True)
    packages = next((environment / "lib").glob("python*/site-packages"))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))  # their wheels are no part of the release
    folder = tmp_path / "folder"
    folder.mkdir()

    def trellis(*arguments: str) -> str:
        command = [str(environment / "bin" / "trellis"), *arguments]
        ran = subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    where = subprocess.run([python, "-c", "import trellis; print(trellis.__file__)"], cwd=folder, check=True, capture_output=True)
    assert Path(where.stdout.decode().strip()).is_relative_to(packages)
    assert trellis("--version").startswith(f"trellis {__version__}, SQLite ")
    serve = (environment / "bin" / "trellis-community", "serve", "--demo", "--port", "0")  # the same, as uvx finds it
    with running(serve, cwd=folder, env={}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        told = _read_variables(process)
        with httpx.Client(headers={"Authorization": f"Bearer {told['API_KEY']}"}, timeout=60) as client:
            made = client.post(f"{told['API']}/forums/forums", json={"name": "From the wheel"})
            assert made.status_code == 201
            for page in ("/api/docs", "/api/openapi.json", "/admin/sign-in", "/readyz"):
                assert client.get(told["API"].removesuffix("/api") + page).status_code == 200, page
        process.terminate()
        assert process.wait(60) == 0
    migrate(Settings(database_url=f"sqlite:///{folder}/old.db"), to="0013")
    assert "Restored" in trellis("backup", "restore", "old.db")
    assert "at the newest step" in trellis("doctor")


def _read_variables(process: "subprocess.Popen[str]") -> dict[str, str]:
    """Return the variables that are printed for trying it, by name."""
    assert process.stdout is not None
    found: dict[str, str] = {}
    for line in process.stdout:
        if named := re.match(r" +(API|API_KEY)=(\S+)", line):
            found[named[1]] = named[2]
        if "curl" in line:
            break
    return found

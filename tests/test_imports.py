"""The contract that keeps the modules of a folder private: kept where they are, broken by each way around it."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).parents[1]
CONFIGURATION: Final = """\
[importlinter]
root_package = nursery
contract_types =
    private: scripts.import_contracts.PrivateContract

[importlinter:contract:private]
name = Private
type = private
"""


def check(folder: Path, importers: dict[str, str]) -> tuple[int, str]:
    """Run import-linter over a package with more modules, which hold these imports; give its exit code and what it says."""
    modules = {
        "": "",
        "store": "",
        "store/trees": (
            "from nursery.store.trees import limes, oaks\nfrom nursery.store.trees.elms import elm\n\nlime = limes.lime\n"
        ),
        "core": "",
        "core/trees": "",
    }
    for package, text in modules.items():
        home = folder / "nursery" / package
        home.mkdir(exist_ok=True)
        (home / "__init__.py").write_text(text)
    (folder / "nursery/store/trees/oaks.py").write_text("")
    (folder / "nursery/store/trees/limes.py").write_text("lime = 1\n")
    (folder / "nursery/store/trees/elms.py").write_text("from nursery.store.trees import oaks\n\n\ndef elm() -> None: ...\n")
    for importer, imports in importers.items():
        (folder / "nursery" / f"{importer}.py").write_text(imports)
    (folder / "contracts.ini").write_text(CONFIGURATION)
    command = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports('contracts.ini', cache_dir=None))"
    done = subprocess.run(
        [sys.executable, "-c", command],
        cwd=folder,
        env={"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_what_a_folder_names_may_be_imported(tmp_path: Path) -> None:
    importers = {
        "core/trees/cuttings": "from nursery.store.trees import elm",
        "core/trees/grafts": "from nursery.store.trees import elm, oaks",
        "core/trees/seeds": "from nursery.store import trees",
        "store/trees/pines": "from nursery.store.trees.elms import elm",
    }
    code, said = check(tmp_path, importers)
    assert (code, "Private KEPT" in said) == (0, True), said


def test_what_it_does_not_name_may_not(tmp_path: Path) -> None:
    imports = [
        "from nursery.store.trees.elms import elm",
        "from nursery.store.trees import elms",  # the folder offers elm, not the module that it is in
        "from nursery.store.trees import limes",  # which the folder imports for itself
        "import nursery.store.trees.elms",
        "from ..store.trees.elms import elm",
        "def grow() -> None:\n    from nursery.store.trees.elms import elm",
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from nursery.store.trees.elms import elm",
    ]
    code, said = check(tmp_path, {f"core/cuttings{number}": text for number, text in enumerate(imports)})
    assert (code, "Private BROKEN" in said) == (1, True), said
    for number in range(len(imports)):
        assert re.search(rf"cuttings{number}:\d+ imports \S+: import from nursery\.store\.trees what its __init__ offers", said), (
            number,
            said,
        )

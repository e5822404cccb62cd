"""A contract for import-linter: the modules of a folder are private to it."""

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, output


class PrivateContract(Contract):
    """A module of a folder of a layer is imported only from inside the folder.

    With `package.layer.concept.module`, everybody outside `package.layer.concept` writes `from package.layer.concept import name`,
    where the folder's `__init__` imports the name, or defines it. A module may itself be such a name, unless the `__init__` only
    imports it to use it. The folders are found in the graph; imports for the type checker alone count like others.
    """

    type_name = "private"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: FBT001  # import-linter's own signature
        """Look at every import that comes from outside a folder."""
        del verbose
        found = sorted(line for root in self.session_options["root_packages"] for line in _violations(graph, root))
        return ContractCheck(kept=not found, metadata={"violations": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line for each import that is not allowed."""
        for line in check.metadata["violations"]:
            output.print_error(line)


def _violations(graph: ImportGraph, root: str) -> Iterator[str]:
    for module in graph.modules:
        parts = module.split(".")
        if parts[0] != root or len(parts) < 4:
            continue
        folder = ".".join(parts[:3])
        public = len(parts) == 4 and parts[3] in _public_modules(folder)
        for importer in graph.find_modules_that_directly_import(module):
            if importer == folder or importer.startswith(f"{folder}."):
                continue
            for detail in graph.get_import_details(importer=importer, imported=module):
                if not public or not re.match(rf"from {re.escape(folder)} import\b", detail["line_contents"]):
                    where = f"{importer}:{detail['line_number']}"
                    yield f"{where} imports {module}: import from {folder} what its __init__ offers"


def _public_modules(folder: str) -> frozenset[str]:
    """Return the names that a folder's `__init__` imports without using them."""
    root, *rest = folder.split(".")
    spec = find_spec(root)
    if spec is None or not spec.submodule_search_locations:
        return frozenset()
    tree = ast.parse(Path(spec.submodule_search_locations[0], *rest, "__init__.py").read_text(encoding="utf-8"))
    imported = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    return frozenset(imported - {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})

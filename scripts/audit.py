"""Look the pinned dependencies up in the database of known vulnerabilities, where it can be reached.

Exits with 1 if one of them is known to be vulnerable, and with 0 if none is, or if the database could not be asked, which it says.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

# Those that are installed together have the same version of what both name; pip-audit takes no others in one call.
_TOGETHER: Final = (("runtime", "traces", "dev", "bench"), ("others",))
REQUIREMENTS: Final = tuple(tuple(f"requirements/{name}.txt" for name in names) for names in _TOGETHER)
_ROOT: Final = Path(__file__).parent.parent
_OPTIONS: Final = ("--require-hashes", "--disable-pip", "--format=json", "--progress-spinner=off", "--timeout=10")


def report(dependencies: list[dict[str, Any]]) -> tuple[list[str], bool]:
    """Return lines to print about what pip-audit has found, and whether something is known to be vulnerable."""
    found = {
        f"{one['name']} {one['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'no release yet'}"
        for one in dependencies
        for flaw in one.get("vulns", ())
    }
    skipped = {one["name"] for one in dependencies if "skip_reason" in one}
    audited = {one["name"] for one in dependencies} - skipped
    if not audited:
        return ["The database of vulnerabilities cannot be reached from here: no dependency was audited."], False
    lines = [f"Audited {len(audited)} pinned dependencies: {len(found)} known vulnerabilities.", *sorted(found)]
    if skipped:
        lines.append(f"Not in the database, and not audited: {', '.join(sorted(skipped))}.")
    return lines, bool(found)


def audit() -> list[dict[str, Any]]:
    """Ask pip-audit; return what it says of each dependency, nothing if it could not ask."""
    return [one for files in REQUIREMENTS for one in _audit_together(files)]


def _audit_together(names: Sequence[str]) -> list[dict[str, Any]]:
    files = [f"--requirement={name}" for name in names]
    ran = subprocess.run(
        [sys.executable, "-m", "pip_audit", *_OPTIONS, *files], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    try:
        dependencies: list[dict[str, Any]] = json.loads(ran.stdout)["dependencies"]
    except (ValueError, KeyError):  # it could not connect, and has written no report
        print(ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else "pip-audit said nothing.")
        return []
    return dependencies


if __name__ == "__main__":
    lines, vulnerable = report(audit())
    print(*lines, sep="\n")
    sys.exit(vulnerable)

"""The components of the OpenAPI document that are the same whatever operations there are, read from components.yaml."""

from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from trellis.core.fields import MAX_ID
from trellis.refusals import REFUSALS, Member

REQUEST_ID: Final = "8f14e45fceea167a5a36dedd"  # in examples


@cache
def load_components() -> dict[str, dict[str, Any]]:
    """Return the components: their type → name → component. They are shared: do not change them."""
    text = Path(__file__).with_name("components.yaml").read_text(encoding="utf-8")
    filled_in = text.replace("MAX_ID", str(MAX_ID)).replace("REQUEST_ID", REQUEST_ID)
    found: dict[str, dict[str, Any]] = yaml.load(filled_in, Loader=yaml.CSafeLoader)  # it is a safe loader
    problem, fault = (found["schemas"][name]["properties"] for name in ("Problem", "Fault"))
    problem["status"]["enum"] = sorted({refusal.status for refusal in REFUSALS.values()})
    problem["errorMessage"]["enum"] = fault["code"]["enum"] = list(REFUSALS)
    problem["errors"]["maxItems"] = max(refusal.most_faults for refusal in REFUSALS.values())
    problem |= _list_members()
    for name, parameter in found["parameters"].items():
        parameter |= {"name": name, "in": "header"}
    return found


def _list_members() -> dict[str, Any]:
    """Return the schemas of the members that only some refusals have, each naming those refusals."""
    found: dict[str, tuple[Member, list[str]]] = {}
    for refusal in REFUSALS.values():
        for member in refusal.members:
            found.setdefault(member.name, (member, []))[1].append(refusal.message)
    return {
        name: {**member.schema, "description": f"With {' and '.join(messages)}: {member.doc}"}
        for name, (member, messages) in found.items()
    }

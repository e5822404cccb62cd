"""Bring the structure of a staging community to the live one, with a plan that somebody reads before it is applied.

Usage: python3 staging_to_live.py export structure.yaml             from staging: write its structure
       python3 staging_to_live.py plan structure.yaml plan.json     at live: print what would change, as Markdown; write the plan
       python3 staging_to_live.py apply structure.yaml plan.json    at live: do what the plan says and nothing else
plan ends with 0 if there is nothing to do, 2 if there are changes, 1 if it was refused. Nodes that the document does not have are
deleted, at most MAX_DELETES of them (10 by default).
Groups are made and changed in the panel and at the terminal only: give them the same external ids in both communities.
The environment: API_URL, such as https://community.example/api, and API_KEY. The key needs *.list, and structure.export,
structure.plan or structure.apply; to apply, also the grants for what is to change, such as forums.create.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

if len(sys.argv) < 3 or not {"API_URL", "API_KEY"} <= os.environ.keys():
    sys.exit(__doc__)
URL, KEY = os.environ["API_URL"], os.environ["API_KEY"]
SECTIONS = "forums,calendars,categories"
SIGNS = {"create": "+", "update": "!", "move": "!", "delete": "-"}


def call(method: str, path: str, body: object = None) -> bytes:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(URL + path, data, headers, method=method), timeout=300) as answer:
            return bytes(answer.read())
    except HTTPError as error:
        problem = json.load(error)
        sys.exit("\n".join([fault["message"] for fault in problem.get("errors", [])] or [problem["detail"]]))


def send(path: str, file: Path, **more: object) -> Any:
    document = [{"file": file.name, "content": file.read_text(encoding="utf-8")}]
    deletes = int(os.environ.get("MAX_DELETES", "10"))
    return json.loads(call("POST", path, {"document": document, "prune": True, "maxDeletes": deletes, **more}))


def describe(plan: Any) -> str:
    lines = []
    for change in plan["changes"]:
        lines.append(f"{SIGNS[change['action']]} {change['action']} {change['resource']}: {change['path']}")
        lines += [f"    {one['member']}: {one['before']} -> {one['after']}" for one in change["differences"]]
        if drift := change["drift"]:
            lines.append(f"    changed by hand since the last apply: event {drift['event']}, {drift['operation']}, {drift['at']}")
    return "\n".join(["```diff", *lines, "```", f"{len(plan['changes'])} changes, {plan['deletes']} nodes deleted."])


what, file = sys.argv[1], Path(sys.argv[2])
if what == "export":  # ids made from paths would change with names, so every node must have its own
    file.write_bytes(call("GET", f"/core/structure?format=yaml&externalIds=fail&sections={SECTIONS}"))
elif what == "plan":
    plan = send("/core/structure/plan", file)
    Path(sys.argv[3]).write_text(json.dumps(plan), encoding="utf-8")
    print(describe(plan))
    sys.exit(2 if plan["changes"] else 0)
elif what == "apply":
    done = send("/core/structure/apply", file, plan=json.loads(Path(sys.argv[3]).read_bytes())["plan"])
    print(f"{len(done['changes'])} changes were made.")
else:
    sys.exit(__doc__)

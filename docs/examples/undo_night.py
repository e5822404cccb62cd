"""Undo everything that one key has done since a given time, in one transaction.

Usage: python3 undo_night.py KEY_ID SINCE [--skip-conflicts] [--yes]
SINCE is a timestamp such as 2026-01-31T22:00:00Z. Without --yes it only prints what would be undone, and what cannot be undone.
The environment: API_URL, such as https://community.example/api, and API_KEY, with the grants events.list and the restore
grants of what was changed, such as forums.restore. At the terminal the same is: trellis restore --key 3 --since 12h
"""

import json
import os
import sys
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

if len(sys.argv) < 3 or not {"API_URL", "API_KEY"} <= os.environ.keys():
    sys.exit(__doc__)
URL, KEY = os.environ["API_URL"], os.environ["API_KEY"]


def call(method: str, path: str, body: object = None) -> Any:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(URL + path, data, headers, method=method), timeout=300) as answer:
            return json.load(answer)
    except HTTPError as error:
        problem = json.load(error)
        if "index" not in problem:  # which says what operation of a batch was refused
            sys.exit(problem["detail"])
        return problem


def undo(events: list[Any], *, dry: bool) -> tuple[Any, str] | None:
    """Undo events in one batch; return the one that cannot be undone and why, or None if all can."""
    operations = [{"operation": "events.restore", "id": one["seq"], "body": {"deleteCreated": True}} for one in events]
    answer = call("POST", f"/core/batch?dryRun={int(dry)}", {"operations": operations})
    return (events[answer["index"]], answer["problem"]["detail"]) if "index" in answer else None


arguments, options = [one for one in sys.argv[1:] if one[:2] != "--"], {one for one in sys.argv[1:] if one[:2] == "--"}
key, since = arguments
events: list[Any] = []
page: dict[str, Any] = {"more": True}
while page["more"]:
    query = {"actor": f"key:{key}", "since": since, "order": "newest", "limit": 1000, **({"after": page["next"]} if events else {})}
    page = call("GET", f"/core/events?{urlencode(query)}")
    events += page["results"]
undone = {one["undoes"] for one in events}  # that the key has undone itself
numbers = {one["seq"] for one in events}
events = [one for one in events if one["seq"] not in undone and one["undoes"] not in numbers]
if len(events) > 1000:
    sys.exit(f"{len(events)} events are more than one batch may have. Use `trellis restore --key {key}` at the terminal.")

conflicts = []
while events and (conflict := undo(events, dry=True)):
    conflicts.append(conflict)
    events.remove(conflict[0])
for event, detail in conflicts:
    print(f"Event {event['seq']} ({event['operation']}) cannot be undone. {detail}")
if conflicts and "--skip-conflicts" not in options:
    sys.exit(f"{len(events)} others can be undone: --skip-conflicts does so.")
if events and "--yes" in options and (conflict := undo(events, dry=False)):
    sys.exit(f"Event {conflict[0]['seq']} has changed meanwhile, so nothing was undone. {conflict[1]}")
print(f"{len(events)} events {'were' if '--yes' in options else 'would be'} undone.")

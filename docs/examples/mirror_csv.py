"""Mirror a CSV file as forums, without remembering anything between runs.

Usage: python3 mirror_csv.py sections.csv [--delete N]
Columns: id, parent, name, description; a parent comes before its children. The id of a row becomes the external id of its forum,
by which the next run finds it again. Forums whose rows are gone are deleted only with --delete, and only if they are at most N.
The environment: API_URL, such as https://community.example/api, and API_KEY, with the grants forums.list, forums.create,
forums.update and forums.delete.
"""

import csv
import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.request import HTTPError, Request, urlopen

if len(sys.argv) < 2 or not {"API_URL", "API_KEY"} <= os.environ.keys():
    sys.exit(__doc__)
URL, KEY, PREFIX = os.environ["API_URL"], os.environ["API_KEY"], "csv-"


def call(method: str, path: str, body: object = None) -> Any:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(URL + path, data, headers, method=method), timeout=60) as answer:
            return json.load(answer)
    except HTTPError as error:
        sys.exit(json.load(error)["detail"])


def run(operations: list[dict[str, Any]]) -> int:
    """Run operations 500 at a time, each 500 all or nothing; return how many of them changed something."""
    parts = [operations[first : first + 500] for first in range(0, len(operations), 500)]
    results = [one for part in parts for one in call("POST", "/core/batch", {"operations": part})["results"]]
    return sum(one["event"] is not None for one in results)


with Path(sys.argv[1]).open(newline="", encoding="utf-8-sig") as file:
    rows = {PREFIX + row["id"]: row for row in csv.DictReader(file)}
if not rows:
    sys.exit("The file has no rows, so nothing is changed.")

puts = []
for external_id, row in rows.items():
    place = {"parentExternalId": PREFIX + row["parent"]} if row["parent"] else {"parentId": None}
    body = {"externalId": external_id, "name": row["name"], "description": row["description"], **place}
    puts.append({"operation": "forums.put_external", "body": body})
print(f"{run(puts)} of {len(puts)} forums were new or had changed.")

forums, page = [], {"totalPages": 1, "page": 0}
while page["page"] < page["totalPages"]:
    page = call("GET", f"/forums/forums?perPage=1000&page={page['page'] + 1}")
    forums += page["results"]
gone = [one for one in forums if (one["externalId"] or "").startswith(PREFIX) and one["externalId"] not in rows]
if len(gone) > (int(sys.argv[3]) if sys.argv[2:3] == ["--delete"] else 0):
    sys.exit(f"{len(gone)} forums are no longer in the file. To delete them: --delete {len(gone)}")
deepest_first = sorted(gone, key=lambda one: -one["path"].count(" > "))
run([{"operation": "forums.delete", "id": one["id"]} for one in deepest_first])
print(f"{len(gone)} forums were deleted.")

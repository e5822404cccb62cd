"""Keep one calendar for each club in a file, and follow the changes that others make to these calendars.

Usage: python3 club_calendars.py clubs.json [--follow]
The file: [{"id": "chess", "name": "Chess club", "color": "#1a4f8b"}, …]
The environment: API_URL, such as https://community.example/api, and API_KEY.
"""

import json
import os
import sys
import time
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

if len(sys.argv) < 2 or not {"API_URL", "API_KEY"} <= os.environ.keys():
    sys.exit(__doc__)
URL, KEY = os.environ["API_URL"], os.environ["API_KEY"]
PREFIX = "club-"  # the beginning of the external ids of our calendars
REASON = "club calendars"  # recorded with our changes, so that we can recognise them
NEEDED = {"calendars.list", "calendars.create", "calendars.update", "calendars.delete", "events.list"}


class Refused(Exception):
    """A refusal; its text says what is wrong and what to do."""


def call(method: str, path: str, body: object = None) -> Any:
    """Send a request that is safe to repeat. While the service is busy or cannot be reached, wait and try again."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", "X-Audit-Log-Reason": REASON}
    request = Request(URL + path, None if body is None else json.dumps(body).encode(), headers, method=method)
    pauses = iter((1, 5, 20, 60))
    while True:
        pause = next(pauses, None)
        try:
            with urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except HTTPError as error:
            if method == "DELETE" and error.code == 404:
                return None  # already deleted, by an earlier try whose response was lost or by somebody else
            if error.code not in {429, 502, 503, 504} or pause is None:
                raise Refused(explain(error)) from None
            time.sleep(int(error.headers.get("Retry-After", pause)))
        except (OSError, HTTPException):
            if pause is None:
                raise
            time.sleep(pause)


def explain(error: HTTPError) -> str:
    """Return the text of a refusal. A refusal that comes from a proxy is not JSON."""
    if error.headers.get_content_type() != "application/problem+json":
        return f"{error.code} {error.reason}: the response does not come from the service itself."
    problem = json.load(error)
    return f"{problem['detail']}\n  (request {problem['requestId']})"


def check_key() -> None:
    granted = set(call("GET", "/core/hello")["key"]["operations"])
    if missing := NEEDED - granted:
        raise Refused(f"Ask an administrator to grant this key: {', '.join(sorted(missing))}")


def synchronise(clubs: list[dict[str, str]]) -> None:
    wanted = {PREFIX + club["id"]: {"name": club["name"], "color": club["color"]} for club in clubs}
    for external_id, fields in wanted.items():
        calendar = call("PUT", f"/calendar/calendars/external/{quote(external_id, safe='')}", fields)
        print(f"{calendar['name']}: calendar {calendar['id']}")
    page = {"page": 0, "totalPages": 1}
    there = []
    while page["page"] < page["totalPages"]:
        page = call("GET", f"/calendar/calendars?perPage=1000&page={page['page'] + 1}")
        there += page["results"]
    for calendar in there:
        if (calendar["externalId"] or "").startswith(PREFIX) and calendar["externalId"] not in wanted:
            call("DELETE", f"/calendar/calendars/{calendar['id']}")
            print(f"{calendar['name']}: deleted")


def find_newest() -> int:
    """Return the number of the newest event, after which to follow the feed. All events may have been purged."""
    newest = call("GET", "/core/events?order=newest&limit=1")["results"]
    return int(newest[0]["seq"] if newest else call("GET", "/core/events?limit=1")["next"])


def follow(after: int) -> None:
    """Print the changes that others make to our calendars as they happen, until interrupted."""
    while True:
        feed = call("GET", f"/core/events?resource=calendars&after={after}&wait=30")
        for event in feed["results"]:
            record = event["after"] or event["before"]
            if event["reason"] != REASON and (record["externalId"] or "").startswith(PREFIX):
                print(f"{event['at']}: {event['actor']['name']} {event['operation']} {record['name']}", flush=True)
        after = feed["next"]


try:
    check_key()
    newest = find_newest()
    synchronise(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    if "--follow" in sys.argv:
        follow(newest)
except Refused as refused:
    sys.exit(str(refused))

// Keep one calendar for each club in a file, and follow the changes that others make to these calendars.
//
// Usage: node club_calendars.ts clubs.json [--follow]   (Node.js 24 or newer)
// The file: [{"id": "chess", "name": "Chess club", "color": "#1a4f8b"}, …]
// The environment: API_URL, such as https://community.example/api, and API_KEY.

import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

type Club = { id: string; name: string; color: string };
type Calendar = { id: number; name: string; externalId: string | null };
type Page = { page: number; totalPages: number; results: Calendar[] };
type Event = {
  seq: number;
  at: string;
  operation: string;
  reason: string | null;
  actor: { name: string };
  before: Calendar | null;
  after: Calendar | null;
};
type Feed = { results: Event[]; next: number };
type Problem = { detail: string; requestId: string };

const URL = process.env.API_URL;
const KEY = process.env.API_KEY;
const PREFIX = "club-"; // the beginning of the external ids of our calendars
const REASON = "club calendars"; // recorded with our changes, so that we can recognise them
const NEEDED = ["calendars.list", "calendars.create", "calendars.update", "calendars.delete", "events.list"];

/** A refusal; its message says what is wrong and what to do. */
class Refused extends Error {}

/** Send a request that is safe to repeat. While the service is busy or cannot be reached, wait and try again. */
async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers = { Authorization: `Bearer ${KEY}`, "Content-Type": "application/json", "X-Audit-Log-Reason": REASON };
  const pauses = [1, 5, 20, 60];
  for (;;) {
    const pause = pauses.shift();
    let answer: Response;
    try {
      answer = await fetch(URL + path, { method, headers, body: JSON.stringify(body), signal: AbortSignal.timeout(60_000) });
    } catch (error) {
      if (pause === undefined) throw error;
      await sleep(1000 * pause);
      continue;
    }
    if (answer.ok) return (await answer.json()) as T;
    // Already deleted, by an earlier try whose response was lost or by somebody else.
    if (method === "DELETE" && answer.status === 404) return null as T;
    if (![429, 502, 503, 504].includes(answer.status) || pause === undefined) throw new Refused(await explain(answer));
    await sleep(1000 * Number(answer.headers.get("Retry-After") ?? pause));
  }
}

/** Return the text of a refusal. A refusal that comes from a proxy is not JSON. */
async function explain(answer: Response): Promise<string> {
  if (!answer.headers.get("Content-Type")?.startsWith("application/problem+json")) {
    return `${answer.status} ${answer.statusText}: the response does not come from the service itself.`;
  }
  const problem = (await answer.json()) as Problem;
  return `${problem.detail}\n  (request ${problem.requestId})`;
}

async function checkKey(): Promise<void> {
  const granted = (await call<{ key: { operations: string[] } }>("GET", "/core/hello")).key.operations;
  const missing = NEEDED.filter((operation) => !granted.includes(operation));
  if (missing.length) throw new Refused(`Ask an administrator to grant this key: ${missing.join(", ")}`);
}

async function synchronise(clubs: Club[]): Promise<void> {
  const wanted = new Map(clubs.map((club) => [PREFIX + club.id, { name: club.name, color: club.color }]));
  for (const [externalId, fields] of wanted) {
    const calendar = await call<Calendar>("PUT", `/calendar/calendars/external/${encodeURIComponent(externalId)}`, fields);
    console.log(`${calendar.name}: calendar ${calendar.id}`);
  }
  const there: Calendar[] = [];
  for (let page = 0, last = 1; page < last; ) {
    const read = await call<Page>("GET", `/calendar/calendars?perPage=1000&page=${page + 1}`);
    there.push(...read.results);
    [page, last] = [read.page, read.totalPages];
  }
  for (const calendar of there) {
    if (calendar.externalId?.startsWith(PREFIX) && !wanted.has(calendar.externalId)) {
      await call("DELETE", `/calendar/calendars/${calendar.id}`);
      console.log(`${calendar.name}: deleted`);
    }
  }
}

/** Return the number of the newest event, after which to follow the feed. All events may have been purged. */
async function findNewest(): Promise<number> {
  const newest = (await call<Feed>("GET", "/core/events?order=newest&limit=1")).results[0];
  return newest?.seq ?? (await call<Feed>("GET", "/core/events?limit=1")).next;
}

/** Print the changes that others make to our calendars as they happen, until interrupted. */
async function follow(after: number): Promise<void> {
  for (;;) {
    const feed = await call<Feed>("GET", `/core/events?resource=calendars&after=${after}&wait=30`);
    for (const event of feed.results) {
      const record = event.after ?? event.before;
      if (event.reason !== REASON && record?.externalId?.startsWith(PREFIX)) {
        console.log(`${event.at}: ${event.actor.name} ${event.operation} ${record.name}`);
      }
    }
    after = feed.next;
  }
}

try {
  const file = process.argv[2];
  if (!URL || !KEY || !file) throw new Refused("Usage: node club_calendars.ts clubs.json [--follow], with API_URL and API_KEY set");
  await checkKey();
  const newest = await findNewest();
  await synchronise(JSON.parse(await readFile(file, "utf8")) as Club[]);
  if (process.argv.includes("--follow")) await follow(newest);
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}

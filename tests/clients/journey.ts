// What a plugin does in a day, with the client that openapi-typescript and openapi-fetch make from the OpenAPI document.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.d.ts";

declare const process: { env: { API_URL: string; API_KEY: string } };

function expect(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`It does not hold: ${what}`);
}

const { API_URL, API_KEY } = process.env;
const api = createClient<paths>({ baseUrl: `${API_URL}/api`, headers: { Authorization: `Bearer ${API_KEY}` } });

const hello = await api.GET("/core/hello");
expect(hello.data?.key.operations.includes("forums.create") === true, "the key may create forums");

const before = await api.GET("/forums/forums", { params: { query: { perPage: 1, sortBy: "name" } } });
expect(before.data !== undefined, "a list is answered");
const count: number = before.data.totalResults;

// A key that may only propose would get a proposal instead of each of these responses; this key may do more.
function direct<T>(data: T): Exclude<T, { proposer: unknown } | undefined> {
  expect(data === null || (typeof data === "object" && !("proposer" in data)), "nothing has to be approved");
  return data as Exclude<T, { proposer: unknown } | undefined>;
}

const wanted: components["schemas"]["ForumInput"] = {
  name: "From TypeScript",
  type: "questions",
  permissions: { view: "*", reply: [3, 4] },
};
const dry = await api.POST("/forums/forums", { params: { query: { dryRun: true } }, body: wanted });
expect(dry.response.status === 200 && dry.response.headers.get("Dry-Run") === "true", "a dry run is answered with 200");

const token = crypto.randomUUID();
const made = await api.POST("/forums/forums", { params: { header: { "Idempotency-Key": token } }, body: wanted });
expect(made.data !== undefined && made.response.status === 201, "a forum is made");
const forum: components["schemas"]["Forum"] = direct(made.data);
expect(forum.type === "questions" && forum.permissions.view === "*", "it is as it was wanted");
const again = await api.POST("/forums/forums", { params: { header: { "Idempotency-Key": token } }, body: wanted });
expect(again.data?.id === forum.id, "sent twice, made once");

const path = { id: forum.id };
const got = await api.GET("/forums/forums/{id}", { params: { path } });
expect(got.data?.name === "From TypeScript", "it can be read");

const changed = await api.POST("/forums/forums/{id}", {
  params: { path, header: { "If-Match": got.response.headers.get("ETag") ?? "" } },
  body: { description: "<p>Changed.</p>", password: null },
});
expect(direct(changed.data).description === "<p>Changed.</p>", "it can be changed");

const found = await api.GET("/forums/forums", { params: { query: { ids: `${forum.id}`, parentId: "root" } } });
expect(found.data?.results[0]?.id === forum.id && found.data.totalResults === 1, "it can be found");

const wrong = await api.POST("/forums/forums/{id}", { params: { path }, body: { type: "redirect" } });
expect(wrong.error?.errorMessage === "NO_REDIRECT_URL", "a refusal says what is wrong");
expect(wrong.error.errors?.[0]?.field === "redirectUrl", "and at which field");

const plan = await api.DELETE("/forums/forums/{id}", { params: { path, query: { dryRun: true } } });
expect(direct(plan.data)?.deleted.ids[0] === forum.id, "a delete tells what would go");
const gone = await api.DELETE("/forums/forums/{id}", { params: { path } });
expect(gone.data === null, "it can be deleted");

const missing = await api.GET("/forums/forums/{id}", { params: { path } });
expect(missing.response.status === 404 && missing.error?.errorCode === "1F363/1", "and is gone");

// Each event says which kind of record it is about.
type Event = components["schemas"]["Event"];
function describe(event: Event): string {
  if (event.resource !== "forums") return `${event.resource} ${event.resourceId ?? ""}`;
  const name: string | undefined = (event.after ?? event.before)?.name;
  const parent: number | null | undefined = event.after?.parentId;
  return `${event.type} ${name} ${parent ?? "top"} ${event.changed.includes("description") ? "described" : "-"}`;
}
const feed = await api.GET("/core/events", { params: { query: { resource: "forums", resourceId: forum.id } } });
const told: string[] = (feed.data?.results ?? []).map(describe);
expect(
  told.join() ===
    [
      "forum.created From TypeScript top -",
      "forum.updated From TypeScript top described",
      "forum.deleted From TypeScript top -",
    ].join(),
  `the feed tells what was done, not ${told.join()}`,
);
const last: Event | undefined = feed.data?.results.at(-1);
expect(last !== undefined, "the delete left an event");
const undo = { path: { id: last.seq } };
const tried = await api.POST("/core/events/{id}/restore", { params: { ...undo, query: { dryRun: true } } });
const wouldBe: boolean | undefined = direct(tried.data)?.dryRun;
expect(wouldBe === true, "an undo can be tried");
const restored = await api.POST("/core/events/{id}/restore", { params: undo });
expect(direct(restored.data)?.restored.ids[0] === forum.id, "and done");
await api.DELETE("/forums/forums/{id}", { params: { path } });

// A message about an event, as a receiver of webhooks reads it.
type Message = components["schemas"]["ForumMessage"] | components["schemas"]["CalendarMessage"];
function receive(message: Message): string {
  return message.data.resource === "forums" ? `${message.data.after?.type ?? ""}` : `${message.data.after?.color ?? ""}`;
}
expect(typeof receive === "function", "messages have types");

const gone2 = await api.POST("/forums/forums", { params: { header: { "Idempotency-Key": token } }, body: wanted });
expect(gone2.error?.errorMessage === "IDEMPOTENCY_RECORD_GONE" && gone2.error.event !== undefined, "its record is gone");

const after = await api.GET("/forums/forums");
expect(after.data?.totalResults === count, "everything is as before");
console.log("done");

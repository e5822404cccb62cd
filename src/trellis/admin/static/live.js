// Keeps a page up to date. The service says which topics have news. The page is then fetched again from its own address, where the
// service decides what may be seen, and its parts (data-part) are updated. A hidden page is not updated until it is visible again.
import { many, t } from "./language.js";
import { clear, clearAll } from "./leaving.js";
import { merge, rowsOf } from "./merge.js";
import { say } from "./messages.js";
import { isPressed } from "./pressing.js";

const SILENCE = 45_000; // ms: the service sends a heartbeat more often than that
const PATIENCE = 8_000; // ms until the first event; a proxy that holds it back holds back all events
const ASK_EVERY = 10_000; // ms, if no stream gets through
const LONGEST = 60_000; // ms between two attempts while nothing answers, and until a stream is tried again
const PAUSE = 1_000; // ms between two fetches of the page; longer if one takes more than a tenth of it
const SAY_EVERY = 8_000; // ms between two announcements
const FAR = 8; // px by which the top of a list may be outside the window

const page = document.querySelector("main[data-live]");
const topics = new Set(page?.dataset.live.split(" "));
const from = () => page.dataset.liveFrom || location.href; // a tree keeps its open nodes in the address
let since = page?.dataset.since ?? "";
let source = null;
let timer = 0; // until the stream is given up, or the service is asked again
let streamAfter = 0;
let isOver = false;
let isDue = false; // there is news that the page does not show yet
let fetching = null;
let pausing = 0;
let failures = 0; // in succession

export function live() {
  if (!page) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  addEventListener("pagehide", stop);
  document.addEventListener("panel:cleared", rest);
  addEventListener("pageshow", (event) => event.persisted && start());
  start();
}

const state = (word) => (page.dataset.liveBy = word);
const address = () => `${page.dataset.news}${since ? `?since=${since}` : ""}`;

function stop() {
  source?.close();
  source = null;
  clearTimeout(timer);
  clearTimeout(pausing);
  pausing = 0;
  if (!isOver) state("nothing");
}

function start() {
  if (isOver || document.hidden || source) return;
  clearTimeout(timer);
  if (isDue) refresh();
  if (!("EventSource" in window) || Date.now() < streamAfter) return ask(ASK_EVERY);
  const opened = new EventSource(address());
  source = opened;
  const heard = (patience) => {
    clearTimeout(timer);
    timer = setTimeout(giveUp, patience);
  };
  opened.addEventListener("beat", () => heard(SILENCE));
  opened.addEventListener("news", (event) => {
    heard(SILENCE);
    state("stream");
    take(event.lastEventId, JSON.parse(event.data));
  });
  opened.addEventListener("error", () => opened.readyState === EventSource.CLOSED && giveUp()); // otherwise the browser reconnects
  heard(PATIENCE);
}

// No stream is possible for now: it is refused, or something between here and the service holds it back.
function giveUp() {
  stop();
  streamAfter = Date.now() + LONGEST;
  ask(ASK_EVERY);
}

async function ask(pause) {
  clearTimeout(timer);
  if (isOver || document.hidden) return;
  let next = pause;
  try {
    const answer = await fetch(address(), { headers: { Accept: "application/json" }, credentials: "same-origin", cache: "no-store" });
    if (answer.status === 401) return end();
    if (!answer.ok) throw new Error(answer.statusText);
    const news = await answer.json();
    state("asking");
    take(news.position, news.topics);
    next = ASK_EVERY;
  } catch {
    next = Math.min(2 * pause, LONGEST);
  }
  if (source || document.hidden) return;
  clearTimeout(timer);
  timer = setTimeout(() => ("EventSource" in window && Date.now() >= streamAfter ? start() : ask(next)), next);
}

function take(position, news) {
  const isFirst = !since; // the page came without a position: something may have happened since
  since = position;
  if (isFirst || news.some((topic) => topic === "*" || topics.has(topic))) {
    isDue = true;
    refresh();
  }
}

function rest() {
  isOver = true;
  stop();
  state("nothing");
}

function end() {
  rest();
  if (!clearAll()) tellWhy(t("You are signed out, so this page is no longer updated."), t("Sign in"));
}

// Somebody else has signed in in another tab: what was fetched is what they may see, under the name of the one who was here before.
function giveWay(name) {
  rest();
  const then = t("Reload");
  if (!clear({ told: t("{name} is signed in here now.", { name }), then })) tellWhy(t("{name} is signed in here now, so this page is no longer updated.", { name }), then);
}

const tellWhy = (text, then) => say(text, { stay: true, buttons: [[then, () => location.reload()]] });

// Asks the other scripts of the page, each of which may prevent the step.
const allowed = (what) => document.dispatchEvent(new CustomEvent(what, { cancelable: true }));

// Fetches the page, one fetch at a time, with pauses that grow with the time that a fetch takes.
async function refresh() {
  if (fetching || pausing || isOver || document.hidden) return;
  const began = performance.now();
  isDue = false;
  if (!allowed("panel:fetch")) return; // the page is no longer kept up to date
  fetching = fetch(from(), { headers: { Accept: "text/html", "X-Panel-Background": "1" }, credentials: "same-origin", cache: "no-store" });
  try {
    const answer = await fetching;
    if (answer.redirected || answer.status === 401) return end();
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const { who } = fresh.body.dataset;
    if (who && who !== document.body.dataset.who) return giveWay(fresh.querySelector("[data-me]").textContent); // also if they may not see it
    if (answer.status >= 400 && answer.status < 500 && answer.status !== 429) return; // the answer will be the same until there is news
    if (!answer.ok) throw new Error(answer.statusText);
    failures = 0;
    if (isPressed() || !allowed("panel:merge")) isDue = true;
    else show(fresh);
  } catch {
    isDue = true; // it is tried again
    failures += 1;
  } finally {
    fetching = null;
    clearTimeout(pausing);
    pausing = setTimeout(() => {
      pausing = 0;
      if (isDue) refresh();
    }, Math.max(Math.min(PAUSE * 2 ** failures, LONGEST), 10 * (performance.now() - began)));
  }
}

function show(fresh) {
  renew(fresh);
  for (const part of document.querySelectorAll("[data-part]")) {
    const wanted = fresh.querySelector(`[data-part="${CSS.escape(part.dataset.part)}"]`);
    if (!wanted) continue;
    const known = rowsOf(part);
    const news = part.dataset.noun ? [...rowsOf(wanted).keys()].filter((key) => !known.has(key)).length : 0;
    if (news && part.firstElementChild && topOf(part) < -FAR) offer(part, wanted, news);
    else bring(part, wanted, news);
  }
  document.dispatchEvent(new CustomEvent("panel:merged"));
}

// After the same person has signed in again in another tab, the forms of this page take effect, too.
function renew(fresh) {
  const { value } = fresh.querySelector("input[name=csrf]");
  for (const token of document.querySelectorAll("input[name=csrf]")) token.value = value;
}

// The names of a part's rows, by its `data-noun`.
const ROWS = {
  change: (count) => many(count, "{count} new change", "{count} new changes"),
  event: (count) => many(count, "{count} new event", "{count} new events"),
  message: (count) => many(count, "{count} new message", "{count} new messages"),
  proposal: (count) => many(count, "{count} new proposal", "{count} new proposals"),
  request: (count) => many(count, "{count} new request", "{count} new requests"),
};
function tell(part, count) {
  const known = ROWS[part.dataset.noun];
  if (known) return known(count);
  const [one, several] = part.dataset.noun.split("|"); // the singular and plural of a kind of node
  return t("{count} new {noun}", { count, noun: count === 1 ? one : several });
}

const topOf = (part) => part.firstElementChild.getBoundingClientRect().top; // the part itself may have no layout box

function bring(part, wanted, news) {
  offers.get(part)?.remove();
  offers.delete(part);
  const before = part.textContent.trim();
  merge(part, wanted);
  if (news) announce(tell(part, news));
  else if ("says" in part.dataset && part.textContent.trim() !== before) announce(part.textContent.trim().replace(/\s+/g, " "), true);
}

// If somebody reads further down, the page must not jump: the rows are inserted when the button is pressed.
const offers = new Map();
function offer(part, wanted, news) {
  if (!offers.has(part)) {
    offers.set(part, Object.assign(document.createElement("button"), { type: "button", className: "button primary newer" }));
    part.before(offers.get(part));
  }
  offers.get(part).textContent = t("{count} new", { count: news });
  offers.get(part).onclick = () => {
    bring(part, wanted, news);
    part.firstElementChild.scrollIntoView({ block: "start" });
    part.querySelector("[data-row] a, .node a")?.focus({ preventScroll: true });
  };
  announce(t("{news} above", { news: tell(part, news) }));
}

// --- announcements for screen readers: only the newest, and not too often -------------------------------------------------

let region = null;
let saying = 0;
let wanted = "";

function announce(text, atOnce = false) {
  region ??= document.body.appendChild(Object.assign(document.createElement("p"), { className: "unseen" }));
  region.setAttribute("role", "status");
  wanted = text;
  if (atOnce) {
    clearTimeout(saying);
    saying = 0;
  }
  if (saying) return;
  const speak = () => {
    saying = 0;
    if (!wanted) return;
    region.textContent = wanted;
    wanted = "";
    saying = setTimeout(speak, SAY_EVERY);
  };
  saying = setTimeout(speak, 50); // later: screen readers announce only what is added to a live region that is already there
}

// Sending forms: a second press sends nothing, what somebody has typed is not sent while the service is out of reach, and a form with
// data-working shows its text if the answer takes long. The form, the pressed button or the chosen radio button can have the text.
import { t } from "./language.js";
import { say } from "./messages.js";
import { isEdited, tellKept } from "./unsaved.js";

const MARKED = 100; // milliseconds until the pressed button is marked
const PATIENCE = 700; // milliseconds until the text is shown
const LONGEST = 30_000; // milliseconds after which a form may be sent again: loading may have been stopped, which not every browser reports
const PROBING = 5_000; // milliseconds without an answer after which the service counts as out of reach
const held = new Set();
const reached = new WeakSet(); // forms whose service was looked for and is there
let waiting = [];
let left = null; // the button that had the focus until it was disabled

export function working(root) {
  root.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post") return;
    if (held.has(form)) return event.preventDefault();
    const isAtRisk = (!navigator.onLine || isEdited(form)) && !("leaves" in form.dataset); // signing out clears all pages in any case
    if (isAtRisk && !reached.delete(form)) return probe(event, form);
    held.add(form);
    setTimeout(() => [...form.elements].filter((one) => one.type === "submit" && !one.disabled).forEach(hold)); // later: a disabled button is not sent
    waiting.push(setTimeout(() => event.submitter?.setAttribute("aria-busy", "true"), MARKED));
    waiting.push(setTimeout(() => offer(form), LONGEST));
    const text = event.submitter?.dataset.working ?? form.querySelector("input:checked[data-working]")?.dataset.working ?? form.dataset.working;
    if (text && !event.submitter?.formNoValidate) waiting.push(setTimeout(() => showProgress(form, text), PATIENCE));
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) release(root);
  });
  document.addEventListener("panel:stayed", () => release(root));
  globalThis.navigation?.addEventListener("navigate", ({ signal }) => {
    signal.addEventListener("abort", () => held.size && release(root)); // loading was stopped
  });
}

// Without this, the browser would replace the page, and what was typed, by a page that reports that nothing answers.
async function probe(event, form) {
  const { submitter } = event;
  event.preventDefault();
  held.add(form); // a second press meanwhile asks nothing
  const marking = setTimeout(() => submitter?.setAttribute("aria-busy", "true"), MARKED);
  const patience = AbortSignal.timeout(PROBING);
  const asked = fetch(import.meta.url, { method: "HEAD", cache: "no-store", signal: patience });
  // A proxy reports an error if the service behind it is down. If nothing has come in time, the line may only be slow.
  const isReached = await asked.then(({ status }) => status < 500, () => navigator.onLine && patience.aborted);
  clearTimeout(marking);
  submitter?.removeAttribute("aria-busy");
  held.delete(form);
  const again = () => send(form, submitter);
  if (!isReached) {
    const why = navigator.onLine ? t("The service cannot be reached.") : t("There is no network connection.");
    return say(tellKept(form, why, t("Nothing was sent.")), { bad: true, stay: true, buttons: [[t("Try again"), again]] });
  }
  reached.add(form);
  send(form, submitter);
}

const send = (form, submitter) => form.isConnected && form.requestSubmit(submitter ?? undefined);

function hold(button) {
  if (button === document.activeElement) left = button;
  button.disabled = true;
  held.add(button);
}

function showProgress(form, text) {
  const region = document.createElement("div");
  region.className = "working";
  region.setAttribute("role", "status");
  form.append(region);
  const bar = document.createElement("progress");
  bar.setAttribute("aria-label", t("In progress"));
  const words = document.createElement("p");
  words.textContent = text;
  waiting.push(setTimeout(() => region.append(words, bar), 50)); // later: screen readers do not announce the first content of a live region
}

// Lets a form be sent again to which no answer has come yet.
function offer(form) {
  free();
  if (form.isConnected) say(t("There is no answer yet. You can go on waiting, or send it again: nothing is done twice."), { stay: true });
}

// Restores the page as it was before sending, after the back button or if the browser has stayed on it.
function release(root) {
  waiting.forEach(clearTimeout);
  waiting = [];
  root.querySelectorAll(".working").forEach((region) => region.remove());
  root.querySelectorAll("button[aria-busy]").forEach((button) => button.removeAttribute("aria-busy"));
  free();
}

function free() {
  held.forEach((one) => "disabled" in one && (one.disabled = false));
  held.clear();
  if (document.activeElement === document.body) left?.focus({ preventScroll: true });
  left = null;
}

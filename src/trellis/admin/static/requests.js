// Sends all requests of the panel's scripts: one at a time for each control, which is marked as busy if the answer takes long.
// An error becomes a Failure with a sentence for people; `attempt` shows it and offers to try again.
import { t } from "./language.js";
import { hide, say } from "./messages.js";

const PATIENCE = 100; // ms until a control is marked as busy
const GIVE_UP = 30_000; // ms until the request is given up
const OFFLINE = t("There is no network connection.");
const NO_ANSWER = t("The service cannot be reached.");
const BROKEN = t("The service could not answer just now.");
const running = new WeakMap(); // the request of each control

// Why there is no usable answer. `refused`: the service has refused the request. `unsure`: nobody knows whether it has carried it out.
export class Failure extends Error {
  constructor(text, refused = false, unsure = false) {
    super(text);
    this.refused = refused;
    this.unsure = unsure;
  }
}

// The answer is not the requested page but, for example, the sign-in page: the browser has to go there.
class Elsewhere extends Error {}

// Returns the answer with its text. Returns null if the control is already waiting for an answer or, with `newest`, has sent another
// request since. Throws Failure.
export async function ask(control, address, { newest = false, ...options } = {}) {
  if (running.has(control) && !newest) return null;
  running.get(control)?.abort();
  const request = new AbortController();
  running.set(control, request);
  const marking = setTimeout(() => control.setAttribute("aria-busy", "true"), PATIENCE);
  const ending = setTimeout(() => request.abort(), GIVE_UP);
  const isLast = () => running.get(control) === request;
  const isSent = navigator.onLine; // if the network goes while the service answers, it may have carried the request out
  try {
    const answer = await fetch(address, { credentials: "same-origin", ...options, signal: request.signal });
    const text = await answer.text();
    if (!isLast()) return null;
    if (answer.status >= 500) throw new Failure(BROKEN, false, true);
    return { ok: answer.ok && !answer.redirected, status: answer.status, text };
  } catch (error) {
    if (!isLast()) return null;
    if (error instanceof Failure) throw error;
    throw new Failure(navigator.onLine ? NO_ANSWER : OFFLINE, false, isSent || navigator.onLine);
  } finally {
    clearTimeout(marking);
    clearTimeout(ending);
    if (isLast()) {
      running.delete(control);
      control.removeAttribute("aria-busy");
    }
  }
}

// Returns the HTML of a page or a part of one. Throws Elsewhere, too.
export async function askPage(control, address, options) {
  const answer = await ask(control, address, options);
  if (answer && !answer.ok) throw new Elsewhere(address);
  return answer && answer.text;
}

// Returns the JSON of an answer. A refusal becomes a Failure with the refusal's sentence.
export async function askJson(control, address, { headers, ...options } = {}) {
  const answer = await ask(control, address, { ...options, headers: { ...headers, Accept: "application/json" } });
  if (!answer) return null;
  let value = null;
  try {
    value = JSON.parse(answer.text);
  } catch {
    throw new Failure(BROKEN);
  }
  if (!answer.ok) throw new Failure(value.detail, answer.status !== 401);
  return value;
}

// Runs a function that sends requests. If it fails, shows why, with a button that runs it again. If the answer is another page, the
// browser goes to `otherwise`.
export async function attempt(run, { what = "", otherwise = "" } = {}) {
  try {
    return await run();
  } catch (error) {
    if (error instanceof Elsewhere) location.assign(otherwise || error.message);
    else if (error instanceof Failure) {
      const again = () => {
        hide();
        return attempt(run, { what, otherwise });
      };
      say(`${what ? `${what} ` : ""}${error.message}`, { bad: true, stay: true, buttons: [[t("Try again"), again]] });
    } else throw error;
    return null;
  }
}

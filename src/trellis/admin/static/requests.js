// All requests that the panel's scripts make: one at a time for each control, which is marked as busy once the answer takes long.
// What goes wrong becomes a Failure in plain words; `attempt` says it and offers to try again.
import { t } from "./language.js";
import { hide, say } from "./messages.js";

const PATIENCE = 100; // ms until a control is marked as busy
const GIVE_UP = 30_000; // ms until an answer is not waited for any more
const OFFLINE = t("There is no network connection.");
const NO_ANSWER = t("The service cannot be reached.");
const BROKEN = t("The service could not answer just now.");
const running = new WeakMap(); // the request of each control

// Why there is no answer; `refused`: there is one, which says no.
export class Failure extends Error {
  constructor(text, refused = false) {
    super(text);
    this.refused = refused;
  }
}

// A page that is not what was asked for, such as that for signing in: only the browser can go there.
export class Elsewhere extends Error {}

// Returns the answer with its text, or null where it is passed over: the control waits for one already, or, with `newest`, has
// asked again since. Raises Failure.
export async function ask(control, address, { newest = false, ...options } = {}) {
  if (running.has(control) && !newest) return null;
  running.get(control)?.abort();
  const request = new AbortController();
  running.set(control, request);
  const marking = setTimeout(() => control.setAttribute("aria-busy", "true"), PATIENCE);
  const ending = setTimeout(() => request.abort(), GIVE_UP);
  const isLast = () => running.get(control) === request;
  try {
    const answer = await fetch(address, { credentials: "same-origin", ...options, signal: request.signal });
    const text = await answer.text();
    if (!isLast()) return null;
    if (answer.status >= 500) throw new Failure(BROKEN);
    return { ok: answer.ok && !answer.redirected, status: answer.status, text };
  } catch (error) {
    if (!isLast()) return null;
    if (error instanceof Failure) throw error;
    throw new Failure(navigator.onLine ? NO_ANSWER : OFFLINE);
  } finally {
    clearTimeout(marking);
    clearTimeout(ending);
    if (isLast()) {
      running.delete(control);
      control.removeAttribute("aria-busy");
    }
  }
}

// The HTML of a page or a part of one. Raises Elsewhere too.
export async function askPage(control, address, options) {
  const answer = await ask(control, address, options);
  if (answer && !answer.ok) throw new Elsewhere(address);
  return answer && answer.text;
}

// JSON; what is refused becomes a Failure with the words of the refusal.
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

// Runs something that asks. Where it fails, says why, with a button that runs it again; `otherwise` is where a browser goes instead.
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

// Clears a page when its session ends. When somebody signs out, all tabs of this browser are cleared at once, even if the service
// cannot be reached.
import { t } from "./language.js";
import { say } from "./messages.js";
import { isEdited } from "./unsaved.js";

const tabs = "BroadcastChannel" in window ? new BroadcastChannel("trellis-session") : null;
const isBare = () => document.body.classList.contains("bare"); // such a page shows nothing of the community
const SIGNED_OUT = { told: t("You are signed out."), then: t("Sign in") };
let cleared = null; // what a cleared page consists of

// Clears this page and those in other tabs. A page with unsaved input stays, unless somebody is signing out.
// Returns whether this page shows nothing of the community now.
export function clearAll(why = SIGNED_OUT) {
  tabs?.postMessage(why);
  return clear(why);
}

// Clears this page alone, as above; `told` says why, and the button `then` loads it again.
export function clear({ isLeaving = false, told, then }) {
  if (cleared) return tell(told, then);
  if (isBare()) return true;
  if (!isLeaving && isEdited(document)) return false;
  cleared = { main: document.createElement("main"), text: document.createElement("p"), again: document.createElement("button") };
  const { main, text, again } = cleared;
  main.className = "gate";
  text.setAttribute("role", "status");
  again.type = "button";
  again.className = "button primary";
  main.append(text, again);
  document.body.className = "bare";
  document.body.replaceChildren(main);
  tell(told, then);
  document.dispatchEvent(new CustomEvent("panel:cleared"));
  return true;
}

function tell(told, then, act = () => location.reload()) {
  cleared.text.textContent = document.title = told;
  cleared.again.textContent = then;
  cleared.again.onclick = act;
  return true;
}

// Says that nobody knows whether somebody is signed out: no answer has come to the form with which they wanted to be.
export function tellUnsure(form) {
  const told = t("No answer has come: you may still be signed in.");
  clearAll({ isLeaving: true, told, then: t("Reload") });
  if (!cleared) return say(told, { bad: true, stay: true });
  form.hidden = true;
  cleared.main.append(form);
  tell(told, t("Sign out"), () => form.requestSubmit());
}

export function leaving() {
  tabs?.addEventListener("message", ({ data }) => (data.isOver ? cleared && clear(SIGNED_OUT) : clear(data)));
  if ("nobody" in document.body.dataset) tabs?.postMessage({ isOver: true }); // pages that say that somebody is signing out
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || !("leaves" in event.target.dataset)) return;
    setTimeout(() => clearAll({ isLeaving: true, told: t("Signing out…"), then: t("Reload") })); // after the form has been sent
  });
}

// Clears a page when its session ends. When somebody signs out, all tabs of this browser are cleared at once, even if the service
// cannot be reached.
import { t } from "./language.js";
import { isEdited } from "./unsaved.js";

const tabs = "BroadcastChannel" in window ? new BroadcastChannel("trellis-session") : null;
const isBare = () => document.body.classList.contains("bare"); // such a page shows nothing of the community

// Clears this page and those in other tabs. A page with unsaved input stays, unless somebody has signed out.
// Returns whether this page shows nothing of the community now.
export function clearAll({ hasSignedOut = false } = {}) {
  tabs?.postMessage({ hasSignedOut });
  return clear({ hasSignedOut });
}

// Clears this page alone, as above; `told` says why, and the button `then` loads it again.
export function clear({ hasSignedOut = false, told = t("You are signed out."), then = t("Sign in") } = {}) {
  if (isBare()) return true;
  if (!hasSignedOut && isEdited(document)) return false;
  const main = document.createElement("main");
  const text = document.createElement("p");
  const again = document.createElement("button");
  main.className = "gate";
  text.setAttribute("role", "status");
  text.textContent = told;
  again.type = "button";
  again.className = "button primary";
  again.textContent = then;
  again.addEventListener("click", () => location.reload());
  main.append(text, again);
  document.title = text.textContent;
  document.body.className = "bare";
  document.body.replaceChildren(main);
  document.dispatchEvent(new CustomEvent("panel:cleared"));
  return true;
}

export function leaving() {
  tabs?.addEventListener("message", (event) => clear(event.data));
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || !("leaves" in event.target.dataset)) return;
    setTimeout(() => clearAll({ hasSignedOut: true })); // after the form has been sent
  });
}

// Takes what a page shows away when its session ends: at once where somebody signs out, in all tabs of this browser, and whether the
// service can be reached or not.
import { t } from "./language.js";
import { isEdited } from "./unsaved.js";

const tabs = "BroadcastChannel" in window ? new BroadcastChannel("trellis-session") : null;
const isBare = () => document.body.classList.contains("bare"); // it shows nothing of the community

// Clears the page, and those in other tabs. One on which something typed is not saved stays, unless somebody has signed out.
// Returns whether nothing of the community is shown now.
export function clearAll({ hasSignedOut = false } = {}) {
  tabs?.postMessage({ hasSignedOut });
  return clear(hasSignedOut);
}

function clear(hasSignedOut) {
  if (isBare()) return true;
  if (!hasSignedOut && isEdited(document)) return false;
  const main = document.createElement("main");
  const text = document.createElement("p");
  const again = document.createElement("button");
  main.className = "gate";
  text.setAttribute("role", "status");
  text.textContent = t("You are signed out.");
  again.type = "button";
  again.className = "button primary";
  again.textContent = t("Sign in");
  again.addEventListener("click", () => location.reload());
  main.append(text, again);
  document.title = text.textContent;
  document.body.className = "bare";
  document.body.replaceChildren(main);
  document.dispatchEvent(new CustomEvent("panel:cleared"));
  return true;
}

export function leaving() {
  tabs?.addEventListener("message", (event) => clear(event.data.hasSignedOut));
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || !("leaves" in event.target.dataset)) return;
    setTimeout(() => clearAll({ hasSignedOut: true })); // when the form is on its way
  });
}

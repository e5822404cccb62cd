// Keeps *Back* usable.
import { isFilledIn } from "./unsaved.js";

// The browser can show the answer to a form again only by sending the form again, which it asks about, or shows an error. So when
// somebody continues from such an answer, its entry in the history is replaced by a page that can be opened: by what the form that they
// send returns to (data-returns), such as the list before a preview, or by the empty form (on the body).
export function replaceAnswer({ returns } = document.body.dataset) {
  if (!returns) return;
  history.replaceState(history.state, "", returns);
  // The browser restores what was typed, as far as it differs from what the page came with: the answer came with all of it.
  for (const control of document.querySelectorAll("[data-typed] :is(input, textarea)")) {
    if (["hidden", "checkbox", "radio", "file"].includes(control.type)) continue;
    const { value } = control;
    control.defaultValue = "";
    control.value = value;
  }
}

// A form that creates something (data-creates) comes back with what was typed, but with a new token, with which it would create a
// second one. So the entry in the history keeps the token that was sent. A link to the form leads to a new entry. Where the browser has
// restored nothing, as Firefox and mostly Safari do, the form is a new one.
const tokenOf = (form) => form?.querySelector("[name=_submission]");

function restoreToken() {
  const form = document.querySelector("form[data-creates]");
  const { submission, wasFilledIn } = history.state ?? {};
  const type = performance.getEntriesByType("navigation")[0]?.type;
  if (form && type === "back_forward" && submission && wasFilledIn === isFilledIn(form)) tokenOf(form).value = submission;
}

export function returning() {
  restoreToken();
  addEventListener("pageshow", restoreToken, { once: true }); // the browser may have restored more by then
  document.addEventListener("submit", ({ defaultPrevented, target }) => {
    if (defaultPrevented) return;
    const wasFilledIn = isFilledIn(target);
    replaceAnswer("returns" in target.dataset ? target.dataset : undefined);
    if ("creates" in target.dataset) history.replaceState({ ...history.state, submission: tokenOf(target).value, wasFilledIn }, "");
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]:not([target], [download])");
    const isAside = event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (link && !isAside && !link.getAttribute("href").startsWith("#")) replaceAnswer();
  });
}

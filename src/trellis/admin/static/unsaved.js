// Asks for confirmation before somebody leaves a page with unsaved input, or with a secret that was not copied.
import { t } from "./language.js";
import { say } from "./messages.js";

const FORMS = "form[method=post]:not(.inline)";
let sent = null; // the form that is being sent

// Returns whether the value of a control has changed since the page was loaded.
function isChanged(control) {
  if (["hidden", "search", "submit", "button", "file"].includes(control.type) || control.autocomplete === "current-password") return false;
  if (control.type === "checkbox" || control.type === "radio") return control.checked !== control.defaultChecked;
  if (control.options) {
    const first = Math.max(0, [...control.options].findIndex((option) => option.defaultSelected));
    return control.selectedIndex !== first;
  }
  return "defaultValue" in control && control.value !== control.defaultValue;
}

export function isEdited(root) {
  const forms = root.matches?.(FORMS) ? [root] : [...root.querySelectorAll(FORMS)];
  return forms.some((form) => form !== sent && isFilledIn(form));
}

export const isFilledIn = (form) => isTyped(form) || [...form.elements].some(isChanged);

// Returns whether a form contains input although no control has changed: the answer to a refused form is loaded with that input.
function isTyped(form) {
  return Boolean(form.closest("[data-typed]")) && [...form.elements].some((control) => control.name && control.type !== "hidden" && control.type !== "submit");
}

// Returns sentences about a form that has stayed, and that what was typed into it has stayed, if anything was.
export const tellKept = (form, ...told) => [...told, ...(isEdited(form) ? [t("What you typed is still here.")] : [])].join(" ");

const uncopied = () => [...document.querySelectorAll("[data-secret]:not([data-kept])")];

// Marks the secrets that a copied text contains as copied.
export function markCopied(text) {
  for (const secret of uncopied()) if (text.includes(secret.textContent)) secret.dataset.kept = "";
}

export function guard() {
  if (document.body.classList.contains("bare")) return;
  document.addEventListener("submit", (event) => {
    if (!event.defaultPrevented && event.target.method === "post") sent = event.target;
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-cancel], a[data-copied]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if ("copied" in link.dataset) uncopied().forEach((secret) => (secret.dataset.kept = ""));
    else sent = link.closest("form");
  });
  document.addEventListener("copy", () => markCopied(String(getSelection())));
  addEventListener("pageshow", () => (sent = null));
  document.addEventListener("panel:stayed", () => (sent = null));
  addEventListener("beforeunload", (event) => {
    const secrets = uncopied().length;
    if (!secrets && !isEdited(document)) return;
    event.preventDefault();
    sent = null;
    setTimeout(() => {
      if (secrets) say(t("This has not been copied yet and cannot be shown again."), { bad: true });
      document.dispatchEvent(new CustomEvent("panel:stayed"));
    }, 500);
  });
}

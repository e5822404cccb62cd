// Opens the page behind a link with data-dialog as a dialog on this page: its heading and the content of its <main>.
// Without scripts, or if the answer is another page, the link leads to the page itself.
import { t } from "./language.js";
import { fields } from "./fields.js";
import { hide } from "./messages.js";
import { askPage, attempt } from "./requests.js";
import { isEdited } from "./unsaved.js";

const REFERENCES = ["for", "aria-describedby", "aria-labelledby", "data-copy", "data-twin"];
let asked = null; // the link whose page is being fetched

export function dialogs(root) {
  for (const link of [...(root.matches?.("a[data-dialog]") ? [root] : []), ...root.querySelectorAll("a[data-dialog]")]) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      attempt(() => open(link), { otherwise: link.href });
    });
  }
}

async function open(link) {
  if (asked === link || document.querySelector("dialog[open]")) return;
  asked = link;
  let page;
  try {
    page = await askPage(link, link.href);
  } finally {
    if (asked !== link) return; // another link was pressed since
    asked = null;
  }
  if (page === null || document.querySelector("dialog[open]")) return;
  show(link, new DOMParser().parseFromString(page, "text/html").querySelector("main"));
}

function show(link, main) {
  const dialog = document.createElement("dialog");
  const heading = main.querySelector("h1");
  heading.id = "dialog-title";
  heading.tabIndex = -1;
  dialog.setAttribute("aria-labelledby", heading.id);
  main.querySelector(".head")?.remove();
  dialog.append(heading, ...main.childNodes);
  rename(dialog);
  for (const form of dialog.querySelectorAll("form:not([action])")) form.action = link.href;
  for (const cancel of dialog.querySelectorAll("a[data-cancel]")) {
    cancel.addEventListener("click", (event) => {
      event.preventDefault();
      dialog.close();
    });
  }
  dialog.addEventListener("close", () => {
    const message = dialog.querySelector("[data-message]");
    if (message) document.body.append(message);
    if (message?.querySelector("button")) hide(); // it would send again what is closed now
    dialog.remove();
    link.focus();
  });
  dialog.addEventListener("cancel", (event) => {
    if (!mayClose(dialog)) event.preventDefault();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog && mayClose(dialog)) dialog.close();
  });
  document.body.append(dialog);
  fields(dialog);
  dialog.showModal();
  heading.focus(); // an Enter too many presses nothing; of themselves, Firefox and Safari would choose the first control
  document.dispatchEvent(new CustomEvent("panel:shown", { detail: dialog }));
}

const mayClose = (dialog) => !isEdited(dialog) || confirm(t("Close and discard what you typed?"));

// Renames ids that also occur on the page below the dialog.
function rename(dialog) {
  const names = new Map();
  for (const one of dialog.querySelectorAll("[id]")) {
    if (!document.getElementById(one.id)) continue;
    names.set(one.id, `dialog-${one.id}`);
    one.id = `dialog-${one.id}`;
  }
  if (!names.size) return;
  for (const name of REFERENCES) {
    for (const one of dialog.querySelectorAll(`[${name}]`)) {
      one.setAttribute(name, one.getAttribute(name).split(" ").map((id) => names.get(id) ?? id).join(" "));
    }
  }
  for (const one of dialog.querySelectorAll('a[href^="#"]')) {
    const id = one.getAttribute("href").slice(1);
    if (names.has(id)) one.setAttribute("href", `#${names.get(id)}`);
  }
}

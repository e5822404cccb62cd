// Opens the page behind a link with data-dialog as a dialog on this page: its heading and what stands in its <main>.
// Without scripts, or when the page cannot be fetched, the link leads to the page itself.
import { fields } from "./fields.js";
import { times } from "./times.js";

export function dialogs(root) {
  for (const link of root.querySelectorAll("a[data-dialog]")) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      open(link);
    });
  }
}

async function open(link) {
  let main;
  try {
    const answer = await fetch(link.href, { credentials: "same-origin" });
    if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
    main = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
  } catch {
    location.assign(link.href);
    return;
  }
  const dialog = document.createElement("dialog");
  const heading = main.querySelector("h1");
  heading.id = "dialog-title";
  dialog.setAttribute("aria-labelledby", heading.id);
  main.querySelector(".head")?.remove();
  dialog.append(heading, ...main.childNodes);
  for (const form of dialog.querySelectorAll("form:not([action])")) form.action = link.href;
  for (const cancel of dialog.querySelectorAll("a[data-cancel]")) {
    cancel.addEventListener("click", (event) => {
      event.preventDefault();
      dialog.close();
    });
  }
  dialog.addEventListener("close", () => {
    dialog.remove();
    link.focus();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  times(dialog);
  fields(dialog);
  dialog.showModal();
  document.dispatchEvent(new CustomEvent("panel:shown", { detail: dialog }));
}

// What every page loads. Every page works without it.
import { dialogs } from "./dialogs.js";
import { fields } from "./fields.js";
import { times } from "./times.js";
import { working } from "./working.js";

times(document);
fields(document);
dialogs(document);
document.querySelector("[data-focus]")?.focus();

for (const form of document.querySelectorAll("form[data-asks]")) {
  form.addEventListener("submit", (event) => {
    if (!confirm(form.dataset.asks)) event.preventDefault();
  });
}

working(document); // last: it disables no form that was cancelled

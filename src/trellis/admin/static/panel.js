// The script that every page loads. Every page works without it.
import { dialogs } from "./dialogs.js";
import { fields } from "./fields.js";
import { leaving } from "./leaving.js";
import { live } from "./live.js";
import { announceFlash } from "./messages.js";
import { palette } from "./palette.js";
import { ranging } from "./ranging.js";
import { returning } from "./returning.js";
import { tellZone, tick } from "./times.js";
import { unanswered } from "./unanswered.js";
import { guard } from "./unsaved.js";
import { working } from "./working.js";

tellZone();
tick();
fields(document);
ranging();
dialogs(document);
palette();
announceFlash();
document.querySelector("[data-focus]")?.focus();

for (const form of document.querySelectorAll("form[data-asks]")) {
  form.addEventListener("submit", (event) => {
    if (!confirm(form.dataset.asks)) event.preventDefault();
  });
}

working(document); // after the listeners that cancel a form, so that it holds no form that is not sent
guard(); // after these, too: it notes only forms that are sent
leaving();
returning();
live();
unanswered();

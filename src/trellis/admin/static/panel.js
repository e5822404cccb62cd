// What makes pages quicker to use. Every page works without it.
import { dialogs } from "./dialogs.js";
import { fields } from "./fields.js";
import { times } from "./times.js";

times(document);
fields(document);
dialogs(document);
document.querySelector("[data-focus]")?.focus();

for (const form of document.querySelectorAll("form[data-asks]")) {
  form.addEventListener("submit", (event) => {
    if (!confirm(form.dataset.asks)) event.preventDefault();
  });
}

// A second press sends nothing twice; coming back by the back button makes the buttons work again.
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method !== "post") return;
  const buttons = event.target.querySelectorAll("button");
  setTimeout(() => buttons.forEach((button) => (button.disabled = true)));
});
addEventListener("pageshow", (event) => {
  if (event.persisted) document.querySelectorAll("button:disabled").forEach((button) => (button.disabled = false));
});

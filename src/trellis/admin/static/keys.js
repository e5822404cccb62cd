// The list of keys, the grid of grants, the description of what a key will be able to do, and the page that shows a key.
// All of them work without this script: the buttons send the form.
import { t } from "./language.js";
import { ask, attempt, Failure } from "./requests.js";
import { selecting } from "./selecting.js";

document.querySelectorAll("[data-many]").forEach(selecting);

const PAUSE = 150; // ms from a change to the request for the new description
for (const grid of document.querySelectorAll("[data-grants]")) {
  const boxes = [...grid.querySelectorAll("input[name=grants][type=checkbox]")];
  const count = grid.querySelector("[data-grants-count]");
  const showCount = () => {
    count.textContent = t("{count} of {all} operations ticked", { count: boxes.filter((box) => box.checked).length, all: grid.dataset.all });
  };
  const boxesOf = {
    all: () => boxes,
    read: () => boxes.filter((box) => "reads" in box.dataset),
    none: () => [],
    row: (name) => boxes.filter((box) => box.dataset.row === name),
    column: (name) => boxes.filter((box) => box.dataset.column === name),
  };
  for (const button of grid.querySelectorAll("[data-tick]")) {
    button.addEventListener("click", (event) => {
      event.preventDefault();
      const [what, name] = button.dataset.tick.split(":");
      const chosen = boxesOf[what](name);
      if (name === undefined) boxes.forEach((box) => (box.checked = chosen.includes(box)));
      else {
        const full = chosen.every((box) => box.checked);
        chosen.forEach((box) => (box.checked = !full));
      }
      grid.dispatchEvent(new Event("change", { bubbles: true }));
    });
  }
  grid.addEventListener("change", showCount);
  showCount();
  addEventListener("pageshow", showCount); // the browser may have restored the ticks from before
}

// A form with a starting point already has a name: select it, so that it can be kept or typed over.
if (document.activeElement === document.body) document.querySelector("form[data-begun] [name=name]")?.select();

// Describes what the key would be able to do with the current form; only the newest answer counts.
for (const region of document.querySelectorAll("[data-abilities]")) {
  const form = region.closest("form");
  let waiting;
  let shown = null;
  const describe = async () => {
    const body = new URLSearchParams(new FormData(form)).toString();
    if (body === shown) return;
    const answer = await ask(region, region.dataset.abilities, { newest: true, method: "POST", body: new URLSearchParams(body) });
    if (answer?.status === 401) throw new Failure(t("You are signed out."));
    if (!answer?.ok) return; // faults in the form are reported when it is sent
    shown = body;
    const said = new DOMParser().parseFromString(answer.text, "text/html").body;
    if (said.textContent.trim().replace(/\s+/g, " ") !== region.textContent.trim().replace(/\s+/g, " ")) region.replaceChildren(...said.childNodes);
  };
  const later = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => attempt(describe, { what: t("The summary of what the key will be able to do is out of date.") }), PAUSE);
  };
  form.addEventListener("change", later);
  form.addEventListener("input", later);
}

// A key that was shown is removed when the page is left, even if the browser keeps the page for the back button.
addEventListener("pagehide", () => {
  for (const part of document.querySelectorAll("[data-once]")) {
    part.querySelectorAll(".notice, .field, details").forEach((one) => one.remove());
    part.querySelector("[data-hidden-note]")?.removeAttribute("hidden");
  }
});

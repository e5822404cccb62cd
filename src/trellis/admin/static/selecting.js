// Choosing several rows of a tree or list: by ticks, ranges with Shift, or keyboard. A bar shows how many and what can be done.
import { t } from "./language.js";
import { between } from "./ranging.js";
import { isAlone } from "./single.js";

export function selecting(bar) {
  const boxes = () => [...document.querySelectorAll(`input[name="ids"][form="${bar.id}"]`)].filter((box) => box.offsetParent !== null);
  const chosen = () => document.querySelectorAll(`input[name="ids"][form="${bar.id}"]:checked`);
  const [one, several] = bar.dataset.of.split("|");
  const most = Number(bar.dataset.most); // rows that can be changed at once
  const view = { bar, boxes, chosen, last: null };
  bar.classList.add("live");
  const count = () => {
    const number = chosen().length;
    bar.hidden = !number;
    const chosenOnes = t("{count} {noun} chosen", { count: number, noun: number === 1 ? one : several });
    const words = number > most ? t("{chosen}; at most {most} at once", { chosen: chosenOnes, most }) : chosenOnes;
    const text = bar.querySelector("[data-count]");
    if (text.textContent !== words) text.textContent = words;
  };
  const set = (wanted, on) => {
    wanted.forEach((box) => (box.checked = on));
    count();
  };
  document.addEventListener("click", (event) => {
    const box = event.target.closest(`input[form="${bar.id}"]`);
    if (!box) return;
    if (event.shiftKey && view.last?.isConnected) set(between(boxes(), view.last, box), box.checked);
    view.last = box;
    count();
  });
  document.addEventListener("change", (event) => event.target.form === bar && count());
  document.addEventListener("keydown", (event) => press(view, event, set), true);
  for (const [name, on] of [["all", true], ["none", false]]) {
    const button = bar.querySelector(`[data-${name}]`);
    button.hidden = false;
    button.addEventListener("click", () => {
      set(on ? boxes() : [...chosen()], on);
      if (!on) boxes()[0]?.focus();
    });
  }
  bar.addEventListener("formdata", ({ formData }) => {
    formData.set("ids", [...chosen()].map((box) => box.value).join(","));
    formData.set("_from", location.pathname + location.search); // a tree keeps its open nodes in the address
  });
  document.addEventListener("panel:merged", count); // a chosen row may have gone
  addEventListener("pageshow", count); // the browser restores the ticks that the page had when it was left
  count();
}

// In a form for many nodes, changing a field also ticks the box that sets it.
export function setting(part) {
  part.addEventListener("input", ({ target }) => {
    if (!target.name.startsWith("_set.")) part.querySelector(".pick input").checked = true;
  });
}

// Narrows a list of boxes to those whose names contain the text, and those that are ticked.
export function narrowing(list) {
  const search = list.querySelector(".search");
  search.hidden = false;
  const input = search.querySelector("input");
  input.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLocaleLowerCase();
    for (const label of list.querySelectorAll("label")) label.hidden = !label.textContent.toLocaleLowerCase().includes(wanted) && !label.querySelector("input").checked;
  });
}

function press(view, event, set) {
  if (event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  const row = event.target.closest(".node, tr[data-row]");
  const box = row?.querySelector(".pick input");
  const isTyping = event.target.matches("input:not([type=checkbox]), select, textarea");
  if (isTyping || (!box && event.key !== "Escape")) return;
  if (event.key === "Escape") {
    if (!document.querySelector(".taken")) set([...view.chosen()], false); // also those below closed nodes
  } else if (event.key.toLowerCase() === "a" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    set(view.boxes(), true);
  } else if (event.ctrlKey || event.metaKey) return;
  else if (event.key.toLowerCase() === "x" && isAlone()) {
    event.preventDefault();
    view.last = box;
    set([box], !box.checked);
  } else if (event.shiftKey && ["ArrowDown", "ArrowUp"].includes(event.key)) {
    const all = view.boxes();
    const next = all[all.indexOf(box) + (event.key === "ArrowDown" ? 1 : -1)];
    event.preventDefault();
    event.stopPropagation();
    set(next ? [box, next] : [box], true);
    next?.closest(".node, tr").querySelector("a.node-name, th a")?.focus();
  }
}

// Pickers show matches as somebody types. In a form that moves a node, choosing a parent shows its children.
import { t } from "./language.js";
import { askJson, askPage, attempt } from "./requests.js";

export function forms(root) {
  for (const picker of root.querySelectorAll("[data-picker]")) search(picker);
  for (const form of root.querySelectorAll("form[data-move]")) moving(form);
}

function search(picker) {
  const input = picker.querySelector("input[type=search]");
  const status = picker.querySelector("[role=status]");
  let waiting;
  picker.querySelector(".find button").hidden = true;
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault();
  });
  const find = async () => {
    const wanted = input.value;
    const found = await askJson(input, `${picker.dataset.source}&search=${encodeURIComponent(wanted)}`, { newest: true });
    if (found) show(picker, found, status, wanted);
  };
  const findSoon = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => attempt(find), 120);
  };
  input.addEventListener("input", findSoon);
  if (input.value !== input.defaultValue) findSoon(); // typed before this script had come
  picker.querySelector(`input[name^="_searched."]`).disabled = true; // otherwise the service would answer with a search instead of saving
}

function show(picker, { results, more }, status, wanted) {
  const name = picker.dataset.picker;
  const options = picker.querySelector(".options");
  for (const label of [...options.children]) {
    const box = label.querySelector("input");
    if (box.value !== "" && !box.checked) label.remove();
  }
  for (const one of results) {
    if (options.querySelector(`input[value="${one.id}"]`)) continue;
    const label = document.createElement("label");
    const box = Object.assign(document.createElement("input"), { type: "radio", name, value: one.id });
    const text = document.createElement("span");
    text.append(one.name);
    if (one.path) text.append(" ", Object.assign(document.createElement("small"), { className: "quiet", textContent: t("in {path}", { path: one.path }) }));
    label.append(box, text);
    options.append(label);
  }
  const none = more ? t("The first matches cannot be chosen here. Type more letters to narrow the search.") : t("No matches.");
  status.textContent = wanted && !results.length ? none : more ? t("{count} more. Keep typing to narrow the list.", { count: more }) : wanted ? t("{count} found.", { count: results.length }) : "";
}

function moving(form) {
  form.addEventListener("change", async (event) => {
    if (event.target.name === "sibling") {
      const chosen = form.querySelector('input[name="place"]:checked');
      if (!["before", "after"].includes(chosen?.value)) form.querySelector('input[value="before"]').checked = true;
    }
    if (event.target.name !== "parentId") return;
    attempt(() => look(form));
  });
}

// Shows the children of the chosen parent; only the newest choice counts.
async function look(form) {
  const body = new URLSearchParams(new FormData(form));
  body.set("_action", "look");
  const text = await askPage(form.querySelector("#place, #dialog-place"), form.action, { method: "POST", body, newest: true });
  const place = text && new DOMParser().parseFromString(text, "text/html").querySelector("#place");
  if (place) form.querySelector("#place, #dialog-place").replaceChildren(...place.childNodes);
}

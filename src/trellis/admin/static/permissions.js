// The grid of permissions, with a row for each group and a column for each option. It is rebuilt from the ticks, so that groups with the
// same rights share a row, rows unfold, groups are found by name, and a form with hundreds of groups sends one field for each option.
import { t } from "./language.js";
import { say } from "./messages.js";
import { askJson, attempt } from "./requests.js";

export function grids(root) {
  for (const table of root.querySelectorAll("[data-may]")) grid(table);
}

function grid(table) {
  const form = table.closest("form");
  const part = table.closest("fieldset");
  const view = { table, part, ...read(table), apart: new Set(), query: "" };
  const search = part.querySelector('input[name="_filter"]');
  part.querySelector("[data-filter]")?.remove();
  part.querySelector('input[name="_filtered"]')?.remove();
  search?.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
  search?.addEventListener("input", () => find(view, search.value));
  part.querySelector("[data-fold]")?.addEventListener("click", () => {
    view.apart.clear();
    build(view);
    part.querySelector(".may .folded button")?.focus();
  });
  table.addEventListener("change", ({ target }) => {
    tick(view, target.dataset.option, target.dataset.groups, target.checked);
    show(view);
  });
  table.addEventListener("click", ({ target }) => target.matches("button.tick") && press(view, target));
  form.addEventListener("formdata", ({ formData }) => {
    for (const option of view.options) {
      const rights = view.rights.get(option);
      formData.set(`${table.dataset.may}.${option}`, rights.everyone ? "*" : [...rights.groups].join(","));
    }
    formData.delete("_apart");
    formData.delete("_filter");
  });
  for (const button of part.parentElement.querySelectorAll("[data-copy-permissions]")) {
    button.addEventListener("click", (event) => {
      event.preventDefault();
      attempt(() => copy(view, button));
    });
  }
  for (const cell of table.tHead.rows[0].querySelectorAll("[data-option]")) {
    cell.append(small(t("All"), t("All groups individually: {option}", { option: cell.querySelector("span").textContent }), { column: cell.dataset.option }));
  }
  view.query = search?.value.trim() ?? "";
  build(view);
}

// Reads the page as it was loaded: the options, the groups, and the rights of the groups. `first` keeps these rights for comparison.
function read(table) {
  const options = [...table.tHead.querySelectorAll("[data-option]")].map((cell) => cell.dataset.option);
  const groups = [...table.tBodies[0].querySelectorAll("[data-group]")].map((one) => ({ id: one.dataset.group, name: one.textContent, builtIn: "builtIn" in one.dataset }));
  groups.sort((a, b) => b.builtIn - a.builtIn || a.id - b.id);
  const rights = new Map(options.map((option) => [option, { everyone: false, groups: new Set() }]));
  for (const box of table.tBodies[0].querySelectorAll("input[type=checkbox]:checked")) {
    const right = rights.get(box.name.slice(table.dataset.may.length + 1));
    if (box.value === "*") right.everyone = true;
    else box.value.split(",").forEach((id) => right.groups.add(id));
  }
  const first = new Map([...rights].map(([option, right]) => [option, { everyone: right.everyone, groups: new Set(right.groups) }]));
  return { options, groups, rights, first };
}

const signature = (view, group) => view.options.filter((option) => view.rights.get(option).groups.has(group.id)).join(" ");
const fits = (view, group) => group.name.toLocaleLowerCase().includes(view.query.toLocaleLowerCase());

function label(view, groups) {
  const names = groups.map((group) => group.name);
  const named = Number(view.table.dataset.named); // how many of them are named
  if (names.length <= named + 1) return names.join(", ");
  return t("{names} and {count} more", { names: names.slice(0, named).join(", "), count: names.length - named });
}

// Returns the rows. Groups with the same rights share one, except built-in groups, unfolded groups and groups that a search finds.
function arrange(view) {
  const folds = "folds" in view.table.dataset;
  const rows = new Map();
  for (const group of view.groups) {
    const isOwn = !folds || group.builtIn || view.apart.has(group.id) || (view.query && fits(view, group));
    const key = isOwn ? group.id : `same ${signature(view, group)}`;
    if (!rows.has(key)) rows.set(key, []);
    rows.get(key).push(group);
  }
  const isIdle = (groups) => groups.length > 1 && !signature(view, groups[0]);
  return [...rows.values()].sort((a, b) => isIdle(a) - isIdle(b));
}

function build(view) {
  const body = view.table.tBodies[0];
  const rows = arrange(view);
  body.replaceChildren(allRow(view), ...rows.map((groups) => row(view, groups)));
  const fold = view.part.querySelector("[data-fold]");
  if (fold) fold.hidden = !view.apart.size;
  const found = view.part.querySelector("[data-found]");
  if (found) {
    const count = view.query ? view.groups.filter((group) => fits(view, group)).length : 0;
    found.textContent = view.query ? (count ? t("{count} of {all} groups", { count, all: view.groups.length }) : t("No matching groups.")) : "";
  }
  show(view);
}

function allRow(view) {
  const made = document.createElement("tr");
  made.className = "all";
  const head = heading();
  head.append(text("span", t("Every group")), text("small", t("and those created later")));
  made.append(head, ...view.options.map((option) => cell(view, option, "*", t("Every group"))));
  return made;
}

function row(view, groups) {
  const made = document.createElement("tr");
  const head = heading();
  const around = document.createElement("div");
  around.className = "who-may";
  const name = label(view, groups);
  const ids = groups.map((group) => group.id).join(",");
  if (groups.length > 1) {
    made.className = "folded";
    const list = document.createElement("ul");
    list.append(...groups.map((group) => text("li", group.name)));
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.append(text("span", name));
    details.append(summary, list);
    around.append(details, small(t("Unfold"), t("Unfold {name}", { name }), { unfold: ids }));
  } else around.append(text("span", name), small(t("All"), t("All options: {name}", { name }), { row: ids }));
  head.append(around);
  made.append(head, ...view.options.map((option) => cell(view, option, ids, name)));
  made.hidden = Boolean(view.query) && !groups.some((group) => fits(view, group));
  return made;
}

function heading() {
  const head = document.createElement("th");
  head.scope = "row";
  return head;
}

const text = (name, words) => Object.assign(document.createElement(name), { textContent: words });

function cell(view, option, groups, name) {
  const made = document.createElement("td");
  const around = document.createElement("label");
  // Without autocompletion: after the back button, the browser would tick boxes that the form does not send as ticked.
  const box = Object.assign(document.createElement("input"), { type: "checkbox", name: `${view.table.dataset.may}.${option}`, value: groups, autocomplete: "off" });
  const title = view.table.querySelector(`th[data-option="${option}"] span`)?.textContent ?? option;
  box.setAttribute("aria-label", `${name}: ${title}`);
  box.dataset.option = option;
  box.dataset.groups = groups;
  around.append(box);
  made.append(around);
  return made;
}

function small(words, about, data) {
  const button = text("button", words);
  button.type = "button";
  button.className = "tick";
  button.setAttribute("aria-label", about);
  Object.assign(button.dataset, data);
  return button;
}

function tick(view, option, groups, on) {
  const right = view.rights.get(option);
  if (groups === "*") right.everyone = on;
  else for (const id of groups.split(",")) on ? right.groups.add(id) : right.groups.delete(id);
}

// Ticks the boxes according to the rights. A box counts as changed (see unsaved.js) if the right of any of its groups has changed.
function show(view) {
  for (const box of view.table.tBodies[0].querySelectorAll("input[type=checkbox]")) {
    const { option, groups } = box.dataset;
    const [right, first] = [view.rights.get(option), view.first.get(option)];
    if (groups === "*") {
      box.checked = right.everyone;
      box.defaultChecked = first.everyone;
      box.checked = right.everyone;
      continue;
    }
    const ids = groups.split(",");
    const on = right.everyone || right.groups.has(ids[0]);
    box.defaultChecked = right.everyone || ids.every((id) => first.groups.has(id) === on) ? on : !on;
    box.checked = on;
    box.disabled = right.everyone;
    box.closest("td").classList.toggle("everyone", right.everyone);
  }
  const seen = view.part.querySelector("[data-nobody]");
  const right = view.rights.get(seen.dataset.nobody);
  seen.hidden = right.everyone || right.groups.size > 0;
}

function press(view, button) {
  const { unfold, row: own, column } = button.dataset;
  if (unfold) {
    unfold.split(",").forEach((id) => view.apart.add(id));
    build(view);
    view.table.querySelector(`input[data-groups="${unfold.split(",")[0]}"]:not(:disabled)`)?.focus();
    return;
  }
  const wanted = own
    ? view.options.filter((option) => !view.rights.get(option).everyone).map((option) => [option, own])
    : [...view.table.querySelectorAll(`tr:not(.all):not([hidden]) input[data-option="${column}"]:not(:disabled)`)].map((box) => [column, box.dataset.groups]);
  const has = ([option, groups]) => groups.split(",").every((id) => view.rights.get(option).groups.has(id));
  const on = !wanted.every(has);
  for (const [option, groups] of wanted) tick(view, option, groups, on);
  show(view);
}

function find(view, wanted) {
  view.query = wanted.trim();
  build(view);
}

// Fills in the grid from another node without loading a page.
async function copy(view, button) {
  const chosen = button.form.querySelector('input[name="_copy"]:checked');
  if (!chosen) {
    button.form.querySelector('input[name="_search._copy"]').focus();
    return;
  }
  const record = await askJson(button, button.dataset.copyPermissions + chosen.value);
  if (!record) return;
  for (const option of view.options) {
    const who = record.permissions[option];
    view.rights.set(option, { everyone: who === "*", groups: new Set(who === "*" ? [] : who.map(String)) });
  }
  build(view);
  say(t("The grid is filled in but not saved yet."));
}

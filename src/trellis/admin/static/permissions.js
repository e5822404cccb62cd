// The grid of permissions: buttons that tick a row or column, and 'every group', which overrides the single groups.
import { say } from "./messages.js";
import { askJson, attempt } from "./requests.js";

export function grids(root) {
  for (const table of root.querySelectorAll("[data-may]")) grid(table);
  for (const button of root.querySelectorAll("[data-copy-permissions]")) {
    button.addEventListener("click", (event) => {
      event.preventDefault();
      attempt(() => copy(button));
    });
  }
}

const singles = (row) => [...row.querySelectorAll("td:not(.all) input[type=checkbox]")];

function grid(table) {
  const rows = [...table.tBodies[0].rows];
  table.addEventListener("change", () => follow(table));
  for (const row of rows) {
    const name = row.cells[0].querySelector("span").textContent;
    row.cells[0].querySelector("span").before(tick(`All groups one by one: ${name}`, () => toggle(singles(row).filter((box) => !box.disabled), table)));
  }
  [...table.tHead.rows[0].cells].slice(1).forEach((cell, index) => {
    const boxes = () => rows.map((row) => row.cells[index + 1].querySelector("input[type=checkbox]")).filter((box) => !box.disabled);
    cell.append(tick(`All options: ${cell.textContent}`, () => toggle(boxes(), table)));
  });
  follow(table);
}

function tick(label, act) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "tick";
  button.textContent = "All";
  button.setAttribute("aria-label", label);
  button.addEventListener("click", act);
  return button;
}

function toggle(boxes, table) {
  const on = boxes.some((box) => !box.checked);
  boxes.forEach((box) => (box.checked = on));
  follow(table);
}

function follow(table) {
  for (const row of table.tBodies[0].rows) {
    const everyone = row.querySelector(".all input[type=checkbox]").checked;
    row.classList.toggle("everyone", everyone);
    singles(row).forEach((box) => (box.disabled = everyone));
  }
}

// Fills the grid from another node without a new page.
async function copy(button) {
  const form = button.form;
  const chosen = form.querySelector('input[name="_copy"]:checked');
  if (!chosen) {
    form.querySelector('input[name="_search._copy"]').focus();
    return;
  }
  const record = await askJson(button, button.dataset.copyPermissions + chosen.value);
  if (!record) return;
  const table = form.querySelector("[data-may]");
  for (const row of table.tBodies[0].rows) {
    const who = record.permissions[row.dataset.option];
    for (const box of row.querySelectorAll("input[type=checkbox]")) {
      box.checked = who === "*" ? box.value === "*" : who.includes(Number(box.value));
    }
  }
  follow(table);
  say("The grid is filled in. It is not saved yet.");
}

// The tree: opens levels without a new page, moves the focus by arrows, and moves nodes by dragging and by the keyboard.
import { dialogs } from "./dialogs.js";
import { dragging } from "./dragging.js";
import { moving } from "./moving.js";

export function tree(list) {
  list.classList.add("live");
  const view = {
    list,
    nested: "nested" in list.dataset,
    rows: () => [...list.querySelectorAll(".node")].filter((node) => node.offsetParent !== null),
    open: (node) => open(view, node),
    close: (node) => close(view, node),
    ...announcer(),
  };
  list.addEventListener("click", (event) => click(view, event));
  list.addEventListener("keydown", (event) => walk(view, event));
  const mover = moving(view);
  dragging(view, mover);
}

// Announces what happened, at the foot of the window and to a screen reader.
function announcer() {
  const box = document.querySelector("[data-message]");
  const [words, undo] = [box.querySelector("p"), box.querySelector("[data-undo]")];
  let hiding;
  let back = null;
  undo.addEventListener("click", () => back?.());
  const announce = (text, { bad = false, undoing = null, stay = false } = {}) => {
    clearTimeout(hiding);
    box.hidden = false;
    box.classList.toggle("bad", bad);
    words.textContent = text;
    back = undoing;
    undo.hidden = !undoing;
    if (!stay) hiding = setTimeout(() => (box.hidden = true), bad || undoing ? 12_000 : 5_000);
  };
  return { announce };
}

const toggleOf = (node) => node.querySelector(":scope > .node-row > .toggle");
const isOpen = (node) => toggleOf(node)?.getAttribute("aria-expanded") === "true";

async function click(view, event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  const toggle = event.target.closest(".toggle");
  if (toggle && !("ownPage" in toggle.dataset)) {
    event.preventDefault();
    const node = toggle.closest(".node");
    if (isOpen(node)) close(view, node);
    else await open(view, node);
  }
  const more = event.target.closest("[data-more]");
  if (more) {
    event.preventDefault();
    const item = more.closest(".more");
    const { more: parent, page, depth } = more.dataset;
    const html = await fetchLevel(view, parent, page, depth);
    if (html === null) return location.assign(more.href);
    const first = put(item, html);
    item.remove();
    first?.querySelector(".node-name").focus();
  }
}

async function fetchLevel(view, parent, page, depth) {
  const query = new URLSearchParams({ page, depth, ...(parent ? { under: parent } : {}) });
  try {
    const answer = await fetch(`${view.list.dataset.path}/level?${query}`);
    return answer.ok && !answer.redirected ? await answer.text() : null;
  } catch {
    return null;
  }
}

// Inserts rows before an element (or at the end of a list) and returns the first of them.
function put(before, html, list = before.parentElement) {
  const from = document.createElement("template");
  from.innerHTML = html;
  dialogs(from.content);
  const first = from.content.querySelector(".node");
  list.insertBefore(from.content, before);
  return first;
}

async function open(view, node) {
  const toggle = toggleOf(node);
  if (!toggle || isOpen(node) || node.loading || "ownPage" in toggle.dataset) return;
  let inside = node.querySelector(":scope > ul");
  if (!inside) {
    node.loading = true; // a double click opens it once
    const html = await fetchLevel(view, node.dataset.id, "1", String(Number(node.dataset.depth) + 1));
    node.loading = false;
    if (html === null) return location.assign(toggle.href);
    inside = document.createElement("ul");
    put(null, html, inside);
    node.append(inside);
  }
  inside.hidden = false;
  toggle.setAttribute("aria-expanded", "true");
  remember(view);
}

function close(view, node) {
  const inside = node.querySelector(":scope > ul");
  if (inside) inside.hidden = true;
  toggleOf(node)?.setAttribute("aria-expanded", "false");
  remember(view);
}

// Keeps the open nodes in the address, so that reloading the page, or coming back to it, shows the same.
function remember(view) {
  const opened = view.rows().filter(isOpen).map((node) => node.dataset.id);
  const address = new URL(location.href);
  address.hash = "";
  if (opened.length) address.searchParams.set("open", opened.slice(0, 40).join(","));
  else address.searchParams.delete("open");
  history.replaceState(null, "", address.href.replaceAll("%2C", ","));
}

function walk(view, event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const node = event.target.closest(".node");
  if (!node) return;
  const rows = view.rows();
  const at = rows.indexOf(node);
  const step = { ArrowDown: rows[at + 1], ArrowUp: rows[at - 1], Home: rows[0], End: rows.at(-1) };
  if (event.key in step) go(event, step[event.key]);
  else if (view.nested && event.key === "ArrowRight") {
    if (isOpen(node)) go(event, node.querySelector(":scope > ul > .node"));
    else if (Number(node.dataset.count)) {
      event.preventDefault();
      open(view, node);
    }
  } else if (view.nested && event.key === "ArrowLeft") {
    if (isOpen(node)) {
      event.preventDefault();
      close(view, node);
    } else go(event, node.parentElement.closest(".node"));
  }
}

function go(event, node) {
  event.preventDefault();
  node?.querySelector(".node-name").focus();
}

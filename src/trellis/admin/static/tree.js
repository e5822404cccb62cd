// The tree: opens levels without loading a page, moves the focus with the arrow keys, and moves nodes by dragging and by keyboard.
import { lang } from "./language.js";
import { dialogs } from "./dialogs.js";
import { dragging } from "./dragging.js";
import { say } from "./messages.js";
import { moving } from "./moving.js";
import { askPage, attempt } from "./requests.js";

export function tree(list) {
  list.classList.add("live");
  const view = {
    list,
    nested: "nested" in list.dataset,
    mostOpen: Number(list.dataset.mostOpen), // nodes that are kept in the address
    moves: [], // those that the server has not confirmed yet
    changes: 0, // by the user, since the page was opened
    isLonger: false, // than the page at its address would be
    sending: Promise.resolve(),
    rows: () => [...list.querySelectorAll(".node")].filter((node) => node.offsetParent !== null),
    open: (node, isWanted) => attempt(() => open(view, node, isWanted), { otherwise: toggleOf(node)?.href }),
    unfold: (node) => unfold(view, node),
    announce: say,
    countTop,
  };
  list.addEventListener("click", (event) => click(view, event));
  list.addEventListener("keydown", (event) => walk(view, event));
  dragging(view, moving(view));
  addEventListener("beforeunload", (event) => view.moves.length && event.preventDefault()); // the browser asks: those that wait would be lost
  let asked = 0;
  document.addEventListener("panel:fetch", (event) => {
    asked = view.changes;
    if (view.isLonger) event.preventDefault(); // an update would remove the rows that “more” has added
  });
  document.addEventListener("panel:merge", (event) => {
    const isBusy = view.taken || view.moves.length || list.querySelector(".dragging, [aria-busy]");
    if (isBusy || asked !== view.changes) event.preventDefault(); // later: the page was requested before the last change
  });
}

// Changes the number of nodes at the top level in the sentence above the tree.
function countTop(by) {
  const shown = document.querySelector("[data-top-count]");
  if (!shown) return;
  const count = Number(shown.dataset.topCount) + by;
  shown.dataset.topCount = String(count);
  shown.textContent = count.toLocaleString(lang);
  const part = shown.closest("[data-of]");
  if (part) part.hidden = count === Number(part.dataset.of);
}

const toggleOf = (node) => node.querySelector(":scope > .node-row > .toggle");
const isOpen = (node) => toggleOf(node)?.getAttribute("aria-expanded") === "true";

function click(view, event) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  const toggle = event.target.closest(".toggle");
  if (toggle && !("ownPage" in toggle.dataset)) {
    event.preventDefault();
    const node = toggle.closest(".node");
    if (event.detail === 2) return; // a double click counts as one press, even if the answer arrives between the clicks
    if (isOpen(node)) close(view, node);
    else view.open(node);
  }
  const more = event.target.closest("[data-more]");
  if (more) {
    event.preventDefault();
    attempt(() => showMore(view, more), { otherwise: more.href });
  }
}

async function showMore(view, more) {
  const { more: parent, page, depth } = more.dataset;
  const html = await askPage(more, levelAddress(view, parent, page, depth));
  if (html === null) return;
  const item = more.closest(".more");
  const had = item.contains(document.activeElement);
  const first = put(item, html);
  item.remove();
  view.isLonger = true;
  if (had || document.activeElement === document.body) first?.querySelector(".node-name").focus();
}

function levelAddress(view, parent, page, depth) {
  return `${view.list.dataset.path}/level?${new URLSearchParams({ page, depth, ...(parent ? { under: parent } : {}) })}`;
}

// Inserts rows before an element (or at the end of a list) and returns the first of them. Nodes that are already on the page stay.
function put(before, html, list = before.parentElement) {
  const from = document.createElement("template");
  from.innerHTML = html;
  for (const node of from.content.querySelectorAll(".node")) if (document.getElementById(node.id)) node.remove();
  dialogs(from.content);
  const first = from.content.querySelector(".node");
  list.insertBefore(from.content, before);
  return first;
}

// Opens a node and returns whether it is open. Its children are fetched once for all callers, and shown if they are still wanted.
async function open(view, node, isWanted = () => true) {
  const toggle = toggleOf(node);
  if (!toggle || "ownPage" in toggle.dataset) return false;
  if (isOpen(node)) return true;
  if (!node.querySelector(":scope > ul")) {
    node.loading ??= askPage(toggle, levelAddress(view, node.dataset.id, "1", String(Number(node.dataset.depth) + 1))).finally(() => {
      node.loading = null;
    });
    const html = await node.loading;
    if (html === null || !isWanted()) return false;
    if (!node.querySelector(":scope > ul")) {
      const made = document.createElement("ul");
      put(null, html, made);
      node.append(made);
    }
  }
  unfold(view, node);
  return true;
}

// Shows the children of a node. Its toggle and the address show that it is open, unless the toggle leads to a page of the node's own.
function unfold(view, node) {
  node.querySelector(":scope > ul").hidden = false;
  const toggle = toggleOf(node);
  if ("ownPage" in toggle.dataset) return;
  toggle.setAttribute("aria-expanded", "true");
  remember(view);
}

function close(view, node) {
  const inside = node.querySelector(":scope > ul");
  if (inside) inside.hidden = true;
  toggleOf(node)?.setAttribute("aria-expanded", "false");
  remember(view);
}

// Keeps the open nodes in the address, so that the page looks the same after reloading it or coming back to it. Updates also have the
// closed nodes below which something is ticked: without them, the ticks would go.
function remember(view) {
  const opened = view.rows().filter(isOpen).map((node) => node.dataset.id);
  const ticked = [...view.list.querySelectorAll(".node:has(> ul :checked)")].map((node) => node.dataset.id);
  const updated = [...new Set([...opened, ...ticked])];
  view.changes += 1;
  if (updated.length > view.mostOpen) view.isLonger = true;
  history.replaceState(null, "", addressWith(opened.slice(0, view.mostOpen)));
  document.querySelector("main").dataset.liveFrom = addressWith(updated);
}

function addressWith(opened) {
  const address = new URL(location.href);
  address.hash = "";
  if (opened.length) address.searchParams.set("open", opened.join(","));
  else address.searchParams.delete("open");
  return address.href.replaceAll("%2C", ",");
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
      view.open(node);
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

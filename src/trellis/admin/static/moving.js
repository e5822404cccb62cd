// Moves a node in the tree: finds its place, puts it elsewhere, sends the move to the server, undoes it; and moves by keyboard.
import { lang, many, t } from "./language.js";
import { askJson, Failure } from "./requests.js";
import { isAlone } from "./single.js";

const nameOf = (node) => node.querySelector(".node-name").textContent;
const above = (node) => (node.isConnected ? node.parentElement.closest(".node") : undefined); // null at the top level

export function moving(view) {
  const mover = {
    put: (node, place) => put(view, node, place),
    settle: (node, from) => settle(view, [stepFrom(view, node, from)]),
    move: (nodes, place) => move(view, nodes, place),
  };
  view.list.addEventListener("keydown", (event) => keys(view, mover, event), true);
  view.list.addEventListener("click", (event) => {
    const handle = event.target.closest(".handle");
    if (handle && event.detail === 0) toggle(view, mover, handle.closest(".node")); // pressed with the keyboard
  });
  view.list.addEventListener("focusout", (event) => {
    if (view.taken && !view.busy && !view.taken.node.contains(event.relatedTarget)) back(view, mover, t("The node is back where it was."));
  });
  return mover;
}

function placeOf(node) {
  return { parent: above(node), list: node.parentElement, next: node.nextElementSibling, previous: node.previousElementSibling };
}

// Puts a node before `next`. If that has gone, as “more” does when more rows arrive, the node is put after `previous`.
function put(view, node, { list, next, previous }) {
  const old = above(node);
  const isNear = !next || next.parentElement === list;
  const focused = document.activeElement;
  if (list) list.insertBefore(node, isNear ? next : previous && previous.parentElement === list ? previous.nextElementSibling : null);
  else node.remove(); // back to where it was: an update has shown that it is beyond the rows of this page
  if (node.contains(focused)) focused.focus({ preventScroll: true });
  for (const [parent, by] of [[old, -1], [above(node), 1]]) if (old !== above(node)) count(view, parent, by);
}

function count(view, node, by) {
  if (node === undefined) return;
  if (!node) return view.countTop(by);
  const left = Math.max(0, Number(node.dataset.count) + by);
  node.dataset.count = String(left);
  node.querySelector(":scope > .node-row > .node-count").textContent = left ? left.toLocaleString(lang) : "";
  node.querySelector(":scope > .node-row > .toggle").classList.toggle("bare-toggle", !left);
}

const sibling = (node, which) => {
  const found = node[which];
  return found?.classList.contains("node") ? found : null;
};

// Says where a node is, or a row of nodes from the `first` to the last one.
function where(view, node, first = node) {
  const parent = above(node);
  const under = parent ? t("under “{name}”", { name: nameOf(parent) }) : view.list.dataset.top;
  const next = sibling(node, "nextElementSibling");
  const before = sibling(first, "previousElementSibling");
  const beside = next ? t("before “{name}”", { name: nameOf(next) }) : before ? t("after “{name}”", { name: nameOf(before) }) : t("alone");
  return view.nested ? `${under}, ${beside}` : beside;
}

// Moves nodes to a place, the last one first: those that are there already stay.
function move(view, nodes, { list, next }) {
  while (nodes.includes(next)) next = next.nextElementSibling;
  settle(view, [...nodes].reverse().map((node) => {
    const step = shift(view, node, { list, next });
    next = node;
    return step;
  }));
}

function shift(view, node, place) {
  const from = placeOf(node);
  put(view, node, place);
  return stepFrom(view, node, from);
}

const stepFrom = (view, node, from) => ({ node, from, to: placeOf(node), place: describe(view, node) });

// Sends the steps of a move, which are the new places of its nodes, to the server, after earlier moves. If the move is refused, its
// nodes go back, and so do nodes that were moved later, since they may have been put beside them.
function settle(view, all, undone = false) {
  const steps = all.filter(({ from, to }) => to.list !== from.list || to.next !== from.next);
  if (!steps.length) return;
  const move = { steps, undone };
  view.moves.push(move);
  view.changes += 1;
  view.sending = view.sending.catch(() => {}).then(() => view.moves.includes(move) && send(view, move));
}

function describe(view, node) {
  const parent = above(node);
  const place = view.nested ? { parentId: parent ? parent.dataset.id : view.list.dataset.under } : {};
  const next = sibling(node, "nextElementSibling");
  const before = sibling(node, "previousElementSibling");
  if (next) place.before = next.dataset.id;
  else if (before) place.after = before.dataset.id;
  return place;
}

async function send(view, move) {
  const { steps, undone } = move;
  const nodes = steps.map(({ node }) => node);
  const [node] = nodes.slice(-1);
  const others = nodes.length - 1;
  const csrf = document.querySelector("input[name=csrf]").value;
  const body = new URLSearchParams({ csrf, _version: nodes.map((one) => one.dataset.version), ...steps[0].place });
  if (others) for (const name of ["parentId", "before", "after"]) body.set(name, steps.map(({ place }) => place[name] ?? ""));
  if (others) body.set("ids", nodes.map((one) => one.dataset.id));
  try {
    const handle = node.querySelector(":scope > .node-row > .handle");
    const address = `${view.list.dataset.path}/${others ? "many/drag" : `${node.dataset.id}/move`}`;
    const result = await askJson(handle, address, { method: "POST", body });
    view.moves.splice(view.moves.indexOf(move), 1);
    view.changes += 1;
    nodes.forEach((one, at) => (one.dataset.version = result.versions[at]));
    const buttons = undone || (!others && !result.moved) ? [] : [[t("Undo"), () => undo(view, steps)]];
    const told = { name: nameOf(node), where: where(view, nodes[0], node) };
    const now = undone
      ? others ? t("They are back where they were.") : t("“{name}” is back {where}.", told)
      : others ? many(others, "“{name}” and one more are {where} now.", "“{name}” and {count} more are {where} now.", told) : t("“{name}” is {where} now.", told);
    view.announce(result.note && !undone ? `${now} ${result.note}` : now, { buttons });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const later = view.moves.length - 1;
    view.changes += 1;
    for (const one of view.moves.splice(0).flatMap((one) => one.steps).reverse()) put(view, one.node, one.from);
    const along = later ? ` ${many(later, "The next move was not sent.", "The next {count} moves were not sent.")}` : "";
    const buttons = error.refused ? [] : [[t("Try again"), () => again(view, move)]];
    const told = { name: nameOf(node) };
    const now = error.unsure
      ? others ? t("They are shown where they were, but may have moved.") : t("“{name}” is shown where it was, but may have moved.", told)
      : others ? t("They are back where they were.") : t("“{name}” is back where it was.", told);
    view.announce(`${now} ${error.message}${along}`, { bad: true, stay: buttons.length > 0, buttons });
  }
}

function again(view, { steps, undone }) {
  const nodes = steps.map(({ node }) => node);
  const isThere = ({ list, next }) => list.isConnected && (!next || next.parentElement === list || nodes.includes(next));
  if (!steps.every(({ from, to }) => isThere(to) && isThere(from))) return view.announce(t("The tree has changed in the meantime. Reload the page."), { bad: true });
  for (const { node, to } of steps) put(view, node, to);
  settle(view, steps.map(({ node, from }) => stepFrom(view, node, from)), undone);
}

// Returns a node as it is on the page now, if it is there.
const newest = (node) => (node && document.getElementById(node.id)) ?? node;

async function undo(view, steps) {
  for (const { from } of steps) {
    if (from.list.isConnected || !from.parent?.isConnected) continue;
    const place = await inside(view, from.parent); // an update has removed the list, since it was closed or its last node had gone
    if (place === undefined) return;
    if (place) Object.assign(from, { list: place.list, next: newest(from.next), previous: newest(from.previous) });
  }
  if (!steps.every(({ from }) => from.list.isConnected)) return view.announce(t("The tree has changed in the meantime. Reload the page."), { bad: true });
  settle(view, [...steps].reverse().map(({ node, from }) => shift(view, node, from)), true);
}

// --- by keyboard ----------------------------------------------------------------------------------------------------

function toggle(view, mover, node) {
  if (view.taken) down(view, mover);
  else {
    view.taken = { node, from: placeOf(node) };
    node.classList.add("taken");
    view.announce(t("You are moving “{name}”. Use the arrow keys to move it, Enter to drop it or Escape to put it back.", { name: nameOf(node) }), { stay: true });
  }
}

function down(view, mover) {
  const { node, from } = release(view);
  if (node.parentElement === from.list && node.nextElementSibling === from.next) view.announce(t("“{name}” stays where it was.", { name: nameOf(node) }));
  else mover.settle(node, from);
}

function release(view) {
  const taken = view.taken;
  view.taken = null;
  taken.node.classList.remove("taken");
  return taken;
}

function back(view, mover, message) {
  const { node, from } = release(view);
  mover.put(node, from);
  view.announce(message);
}

async function keys(view, mover, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const node = event.target.closest(".node");
  if (!view.taken) {
    if (node?.querySelector(":scope > .node-row > .handle") && event.key.toLowerCase() === "m" && isAlone()) {
      event.preventDefault();
      toggle(view, mover, node);
    }
    return;
  }
  const acts = { Enter: () => down(view, mover), m: () => down(view, mover), " ": () => down(view, mover), Escape: () => back(view, mover, t("The node is back where it was.")) };
  const step = { ArrowUp: up, ArrowDown: lower, ArrowLeft: out, ArrowRight: into }[event.key];
  if (!step && !acts[event.key]) return;
  event.preventDefault();
  event.stopPropagation();
  if (view.busy && event.key !== "Escape") return; // a node is being opened
  if (acts[event.key]) return acts[event.key]();
  const taken = view.taken;
  view.busy = true;
  const place = await step(view, taken.node);
  if (view.taken !== taken) {
    view.busy = false;
    return;
  }
  if (place) {
    mover.put(view.taken.node, place);
    view.taken.node.scrollIntoView({ block: "nearest" });
  }
  view.busy = false;
  if (place !== undefined) view.announce(place ? t("“{name}”: {where}.", { name: nameOf(view.taken.node), where: where(view, view.taken.node) }) : t("It cannot move any further in that direction."), { stay: true });
}

const up = (_view, node) => {
  const before = sibling(node, "previousElementSibling");
  return before && { list: node.parentElement, next: before };
};

const lower = (_view, node) => {
  const next = sibling(node, "nextElementSibling");
  return next && { list: node.parentElement, next: next.nextElementSibling };
};

const out = (view, node) => {
  const parent = view.nested && above(node);
  return parent ? { list: parent.parentElement, next: parent.nextElementSibling } : null;
};

async function into(view, node) {
  const before = view.nested && sibling(node, "previousElementSibling");
  if (!before || "leafOnly" in before.dataset) return null;
  return inside(view, before);
}

// Returns the place after a node's last child, and opens the node if it is closed. Returns undefined if it could not be opened, which
// is reported elsewhere.
export async function inside(view, node) {
  const toggle = node.querySelector(":scope > .node-row > .toggle");
  if (Number(node.dataset.count) && !("ownPage" in toggle.dataset) && !(await view.open(node))) return undefined;
  let list = node.querySelector(":scope > ul");
  if (!list) {
    list = document.createElement("ul");
    node.append(list);
  }
  view.unfold(node);
  return list.isConnected ? { list, next: list.querySelector(":scope > .more") } : null;
}

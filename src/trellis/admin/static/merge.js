// Updates a part of the page from a newer version of it, in place: the focus, ticks and open details are kept. Elements with a
// data-row or the id of a node are recognised wherever they have moved.
import { dialogs } from "./dialogs.js";

const keyOf = (one) => (one.nodeType === 1 ? one.dataset.row ?? (one.classList.contains("node") ? one.id : "") : "");
const KEPT = { title: "time", open: "details", class: "[data-tree]", hidden: ".node > ul", "aria-expanded": ".node:has(> ul[hidden]) > .node-row > .toggle" };
const isKept = (one, name) => name === "aria-busy" || (name in KEPT && one.matches(KEPT[name]));
const isSame = (old, fresh) => old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh) && old.dataset?.dialog === fresh.dataset?.dialog;

// The rows of a part, by their keys.
export const rowsOf = (part) => new Map([...part.querySelectorAll("[data-row], .node")].map((row) => [keyOf(row), row]));

// Updates `old` from `fresh`, and returns the rows that were not there before.
export function merge(old, fresh) {
  const known = rowsOf(old);
  const arrived = [];
  const held = document.activeElement;
  mergeChildren(old, fresh, known, arrived);
  if (held.isConnected && document.activeElement !== held) held.focus({ preventScroll: true }); // its row was moved
  for (const row of arrived) row.classList.add("arrived");
  return arrived;
}

function mergeChildren(old, fresh, known, arrived) {
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const key = keyOf(wanted);
    let found = key ? known.get(key) : at && !keyOf(at) && isSame(at, wanted) ? at : null;
    if (found && (found.contains(old) || !isSame(found, wanted))) found = null;
    if (!found) {
      const made = document.importNode(wanted, true);
      old.insertBefore(made, at);
      if (made.nodeType === 1) wire(made, known, arrived);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else old.insertBefore(found, at);
    if (found.nodeType === 1) mergeElement(found, wanted, known, arrived);
    else if (found.data !== wanted.data) found.data = wanted.data;
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function mergeElement(old, fresh, known, arrived) {
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !isKept(old, name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value && !isKept(old, name)) old.setAttribute(name, value);
  if (!old.matches("input, select, textarea")) mergeChildren(old, fresh, known, arrived);
}

function wire(made, known, arrived) {
  dialogs(made);
  for (const row of [made, ...made.querySelectorAll("[data-row], .node")]) if (keyOf(row) && !known.has(keyOf(row))) arrived.push(row);
}

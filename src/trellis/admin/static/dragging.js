// Dragging a node by its handle, with a mouse, a pen or a finger: before, after or into another one. A ticked node takes the other
// ticked ones along.
import { inside } from "./moving.js";

const NEAR = 40; // px from the edge of the window within which the page scrolls
const STEP = 12; // px that it scrolls in each frame
const OPEN_AFTER = 600; // ms over a closed node until it opens

export function dragging(view, mover) {
  let current = null;
  view.list.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest(".handle");
    if (!handle || event.button !== 0 || view.taken || current) return;
    const node = handle.closest(".node");
    const drag = { node, nodes: chosen(view, node), x: event.clientX, y: event.clientY, at: event, handle, target: null };
    current = drag;
    handle.setPointerCapture(event.pointerId);
    const move = (moved) => follow(view, drag, moved);
    const scrolled = () => aim(view, drag);
    const end = (ended) => {
      current = null;
      handle.removeEventListener("pointermove", move);
      for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) handle.removeEventListener(name, end);
      removeEventListener("keydown", escape, true);
      removeEventListener("scroll", scrolled, true);
      if (ended.type === "pointerup") follow(view, drag, ended); // drop where the pointer is now, even if the page has moved below it
      finish(view, mover, drag, ended.type === "pointerup");
    };
    const escape = (pressed) => {
      if (pressed.key !== "Escape") return;
      pressed.preventDefault(); // it does not also clear the selection
      end(pressed);
    };
    handle.addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) handle.addEventListener(name, end);
    addEventListener("keydown", escape, true);
    addEventListener("scroll", scrolled, true);
  });
}

// Returns the nodes that are dragged with one: if it is ticked, all ticked ones but those below another one, which go along with that.
function chosen(view, node) {
  const ticked = [...view.list.querySelectorAll(".pick input:checked")].map((box) => box.closest(".node"));
  return ticked.includes(node) ? ticked.filter((one) => !ticked.some((other) => other !== one && other.contains(one))) : [node];
}

function follow(view, drag, event) {
  drag.at = event;
  if (!drag.ghost) {
    if (Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 4) return;
    drag.ghost = document.createElement("div");
    drag.ghost.className = "ghost";
    const others = drag.nodes.length - 1;
    drag.ghost.textContent = drag.node.querySelector(".node-name").textContent + (others ? ` + ${others}` : "");
    document.body.append(drag.ghost);
    document.documentElement.classList.add("sorting");
    drag.nodes.forEach((one) => one.classList.add("dragging"));
  }
  drag.ghost.style.left = `${event.clientX + 12}px`;
  drag.ghost.style.top = `${event.clientY + 8}px`;
  roll(drag);
  aim(view, drag);
}

// Scrolls the page while the pointer is near its edge, also if it stays still there.
function roll(drag) {
  const y = drag.at.clientY;
  const by = y < NEAR ? -STEP : y > innerHeight - NEAR ? STEP : 0;
  if (drag.rolling || !by || !drag.ghost.isConnected) return;
  scrollBy({ top: by, behavior: "instant" });
  drag.rolling = requestAnimationFrame(() => {
    drag.rolling = 0;
    roll(drag);
  });
}

// Finds the node under the pointer, which may be another one after the page has scrolled or a node has opened.
function aim(view, drag) {
  if (!drag.ghost) return;
  const { clientX, clientY } = drag.at;
  const row = document.elementFromPoint(clientX, clientY)?.closest(".node-row");
  const node = row?.closest(".node");
  clear(drag);
  if (!node || !view.list.contains(node) || drag.nodes.some((one) => one.contains(node))) return openLater(view, drag, null);
  const box = row.getBoundingClientRect();
  const part = (clientY - box.top) / box.height;
  const may = view.nested && !("leafOnly" in node.dataset);
  const how = may ? (part < 0.3 ? "before" : part > 0.7 ? "after" : "into") : part < 0.5 ? "before" : "after";
  drag.target = { node, how };
  node.classList.add(`drop-${how}`);
  openLater(view, drag, how === "into" && Number(node.dataset.count) ? node : null);
}

// Opens a node once the pointer has stayed over it for a while, if it is still there when the children have arrived.
function openLater(view, drag, node) {
  if (drag.opening?.node === node) return;
  clearTimeout(drag.opening?.timer);
  drag.opening = node && { node };
  const opening = drag.opening;
  if (!node) return;
  opening.timer = setTimeout(async () => {
    await view.open(node, () => drag.opening === opening);
    if (drag.opening === opening) aim(view, drag);
  }, OPEN_AFTER);
}

function clear(drag) {
  drag.target?.node.classList.remove("drop-before", "drop-after", "drop-into");
  drag.target = null;
}

async function finish(view, mover, drag, dropped) {
  const target = drag.target;
  clear(drag);
  openLater(view, drag, null);
  drag.ghost?.remove();
  drag.nodes.forEach((one) => one.classList.remove("dragging"));
  document.documentElement.classList.remove("sorting");
  if (!dropped || !target || !drag.ghost) return;
  const { node, how } = target;
  const place = how === "into" ? await inside(view, node) : { list: node.parentElement, next: how === "before" ? node : node.nextElementSibling };
  if (place && !drag.nodes.some((one) => one.contains(place.list))) mover.move(drag.nodes, place);
}

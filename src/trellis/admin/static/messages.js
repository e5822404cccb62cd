// Shows what happened at the foot of the window, with buttons such as Undo and Try again, and announces it to screen readers.
import { whenReleased } from "./pressing.js";

const BRIEFLY = 5_000; // ms
const LONG = 12_000; // ms, for messages with buttons and for errors
const APART = 8; // px between the message and what it would cover
const LATER = 50; // ms: screen readers announce what is added to a live region, not its first content
let box = null;
let words;
let acts;
let hiding;
let showing;
let before = null; // the element that had the focus before the message

export function say(text, { bad = false, buttons = [], stay = false } = {}) {
  box ??= build();
  const place = document.querySelector("dialog[open]") ?? document.body; // elements outside an open dialog cannot be reached
  const isNew = box.hidden || box.parentElement !== place || words.textContent === text;
  if (box.parentElement !== place) place.append(box);
  clearTimeout(hiding);
  clearTimeout(showing);
  if (!box.contains(document.activeElement)) before = document.activeElement;
  box.hidden = false;
  box.classList.toggle("bad", bad);
  if (isNew) {
    words.textContent = "";
    showing = setTimeout(() => (words.textContent = text), LATER);
  } else words.textContent = text;
  acts.replaceChildren(...buttons.map(([label, act]) => button(label, act)));
  if (place !== document.body) setTimeout(() => box.scrollIntoView({ block: "nearest" }), 2 * LATER);
  if (!stay) hideAfter(bad || buttons.length ? LONG : BRIEFLY);
}

// Hides the message after a time, but not while somebody points at it or has the focus in it.
function hideAfter(time) {
  hiding = setTimeout(() => (box.matches(":hover, :focus-within") ? hideAfter(BRIEFLY) : hide()), time);
}

// Announces the message that the last page has left, too, and what is wrong on a page on the way in, where a field has the focus. They
// are there when the page loads, so screen readers do not announce them.
// Replacing only its text is enough, and leaves its links alone, which may have the focus or be pressed at this moment.
export function announceFlash() {
  for (const { firstChild: text } of document.querySelectorAll(".flash p, .bare .notice[role] p")) {
    setTimeout(() => text.replaceWith(text.cloneNode(true)), 3 * LATER);
  }
}

function build() {
  const made = document.createElement("div");
  made.className = "message";
  made.hidden = true;
  made.dataset.message = "";
  words = document.createElement("p");
  words.setAttribute("role", "status");
  acts = document.createElement("span");
  acts.className = "row";
  made.append(words, acts);
  new ResizeObserver(makeRoom).observe(made); // also when it is hidden: it has no height then
  document.addEventListener("keydown", leadToButtons);
  document.addEventListener("focusin", () => requestAnimationFrame(() => whenReleased(uncover))); // after the browser has scrolled to it
  return made;
}

// Tab leads from where somebody was when the message came to its buttons, and from these on: the message is the last thing on the page.
function leadToButtons(event) {
  const { target, shiftKey } = event;
  if (event.key !== "Tab" || !acts.firstChild) return;
  if (target === (shiftKey ? acts.firstChild : before)) {
    event.preventDefault();
    (shiftKey ? before : acts.firstChild).focus();
  } else if (target === acts.lastChild && !shiftKey) before.focus(); // from there, the browser goes on itself
}

// Lets the last line of the page be scrolled above the message, too.
function makeRoom() {
  document.documentElement.style.setProperty("--said", `${box.offsetHeight}px`);
  uncover();
}

// Scrolls so that the message does not cover what has the focus, or not the beginning of what is too high to be seen as a whole.
function uncover() {
  const { top, bottom } = document.activeElement.getBoundingClientRect();
  const message = box.getBoundingClientRect();
  const by = Math.min(bottom - message.top + APART, top - APART);
  if (by > 0 && bottom > message.top && top < message.bottom && !box.contains(document.activeElement)) scrollBy(0, by);
}

function button(label, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "button plain";
  made.append(Object.assign(document.createElement("span"), { textContent: label }));
  made.addEventListener("click", () => {
    hide();
    act();
  });
  return made;
}

// Hides the message and returns the focus to where it was.
export function hide() {
  if (!box) return;
  clearTimeout(hiding);
  clearTimeout(showing);
  const held = box.contains(document.activeElement);
  box.hidden = true;
  words.textContent = "";
  acts.replaceChildren();
  if (held && before?.isConnected) before.focus();
}

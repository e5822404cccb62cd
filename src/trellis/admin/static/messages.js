// Says what happened: at the foot of the window, and to screen readers, with buttons such as Undo and Try again.
const BRIEFLY = 5_000; // ms
const LONG = 12_000; // ms, for what has buttons or went wrong
const LATER = 50; // ms: a live region is read out for what comes into it, not for what it is made with
let box = null;
let words;
let acts;
let hiding;
let showing;
let before = null; // what had the focus when a message with buttons came

export function say(text, { bad = false, buttons = [], stay = false } = {}) {
  box ??= build();
  const place = document.querySelector("dialog[open]") ?? document.body; // nothing outside an open dialog can be reached
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

// Takes the message away, but not while somebody is at it.
function hideAfter(time) {
  hiding = setTimeout(() => (box.matches(":hover, :focus-within") ? hideAfter(BRIEFLY) : hide()), time);
}

// The message that the last page has left is announced too: it stands there when the page comes, which is not read out.
// Its words alone are exchanged, since all of it is read out then: a link in it may have the focus, or be pressed just now.
export function announceFlash() {
  for (const { firstChild: text } of document.querySelectorAll(".flash p")) {
    setTimeout(() => text.replaceWith(text.cloneNode()), 3 * LATER);
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
  return made;
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

// Takes the message away; the focus goes back to where it was.
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

// Ctrl-K and / open the search for everything as a dialog, and ? opens the list of shortcuts. Without scripts, the search page does the
// same. Its links become the options of a list, one of which is active while the focus stays in the field.
import { many, t } from "./language.js";
import { askPage, attempt } from "./requests.js";
import { say } from "./messages.js";
import { whenReleased } from "./pressing.js";
import { replaceAnswer } from "./returning.js";
import { ALONE, isAlone } from "./single.js";

const TYPING = 120; // ms from the last letter to the request
const SIGN = 300; // ms without an answer until “Searching…” is shown
const SECRET = /(trl_[0-9A-Za-z]{8})_[0-9A-Za-z]+/g; // a whole key, of which only the first group is sent
const OURS = 'form[method="get"] input';

export function palette() {
  const link = document.querySelector("a[data-palette]");
  document.addEventListener("input", (event) => event.target.matches?.(OURS) && cut(event.target), true);
  document.addEventListener("panel:shown", (event) => setting(event.detail));
  setting(document);
  if (!link) return;
  if (/Mac|iP/.test(navigator.platform)) link.querySelector("kbd").textContent = "⌘ K";
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(link);
  });
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    const alone = !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target) && isAlone();
    if ((event.ctrlKey !== event.metaKey && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") || (alone && event.key === "/")) {
      event.preventDefault();
      open(link);
    } else if (alone && event.key === "?") {
      event.preventDefault();
      document.querySelector("a[data-keyboard]").click();
    }
  });
}

const isTyping = (element) => element.isContentEditable || element.matches?.("input:not([type=checkbox], [type=radio]), select, textarea");

// The box that switches off single-key shortcuts: they get in the way of people who dictate to their computer.
function setting(root) {
  for (const box of root.querySelectorAll("[data-single-keys]")) {
    box.checked = isAlone();
    box.addEventListener("change", () => localStorage.setItem(ALONE, box.checked ? "on" : "off"));
  }
}

// Leaves only the public part of a key in a field whose value becomes part of an address.
function cut(input) {
  const left = input.value.replace(SECRET, "$1");
  if (left === input.value) return;
  input.value = left;
  say(t("The secret part of the key was removed: it is not needed to find the key and was not sent."));
}

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

function open(link) {
  const before = document.activeElement;
  const list = element("div", { role: "listbox", id: "palette-list", "aria-label": t("Results"), class: "hits" });
  const input = element("input", {
    type: "text", role: "combobox", "aria-expanded": "false", "aria-controls": "palette-list", "aria-autocomplete": "list", "aria-label": t("Search or type a command"),
    autocomplete: "off", autocapitalize: "none", spellcheck: "false", maxlength: "200", placeholder: t("Search or type a command"), enterkeyhint: "go",
  });
  const status = element("span", { role: "status" });
  const help = element("span", { "aria-hidden": "true" }, element("kbd", {}, "↑"), " ", element("kbd", {}, "↓"), ` ${t("choose")}  `, element("kbd", {}, t("Enter")), ` ${t("go")}  `, element("kbd", {}, t("Esc")), ` ${t("close")}`);
  const field = element("div", { class: "search" }, link.querySelector(".icon").cloneNode(true), input);
  const dialog = element("dialog", { class: "palette", "aria-label": t("Search") }, field, list, element("p", { "data-said": "" }, status, help));
  const state = { input, list, status, dialog, at: -1, shown: null, asked: null, goes: null, waiting: 0, source: `${link.pathname}/hits` };

  input.addEventListener("input", () => {
    cut(input);
    state.goes = null;
    if (state.shown !== wanted(state)) list.dataset.old = "";
    clearTimeout(state.waiting);
    state.waiting = setTimeout(() => look(state), TYPING);
  });
  input.addEventListener("keydown", (event) => press(state, event));
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the focus stays in the field
  list.addEventListener("mousemove", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) activate(state, options(state).indexOf(option), false);
  });
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) choose(state, option, event.ctrlKey || event.metaKey);
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => {
    clearTimeout(state.waiting);
    const message = dialog.querySelector("[data-message]");
    if (message) document.body.append(message);
    dialog.remove();
    if (before?.isConnected) before.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  input.focus();
  look(state);
}

const wanted = ({ input }) => input.value.trim();
const options = ({ list }) => [...list.querySelectorAll("[role=option]")];

// Requests the results for the current text. Only the newest answer is shown, however late others arrive.
function look(state) {
  const text = wanted(state);
  if (state.shown === text) return delete state.list.dataset.old;
  if (state.asked === text) return; // it has been requested already
  state.asked = text;
  state.list.dataset.old = "";
  attempt(async () => {
    if (!state.dialog.isConnected || wanted(state) !== text) return; // “Try again” was pressed after the text had changed
    const marking = setTimeout(() => (state.status.textContent = t("Searching…")), SIGN);
    try {
      const page = await askPage(state.input, `${state.source}?text=${encodeURIComponent(text)}`, { newest: true, cache: "no-store" });
      if (page !== null) whenReleased(() => state.dialog.isConnected && wanted(state) === text && show(state, text, page));
    } finally {
      clearTimeout(marking);
      if (state.status.textContent === t("Searching…")) state.status.textContent = "";
      if (state.asked === text) state.asked = null;
    }
  }, { otherwise: `${state.source.replace(/\/hits$/, "")}?text=${encodeURIComponent(text)}` });
}

function show(state, text, page) {
  const found = new DOMParser().parseFromString(page, "text/html");
  state.shown = text;
  delete state.list.dataset.old;
  let number = 0;
  const groups = [...found.querySelectorAll("[data-hits]")].map((section, at) => {
    const heading = element("div", { id: `palette-group-${at}`, "data-heading": "", role: "presentation" }, section.dataset.hits);
    const made = [...section.querySelectorAll("li > a")].map((link) => {
      const option = element("div", { role: "option", id: `palette-option-${(number += 1)}`, "aria-selected": "false", "data-to": link.getAttribute("href") }, ...link.childNodes);
      if (link.dataset.fill) option.dataset.fill = link.dataset.fill;
      return option;
    });
    return element("div", { role: "group", "aria-labelledby": heading.id }, heading, ...made);
  });
  state.list.replaceChildren(...groups);
  state.at = -1;
  activate(state, 0);
  state.input.setAttribute("aria-expanded", String(number > 0));
  state.status.textContent = number ? many(number, "{count} result", "{count} results") : found.querySelector("[data-no-hits]")?.textContent ?? t("No results");
  if (state.goes === null) return;
  const chosen = options(state)[0]; // Enter was pressed before the answer arrived
  if (chosen) choose(state, chosen, state.goes);
  state.goes = null;
}

function activate(state, at, scrolls = true) {
  const every = options(state);
  every[state.at]?.setAttribute("aria-selected", "false");
  const option = every[at];
  state.at = option ? at : -1;
  if (!option) return state.input.removeAttribute("aria-activedescendant");
  option.setAttribute("aria-selected", "true");
  state.input.setAttribute("aria-activedescendant", option.id);
  if (scrolls) (at ? option : state.list.firstElementChild).scrollIntoView({ block: "nearest" });
}

function press(state, event) {
  if (event.isComposing) return;
  const count = options(state).length;
  const to = { ArrowDown: (state.at + 1) % count, ArrowUp: (state.at - 1 + count) % count, PageDown: Math.min(state.at + 8, count - 1), PageUp: Math.max(state.at - 8, 0) }[event.key];
  if (to !== undefined) {
    event.preventDefault();
    if (count) activate(state, to);
  } else if (event.key === "Enter") {
    event.preventDefault();
    const isNewTab = event.ctrlKey || event.metaKey;
    const option = options(state)[state.at];
    if (state.shown !== wanted(state)) {
      state.goes = isNewTab;
      clearTimeout(state.waiting);
      look(state);
    } else if (option) choose(state, option, isNewTab);
  } else if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault(); // in the browser, it is the search of the address bar
    state.input.select();
  }
}

function choose(state, option, isNewTab) {
  if (option.dataset.fill) {
    state.input.value = option.dataset.fill;
    state.input.focus();
    look(state);
  } else if (isNewTab) window.open(option.dataset.to, "_blank", "noopener");
  else {
    state.dialog.close();
    replaceAnswer();
    location.assign(option.dataset.to);
  }
}

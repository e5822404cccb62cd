// 'Try it': sends a request from the page with the reader's own key. The key stays in this tab.

import { copies } from "./reference.js";

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const KEY = "trellis-key";

// --- the key, the same in every form ---

function keep(key, but) {
  try { key ? sessionStorage.setItem(KEY, key) : sessionStorage.removeItem(KEY); } catch { /* then only on this page */ }
  for (const input of all("input.key")) if (input !== but && !input.isMade) input.value = key;
}
for (const input of all("input.key")) {
  input.addEventListener("input", () => {
    if (input.isMade && input.value) return; // what is left of a made key is not kept either
    input.isMade = false;
    keep(input.value.trim(), input);
  });
}
try { keep(sessionStorage.getItem(KEY) ?? ""); } catch { /* the same */ }

// --- a key made for whoever is signed in to the panel: it stays in its form, and nothing keeps it ---

async function ask(address, sent) {
  const how = { headers: { Accept: "application/json" }, cache: "no-store", credentials: "same-origin", redirect: "error" };
  const answer = await fetch(address, sent ? { ...how, method: "POST", body: new URLSearchParams(sent) } : how);
  const told = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(told.detail), { reason: told.message });
  return told;
}

function linked(text, href) {
  const link = made("a", "", text);
  link.href = href;
  link.target = "_blank";
  return link;
}

function explain({ reason, message }, address, grants) {
  switch (reason) {
    case "NO_SESSION": return ["Sign in to the ", linked("administration panel", address.replace(/\/keys\/try$/, "")), " first, then press the button again."];
    case "NEEDS_PASSWORD": return [linked("Enter your password again", `${address}?operation=${encodeURIComponent(grants[0] ?? "")}`), " first, then press the button again."];
    default: return [message];
  }
}

async function make(button) {
  const grants = button.dataset.grants.split(" ").filter(Boolean);
  const address = button.dataset.from;
  const field = button.closest(".field");
  const input = field.querySelector("input.key");
  button.disabled = true;
  try {
    const { csrf, submission } = await ask(address);
    const key = await ask(address, [["csrf", csrf], ["_submission", submission], ...grants.map((name) => ["grants", name])]);
    input.value = key.key;
    input.isMade = true;
    const until = new Date(key.expiresAt).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    const list = linked(key.name, address.replace(/try$/, key.id));
    field.querySelector(".made").replaceChildren(list, `, until ${until}. It is in this form alone.`);
  } catch (problem) {
    field.querySelector(".made").replaceChildren(...explain(problem, address, grants));
  }
  button.disabled = false;
}

// --- from the form to the request ---

const groups = (text) => (text.trim() === "*" ? "*" : text.split(",").map((part) => part.trim()).filter(Boolean).map(number));
const number = (text) => (/^-?\d{1,15}$/.test(text.trim()) ? Number(text) : text);

function value(control) {
  if (control.dataset.as === "permissions") {
    const chosen = all("[data-option]", control).filter((input) => input.value.trim());
    return chosen.length ? Object.fromEntries(chosen.map((input) => [input.dataset.option, groups(input.value)])) : undefined;
  }
  if (control.dataset.as === "flag") return control.checked ? "1" : undefined;
  const text = control.value;
  if (text === "") return undefined;
  if (control.dataset.in === "body" && "nullable" in control.dataset && text.trim() === "null") return null;
  switch (control.dataset.in === "body" ? control.dataset.as : "text") {
    case "boolean": return text === "true";
    case "number": return number(text);
    case "groups": return groups(text);
    default: return text;
  }
}

function values(form, where) {
  const pairs = all(`[data-in="${where}"]`, form).map((control) => [control.dataset.name, value(control)]);
  return Object.fromEntries(pairs.filter(([, given]) => given !== undefined));
}

function request(form) {
  const { method, path } = form.dataset;
  const query = new URLSearchParams(values(form, "query")).toString();
  const [[name, target] = ["id", ""]] = Object.entries(values(form, "path"));
  const json = form.querySelector(".json:not([hidden]) textarea");
  const takesBody = form.querySelector(".json") !== null;
  const headers = { ...values(form, "header"), ...(takesBody ? { "Content-Type": "application/json" } : {}) };
  return {
    method,
    url: new URL(path.replace(`{${name}}`, encodeURIComponent(target)) + (query && `?${query}`), location.href).href,
    headers,
    body: takesBody ? (json ? json.value : JSON.stringify(values(form, "body"), null, 2)) : undefined,
  };
}

function curl({ method, url, headers, body }) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const lines = [`curl${method === (body === undefined ? "GET" : "POST") ? "" : ` -X ${method}`} ${quoted(url)}`, '-H "Authorization: Bearer $API_KEY"'];
  for (const [name, text] of Object.entries(headers)) lines.push(`-H ${quoted(`${name}: ${text}`)}`);
  if (body !== undefined) lines.push(`-d ${quoted(body)}`);
  return lines.join(" \\\n  ");
}

// --- from the response to the page ---

function made(tag, className, ...inside) {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...inside);
  return element;
}

const TOKENS = /(?<name>"(?:[^"\\\n]|\\.)*"(?=:))|(?<text>"(?:[^"\\\n]|\\.)*")|(?<value>-?\b\d[\d.eE+-]*|\b(?:true|false|null)\b)/g;

function coloured(text) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(TOKENS)) {
    const [kind] = Object.entries(found.groups).find(([, token]) => token !== undefined);
    parts.push(text.slice(end, found.index), made("span", `c-${kind}`, found[0]));
    end = found.index + found[0].length;
  }
  return [...parts, text.slice(end)];
}

function box(label, ...text) {
  const copy = made("button", "copy", "Copy");
  copy.type = "button";
  const pre = made("pre", "", made("code", "", ...text));
  pre.tabIndex = 0;
  pre.setAttribute("aria-label", label);
  const whole = made("div", "code", made("p", "code-label", label), copy, pre);
  copies(copy);
  return whole;
}

function answered(body) {
  try { return coloured(JSON.stringify(JSON.parse(body), null, 2)); } catch { return [body]; }
}

const bytes = (text) => String.fromCharCode(...new TextEncoder().encode(text)); // UTF-8: a header of fetch takes nothing above ÿ

async function send(form) {
  const outcome = form.querySelector(".outcome");
  const sent = request(form);
  const key = form.querySelector(".key").value.trim();
  const headers = new Headers(Object.entries(sent.headers).map(([name, text]) => [name, bytes(text)]));
  if (key) headers.set("Authorization", bytes(`Bearer ${key}`));
  const started = performance.now();
  try {
    const answer = await fetch(sent.url, { method: sent.method, headers, body: sent.body, cache: "no-store", credentials: "omit" });
    const body = await answer.text();
    const took = Math.round(performance.now() - started);
    const status = made("span", `status s${Math.floor(answer.status / 100)}`, `${answer.status} ${answer.statusText}`.trim());
    const dry = answer.headers.get("Dry-Run") ? ["dry run: nothing was changed"] : [];
    const facts = [`${took} ms`, `${new Blob([body]).size} bytes`, ...dry].map((fact) => made("span", "", fact));
    const lines = [...answer.headers].map(([name, text]) => `${name}: ${text}`).join("\n");
    outcome.replaceChildren(made("p", "line", status, ...facts), box("Response", ...answered(body)), box("Headers", lines), box("Request", curl(sent)));
  } catch (problem) {
    outcome.replaceChildren(made("p", "line", made("span", "status s0", "no response"), `${problem.message}`), box("Request", curl(sent)));
  }
}

// --- the forms ---

function fill(form) {
  const given = JSON.parse(form.dataset.given);
  const json = form.querySelector(".json");
  if (json && !json.hidden) json.querySelector("textarea").value = JSON.stringify(given, null, 2);
  for (const control of all('[data-in="body"]', form)) {
    const shown = given[control.dataset.name];
    const plain = (one) => typeof one !== "object";
    const text = (one) => {
      if (one === undefined) return "";
      if (Array.isArray(one) && one.every(plain)) return one.join(",");
      return plain(one) ? String(one) : JSON.stringify(one, null, 2);
    };
    if (control.dataset.as === "permissions") for (const input of all("[data-option]", control)) input.value = text(shown?.[input.dataset.option]);
    else control.value = text(shown);
  }
}

function edit(form, button) {
  const json = form.querySelector(".json");
  const text = json.querySelector("textarea");
  json.hidden = !json.hidden;
  if (!json.hidden) text.value = JSON.stringify(values(form, "body"), null, 2);
  for (const control of all('[data-in="body"]', form)) control.closest(".field").hidden = !json.hidden;
  button.setAttribute("aria-pressed", String(!json.hidden));
  button.textContent = json.hidden ? "Edit as JSON" : "Back to the form";
}

function ready(form) {
  const button = form.querySelector(".send");
  const dry = form.querySelector('[data-name="dryRun"]');
  const label = () => {
    const forGood = form.dataset.method === "DELETE" && !dry.checked;
    button.classList.toggle("for-good", forGood);
    button.textContent = forGood ? "Delete for good" : dry?.checked ? "Send as a dry run" : "Send";
  };
  dry?.addEventListener("change", label);
  label();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const missing = all('[data-in="path"]', form).find((input) => !input.value.trim());
    for (const input of all('[data-in="path"]', form)) input.setAttribute("aria-invalid", String(input === missing));
    if (missing) return missing.focus();
    button.disabled = true;
    await send(form);
    button.disabled = false;
  });
  form.querySelector(".make-key")?.addEventListener("click", (event) => make(event.currentTarget));
  form.querySelector(".fill")?.addEventListener("click", () => fill(form));
  form.querySelector(".as-json")?.addEventListener("click", (event) => edit(form, event.currentTarget));
}
for (const box of all("details.try")) box.hidden = false;
all(".try form").forEach(ready);

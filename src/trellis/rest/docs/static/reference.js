// Conveniences of a page if scripts run: copying, one language for all samples, the current operation, search, old addresses.

const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } };

for (const lone of all(".needs-script")) lone.hidden = true;

// --- copying ---

export function copies(button) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const box = button.closest(".code");
    const shown = all("pre", box).find((pre) => pre.offsetParent !== null);
    try {
      await navigator.clipboard.writeText(shown.textContent.trim());
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(shown);
      button.textContent = "Press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}
all(".copy").forEach(copies);

// --- one language for all samples ---

const LANGUAGE = "trellis-language";

function speak(language) {
  for (const radio of all(`.tabs > input[value="${CSS.escape(language)}"]`)) radio.checked = true;
}
for (const radio of all(".tabs > input")) {
  radio.addEventListener("change", () => {
    const before = radio.getBoundingClientRect().top;
    speak(radio.value);
    scrollBy({ top: radio.getBoundingClientRect().top - before, behavior: "instant" });
    try { localStorage.setItem(LANGUAGE, radio.value); } catch { /* a browser that keeps nothing */ }
  });
}
try { speak(localStorage.getItem(LANGUAGE) ?? "curl"); } catch { /* the same */ }

// --- the current operation ---

const menu = document.querySelector(".side nav");
const links = new Map(all(".within a", menu).map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
const visible = new Set();

const watch = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) isIntersecting ? visible.add(target) : visible.delete(target);
  const here = all("[data-spy]").find((operation) => visible.has(operation));
  if (!here) return;
  for (const [id, link] of links) {
    if (id !== here.id) link.removeAttribute("aria-current");
    else if (!link.hasAttribute("aria-current")) {
      link.setAttribute("aria-current", "location");
      if (!menu.matches(":hover, :focus-within")) reveal(link);
    }
  }
}, { rootMargin: "-15% 0px -70% 0px" });
all("[data-spy]").forEach((operation) => watch.observe(operation));

function reveal(link) {
  const box = menu.getBoundingClientRect();
  const at = link.getBoundingClientRect();
  if (at.top < box.top + 60 || at.bottom > box.bottom - 60) menu.scrollTop += at.top - box.top - box.height / 2;
}

menu.addEventListener("click", (event) => {
  if (event.target.closest("a")) document.querySelector(".burger").open = false;
});

// --- search: on the page that lists everything ---

const find = document.querySelector("#find");

if (find) {
  find.parentElement.hidden = false;
  const filter = () => {
    const wanted = find.value.trim().toLowerCase().split(/\s+/);
    let found = 0;
    for (const group of all(".group")) {
      const name = group.querySelector("h3").textContent;
      let here = 0;
      for (const item of all("li", group)) {
        const text = `${name} ${item.textContent} ${item.dataset.words ?? ""}`.toLowerCase();
        item.hidden = !wanted.every((word) => text.includes(word));
        here += item.hidden ? 0 : 1;
      }
      group.hidden = here === 0;
      found += here;
    }
    for (const section of all(".index")) section.classList.toggle("empty", all(".group", section).every((group) => group.hidden));
    document.querySelector("#found").textContent = find.value.trim() === "" ? "" : found === 1 ? "1 entry" : `${found || "No"} entries`;
  };
  find.addEventListener("input", filter);
  if (find.value) filter(); // a browser that has come back keeps what was typed
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && find.value.trim()) all(".group:not([hidden]) li:not([hidden]) a")[0]?.click();
    if (event.key === "Escape") { find.value = ""; find.dispatchEvent(new Event("input")); }
  });
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  if (find) find.focus();
  else location.assign(document.querySelector(".to-find").href);
});

// --- addresses of the time when the reference was one page ---

function leadOn() {
  if (location.hash === "#find") return find?.focus();
  const link = document.getElementById(decoded(location.hash.slice(1)))?.closest("[data-moved]")?.querySelector("a");
  if (link) location.replace(link.href);
}
addEventListener("hashchange", leadOn);
leadOn();

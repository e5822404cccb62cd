// Conveniences of the page if scripts run: copying, one language for all samples, the current section, search.

const all = (selector, within = document) => [...within.querySelectorAll(selector)];

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

// --- the current section ---

const contents = document.querySelector("#contents");
const links = new Map(all("a[href^='#']", contents).map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
const visible = new Set();

const watch = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) isIntersecting ? visible.add(target) : visible.delete(target);
  const here = all("[data-spy]").find((section) => visible.has(section));
  if (!here) return;
  for (const [id, link] of links) {
    if (id !== here.id) link.removeAttribute("aria-current");
    else if (!link.hasAttribute("aria-current")) {
      link.setAttribute("aria-current", "location");
      if (!contents.matches(":hover, :focus-within")) reveal(link);
    }
  }
}, { rootMargin: "-15% 0px -70% 0px" });
all("[data-spy]").forEach((section) => watch.observe(section));

function reveal(link) {
  const box = contents.getBoundingClientRect();
  const at = link.getBoundingClientRect();
  if (at.top < box.top + 60 || at.bottom > box.bottom - 60) contents.scrollTop += at.top - box.top - box.height / 2;
}

contents.addEventListener("click", (event) => {
  if (event.target.closest("a") && contents.matches(":popover-open")) contents.hidePopover();
});

// --- search ---

const filter = document.querySelector("#filter");
filter.parentElement.hidden = false;

filter.addEventListener("input", () => {
  const wanted = filter.value.trim().toLowerCase();
  let found = 0;
  for (const list of all("ul", contents)) {
    let here = 0;
    for (const item of list.children) {
      const link = item.firstElementChild;
      item.hidden = !`${link.textContent} ${link.dataset.words ?? ""}`.toLowerCase().includes(wanted);
      here += item.hidden ? 0 : 1;
    }
    list.hidden = list.previousElementSibling.hidden = here === 0;
    found += here;
  }
  contents.querySelector(".nothing").hidden = found > 0;
});
filter.addEventListener("keydown", (event) => {
  if (event.key === "Enter") all("li:not([hidden]) a", contents)[0]?.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  filter.focus();
});

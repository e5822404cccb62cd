// Forms being sent: a second press sends nothing twice, and a form with data-working shows its text if the answer takes long.
// The text is on the form, on the pressed button or on the chosen radio button; a live region and a progress bar show it.
const PATIENCE = 700; // milliseconds
const held = new Set();
let waiting = [];

export function working(root) {
  root.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post") return;
    setTimeout(() => form.querySelectorAll("button:enabled").forEach(hold)); // later: the pressed button is sent with the form
    const text = event.submitter?.dataset.working ?? form.querySelector("input:checked[data-working]")?.dataset.working ?? form.dataset.working;
    if (text && !event.submitter?.formNoValidate) waiting.push(setTimeout(() => showProgress(form, text), PATIENCE));
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) release(root);
  });
}

function hold(button) {
  button.disabled = true;
  held.add(button);
}

function showProgress(form, text) {
  const region = document.createElement("div");
  region.className = "working";
  region.setAttribute("role", "status");
  form.append(region);
  const bar = document.createElement("progress");
  bar.setAttribute("aria-label", "Under way");
  const words = document.createElement("p");
  words.textContent = text;
  waiting.push(setTimeout(() => region.append(words, bar), 50)); // later: what is there from the start is not read out
}

// Back by the back button, as the page was left.
function release(root) {
  waiting.forEach(clearTimeout);
  waiting = [];
  root.querySelectorAll(".working").forEach((region) => region.remove());
  held.forEach((button) => (button.disabled = false));
  held.clear();
}

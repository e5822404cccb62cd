// Forms on their way: a second press sends nothing twice, and a form with data-working says that it takes a while.
// What it says stands there or on the choice that is ticked; a live region and a bar show it when no answer has come yet.
const PATIENCE = 700; // milliseconds
const held = new Set();
let waiting = [];

export function working(root) {
  root.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method !== "post") return;
    setTimeout(() => form.querySelectorAll("button:enabled").forEach(hold)); // later: the pressed one is sent with the form
    const said = form.querySelector("input:checked[data-working]")?.dataset.working ?? form.dataset.working;
    if (said && !event.submitter?.formNoValidate) waiting.push(setTimeout(() => tell(form, said), PATIENCE));
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) release(root);
  });
}

function hold(button) {
  button.disabled = true;
  held.add(button);
}

function tell(form, said) {
  const region = document.createElement("div");
  region.className = "working";
  region.setAttribute("role", "status");
  form.append(region);
  const bar = document.createElement("progress");
  bar.setAttribute("aria-label", "Under way");
  const words = document.createElement("p");
  words.textContent = said;
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

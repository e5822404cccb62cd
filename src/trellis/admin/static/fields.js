// Form controls: colours, 'every group', copy buttons, and fields that only apply to a certain choice.
import { t } from "./language.js";
import { say } from "./messages.js";
import { markCopied } from "./unsaved.js";

const saying = new WeakMap(); // for each copy button: its label before “Copied”, and the timer that restores it

export function fields(root) {
  for (const picker of root.querySelectorAll("input[data-twin]")) {
    const text = root.querySelector(`#${CSS.escape(picker.dataset.twin)}`);
    picker.addEventListener("input", () => (text.value = picker.value.toUpperCase()));
    text.addEventListener("input", () => {
      if (/^#[0-9a-f]{6}$/i.test(text.value)) picker.value = text.value;
    });
  }
  for (const ticks of root.querySelectorAll("[data-everyone]")) {
    const [everyone, ...others] = ticks.querySelectorAll("input[type=checkbox]");
    follow(everyone, () => others.forEach((box) => (box.disabled = everyone.checked)));
  }
  for (const field of root.querySelectorAll("[data-when]")) showWhen(root, field);
  for (const button of root.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
}

// Brings other controls into line with this one: now, after each change, and when the browser has restored what was chosen before.
function follow(control, show) {
  control.addEventListener("change", show);
  addEventListener("pageshow", show, { once: true });
  show();
}

// <div class="field" data-when="type redirect">: shown while the control "type" has the value "redirect", or if the field has a fault.
function showWhen(root, field) {
  const [name, ...values] = field.dataset.when.split(" ");
  const choice = root.querySelector(`select[name="${CSS.escape(name)}"]`);
  if (!choice) return;
  follow(choice, () => {
    field.hidden = !values.includes(choice.value) && !field.classList.contains("wrong");
    field.querySelectorAll("input").forEach((input) => (input.readOnly = field.hidden)); // browsers do not validate read-only fields
  });
}

// <button type="button" data-copy="ID of what to copy" hidden><span>Copy</span></button>
async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const label = button.querySelector("span") ?? button;
  const before = saying.get(button)?.before ?? label.textContent; // the label may still show the result of an earlier press
  try {
    const text = source.value ?? source.textContent;
    await navigator.clipboard.writeText(text);
    markCopied(text);
    label.textContent = t("Copied");
    say(t("Copied."));
  } catch {
    getSelection().selectAllChildren(source);
    say(t("Selected: press Ctrl+C."));
    label.textContent = t("Selected: press Ctrl+C");
  }
  clearTimeout(saying.get(button)?.timer);
  const timer = setTimeout(() => {
    saying.delete(button);
    label.textContent = before;
  }, 2500);
  saying.set(button, { before, timer });
}

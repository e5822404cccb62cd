// Form controls: colours, 'every group', copy buttons.
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
    const follow = () => others.forEach((box) => (box.disabled = everyone.checked));
    everyone.addEventListener("change", follow);
    follow();
  }
  for (const button of root.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
}

// <button type="button" data-copy="ID of what to copy" hidden><span>Copy</span></button>
async function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const label = button.querySelector("span") ?? button;
  const before = label.textContent;
  try {
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    label.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(source);
    label.textContent = "Selected: press Ctrl+C";
  }
  setTimeout(() => (label.textContent = before), 2500);
}

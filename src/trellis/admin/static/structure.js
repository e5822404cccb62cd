// Structure documents: a file that is dropped or chosen becomes the text, and links select a line of the text.
import { t } from "./language.js";

const LONGEST = 8 * 2 ** 20; // bytes of a document

const text = document.querySelector("textarea.document");
const row = document.querySelector("[data-file]");
const status = row.querySelector("[role=status]");
const input = row.querySelector("input[type=file]");
row.hidden = false;

async function take(file) {
  if (file.size > LONGEST) {
    status.textContent = t("{name} is larger than 8 MiB. Split it by sections.", { name: file.name });
    return;
  }
  try {
    text.value = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    status.textContent = t("{name} is not UTF-8 text, so letters would be lost. Save it as UTF-8 and choose it again.", { name: file.name });
    return;
  }
  status.textContent = t("{name}, {size} KiB, was loaded into the text below.", { name: file.name, size: Math.ceil(file.size / 1024) });
}

input.addEventListener("change", () => {
  if (input.files.length) take(input.files[0]);
  input.value = ""; // so that the same file can be chosen again after a change
});

const holdsFile = (event) => event.dataTransfer?.types.includes("Files");
for (const name of ["dragenter", "dragover"]) {
  text.addEventListener(name, (event) => {
    if (!holdsFile(event)) return;
    event.preventDefault();
    text.classList.add("over");
  });
}
text.addEventListener("dragleave", () => text.classList.remove("over"));
text.addEventListener("drop", (event) => {
  text.classList.remove("over");
  if (!holdsFile(event)) return;
  event.preventDefault();
  if (event.dataTransfer.files.length > 1) status.textContent = t("Drop one file at a time.");
  else if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
});

for (const link of document.querySelectorAll("a[data-line]")) {
  link.hidden = false;
  link.addEventListener("click", (event) => {
    event.preventDefault();
    show(Number(link.dataset.line));
  });
}

function show(line) {
  let start = 0;
  for (let number = 1; number < line; number += 1) {
    const end = text.value.indexOf("\n", start);
    if (end < 0) break;
    start = end + 1;
  }
  const end = text.value.indexOf("\n", start);
  text.focus();
  text.setSelectionRange(start, end < 0 ? text.value.length : end);
  text.scrollTop = Math.max(0, line - 4) * parseFloat(getComputedStyle(text).lineHeight);
}

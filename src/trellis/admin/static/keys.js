// The grid of grants and the page that shows a key. Both work without this: the buttons then send the form.
for (const grid of document.querySelectorAll("[data-grants]")) {
  const boxes = [...grid.querySelectorAll("input[name=grants][type=checkbox]")];
  const count = grid.querySelector("[data-grants-count]");
  const showCount = () => {
    count.textContent = `${boxes.filter((box) => box.checked).length} of ${grid.dataset.all} operations ticked`;
  };
  const boxesOf = {
    all: () => boxes,
    read: () => boxes.filter((box) => "reads" in box.dataset),
    none: () => [],
    row: (name) => boxes.filter((box) => box.dataset.row === name),
    column: (name) => boxes.filter((box) => box.dataset.column === name),
  };
  for (const button of grid.querySelectorAll("[data-tick]")) {
    button.addEventListener("click", (event) => {
      event.preventDefault();
      const [what, name] = button.dataset.tick.split(":");
      const chosen = boxesOf[what](name);
      if (name === undefined) boxes.forEach((box) => (box.checked = chosen.includes(box)));
      else {
        const full = chosen.every((box) => box.checked);
        chosen.forEach((box) => (box.checked = !full));
      }
      showCount();
    });
  }
  grid.addEventListener("change", showCount);
  showCount(); // the browser may have restored the ticks of an earlier visit
}

// A key that was shown is removed when the page is left, even if the browser keeps the page for the back button.
addEventListener("pagehide", () => {
  for (const part of document.querySelectorAll("[data-once]")) {
    part.querySelectorAll(".notice, .field, details").forEach((one) => one.remove());
    part.querySelector("[data-hidden-note]")?.removeAttribute("hidden");
  }
});

// Ticks in a list with data-range: with Shift, all boxes from the last one to this one get its state. Rows may come and go meanwhile.
let last = null;

export function between(boxes, from, to) {
  const [first, end] = [boxes.indexOf(from), boxes.indexOf(to)].sort((a, b) => a - b);
  return first < 0 ? [to] : boxes.slice(first, end + 1);
}

export function ranging() {
  document.addEventListener("click", ({ target, shiftKey }) => {
    const list = target.matches("input[type=checkbox]") && target.closest("[data-range]");
    if (!list) return;
    const boxes = [...list.querySelectorAll(`input[type=checkbox][name="${target.name}"]`)].filter((box) => box.offsetParent !== null);
    if (shiftKey && last?.isConnected) between(boxes, last, target).forEach((box) => (box.checked = target.checked));
    last = target;
  });
}

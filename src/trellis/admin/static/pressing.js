// While a mouse button, a pen or a finger is down, nothing is exchanged below it: a press on one element and a release on another
// one is no click, and nothing would happen.
const CLICK = 100; // ms after the release within which its click comes, with a finger too
let isDown = false;
let ending = 0;
const waiting = [];

addEventListener("pointerdown", () => {
  clearTimeout(ending);
  isDown = true;
}, true);
for (const name of ["pointerup", "pointercancel"]) addEventListener(name, release, true);
addEventListener("pointermove", (event) => isDown && !event.buttons && release(), true); // it was released outside the window

function release() {
  clearTimeout(ending);
  ending = setTimeout(() => {
    isDown = false;
    waiting.splice(0).forEach((act) => act());
  }, CLICK);
}

export const isPressed = () => isDown;

export function whenReleased(act) {
  if (isDown) waiting.push(act);
  else act();
}

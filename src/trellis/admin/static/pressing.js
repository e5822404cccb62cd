// While a mouse button, a pen or a finger is down, elements below it must not be replaced: browsers send no click if the press is on one
// element and the release on another.
const CLICK = 100; // ms after the release within which the click follows, also for a finger
let isDown = false;
let ending = 0;
const waiting = [];

addEventListener("pointerdown", () => {
  clearTimeout(ending);
  isDown = true;
}, true);
for (const name of ["pointerup", "pointercancel"]) addEventListener(name, release, true);
addEventListener("pointermove", (event) => isDown && !event.buttons && release(), true); // the button was released outside the window

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

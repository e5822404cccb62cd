// Lets "3 minutes ago" go on, by the service's clock, and tells the service the browser's time zone. It is the service that writes and
// reads times in it, where no other has been chosen: from the next page on.
const EVERY = 10_000; // ms
const SPANS = [[365 * 86_400, "year"], [30 * 86_400, "month"], [86_400, "day"], [3_600, "hour"], [60, "minute"]];
const LONG_AHEAD = 120 * 86_400; // seconds ahead from which months are exact enough
const ahead = Date.parse(document.body.dataset.now ?? "") - Date.now() || 0; // of the browser's clock

export function tellZone() {
  const name = document.documentElement.dataset.zoneCookie;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!name || !zone) return;
  const where = name.startsWith("__Host-") ? "path=/; secure" : "path=/admin";
  document.cookie = `${name}=${zone}; ${where}; max-age=31536000; samesite=lax`;
}

// As the pages write it: see format_age in view.py.
export function age(seconds) {
  const span = Math.abs(seconds);
  if (span < 60) return seconds >= 0 ? "just now" : "in a moment";
  const plural = (count, unit) => `${count.toLocaleString("en")} ${unit}${count === 1 ? "" : "s"}`;
  if (seconds < 0 && span >= 86_400 && span < LONG_AHEAD) return `in ${plural(Math.round(span / 86_400), "day")}`;
  const [length, unit] = SPANS.find(([seconds]) => span >= seconds);
  return seconds >= 0 ? `${plural(Math.floor(span / length), unit)} ago` : `in ${plural(Math.round(span / length), unit)}`;
}

function goOn() {
  if (document.hidden) return;
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const text = age((Date.now() + ahead - Date.parse(time.dateTime)) / 1000);
    if (time.textContent !== text) time.textContent = text;
  }
}

export function tick() {
  setInterval(goOn, EVERY);
  document.addEventListener("visibilitychange", goOn);
}

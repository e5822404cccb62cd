// Keeps times such as "3 minutes ago" counting, by the clock of the service, and tells the service the browser's time zone. From the
// next page on, the service formats and reads times in that zone, unless another one has been chosen.
import { lang, t } from "./language.js";

const EVERY = 10_000; // ms
const SPANS = [[365 * 86_400, "year"], [30 * 86_400, "month"], [86_400, "day"], [3_600, "hour"], [60, "minute"]];
const LONG_AHEAD = 120 * 86_400; // seconds in the future beyond which months are exact enough
const ahead = Date.parse(document.body.dataset.now ?? "") - Date.now() || 0; // ms by which the service's clock is ahead of the browser's

export function tellZone() {
  const name = document.documentElement.dataset.zoneCookie;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!name || !zone) return;
  const where = name.startsWith("__Host-") ? "path=/; secure" : "path=/admin";
  document.cookie = `${name}=${zone}; ${where}; max-age=31536000; samesite=lax`;
}

const spans = new Intl.RelativeTimeFormat(lang, { numeric: "always" });

// Formats a time span as the pages do: see languages/language.py.
function age(seconds) {
  const span = Math.abs(seconds);
  if (span < 60) return seconds >= 0 ? t("just now") : t("in a moment");
  if (seconds < 0 && span >= 86_400 && span < LONG_AHEAD) return spans.format(Math.round(span / 86_400), "day");
  const [length, unit] = SPANS.find(([seconds]) => span >= seconds);
  return spans.format(seconds >= 0 ? -Math.floor(span / length) : Math.round(span / length), unit);
}

function goOn() {
  if (document.hidden) return;
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const seconds = (Date.now() + ahead - Date.parse(time.dateTime)) / 1000;
    const awaited = time.closest("[data-due]"); // what is shown in its place once the time has come
    if (awaited && seconds >= 0) awaited.textContent = awaited.dataset.due;
    else if (time.textContent !== age(seconds)) time.textContent = age(seconds);
  }
}

export function tick() {
  setInterval(goOn, EVERY);
  document.addEventListener("visibilitychange", goOn);
}

// Shows moments in the reader's own time zone; the page has them in UTC.
const shape = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const seconds = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

export function times(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = exact.format(at);
    if ("time" in time.dataset) time.textContent = (time.dataset.time === "seconds" ? seconds : shape).format(at);
  }
}

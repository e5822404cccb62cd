// Adds the reader's own time to times, which the pages have in UTC as the filters, the charts and the API do.
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

export function times(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) time.title = `${exact.format(at)} where you are`;
  }
}

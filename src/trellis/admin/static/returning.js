// Keeps *Back* usable. The browser can show the answer to a form again only by sending the form again, which it asks about. So when
// somebody continues from the preview of a change, the preview's entry in the history is replaced by the page that it returns to.
export function returning() {
  document.addEventListener("submit", (event) => {
    const address = event.target.dataset.returns;
    if (address && !event.defaultPrevented) history.replaceState(history.state, "", address);
  });
}

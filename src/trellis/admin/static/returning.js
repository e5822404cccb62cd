// Keeps *Back* usable. The answer to a form can be shown again only by sending that form again, which the browser asks about; so, as
// somebody goes on from the preview of a change, the preview's place in the history becomes that of the page that it leads back to.
export function returning() {
  document.addEventListener("submit", (event) => {
    const address = event.target.dataset.returns;
    if (address && !event.defaultPrevented) history.replaceState(history.state, "", address);
  });
}

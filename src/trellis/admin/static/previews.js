// The preview of HTML: sends the form as it is sent without scripts, and shows the preview of the answer on this page. The service
// returns the HTML that would be saved.
import { t } from "./language.js";
import { ask, attempt, Failure } from "./requests.js";

export function previews(root) {
  for (const button of root.querySelectorAll("[data-preview]")) {
    button.addEventListener("click", (event) => {
      event.preventDefault();
      attempt(() => show(button), { what: t("No preview available.") });
    });
  }
}

async function show(button) {
  const body = new URLSearchParams(new FormData(button.form));
  body.set(button.name, button.value);
  const answer = await ask(button, button.form.action, { method: "POST", body });
  if (!answer) return;
  if (!answer.ok) throw new Failure(answer.status === 401 ? t("You are signed out.") : t("The service refused this. Reload the page."), true);
  const id = button.dataset.preview;
  const said = new DOMParser().parseFromString(answer.text, "text/html").getElementById(id);
  document.getElementById(id)?.replaceChildren(...(said?.childNodes ?? []));
}

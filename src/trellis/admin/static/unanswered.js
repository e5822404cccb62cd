// Says so if the answer to a form does not arrive: the form may have taken effect. A service worker (answers.js) lets the page stay.
import { t } from "./language.js";
import { tellUnsure } from "./leaving.js";
import { say } from "./messages.js";
import { tellKept } from "./unsaved.js";

export function unanswered() {
  const workers = navigator.serviceWorker; // only at an address with https, or on this machine
  if (!workers) return;
  workers.register(new URL("answers.js", import.meta.url), { scope: new URL("../../", import.meta.url).pathname }).catch(() => {});
  let sent = null;
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    const { target: form, submitter: button } = event;
    sent = { form, button, to: button?.hasAttribute("formaction") ? button.formAction : form.action };
  });
  workers.addEventListener("message", ({ data }) => {
    if (data.unanswered !== sent?.to) return; // another tab's
    const { form, button } = sent;
    sent = null;
    document.dispatchEvent(new CustomEvent("panel:stayed"));
    if ("leaves" in form.dataset) return tellUnsure(form);
    const told = t("The connection was lost before the answer arrived, so this may have been done. If you send it again, nothing is done twice.");
    say(tellKept(form, told), { bad: true, stay: true, buttons: [[t("Send again"), () => form.isConnected && form.requestSubmit(button)]] });
  });
}

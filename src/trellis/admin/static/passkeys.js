// Passkeys: asks the browser for one and sends its answer with the form. Without this script, passwords and codes still work.
import { t } from "./language.js";
import { say } from "./messages.js";
import { askJson, Failure } from "./requests.js";

const encode = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const decode = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
const decodeIds = (list = []) => list.map((one) => ({ ...one, id: decode(one.id) }));

if ("PublicKeyCredential" in globalThis) {
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    form.hidden = false;
    form.addEventListener("submit", (event) => {
      if (form.elements.passkey.value) return; // the browser has answered, and the form with the answer is being sent
      event.preventDefault();
      ask(form);
    });
  }
} else if (document.querySelector("form[data-passkey=create]")) {
  say(t("This browser does not support passkeys, or not at this address. Set up an authenticator app instead."), { bad: true, stay: true });
}

async function ask(form) {
  const button = form.querySelector("button[type=submit]");
  if (button.disabled) return;
  button.disabled = true; // the browser accepts one request at a time
  try {
    const options = decodeOptions(await askJson(form, form.dataset.options));
    const made = await navigator.credentials[form.dataset.passkey]({ publicKey: options }); // "get" or "create"
    form.elements.passkey.value = JSON.stringify(describe(made));
    button.disabled = false;
    form.requestSubmit(button);
  } catch (error) {
    button.disabled = false;
    button.focus();
    say(explain(error, form), { bad: true });
  }
}

function decodeOptions(told) {
  const options = { ...told, challenge: decode(told.challenge) };
  if (told.user) options.user = { ...told.user, id: decode(told.user.id) };
  if (told.excludeCredentials) options.excludeCredentials = decodeIds(told.excludeCredentials);
  if (told.allowCredentials) options.allowCredentials = decodeIds(told.allowCredentials);
  return options;
}

function describe(made) {
  const response = { clientDataJSON: encode(made.response.clientDataJSON) };
  for (const name of ["attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (made.response[name]) response[name] = encode(made.response[name]);
  }
  return { id: made.id, rawId: encode(made.rawId), type: made.type, response, clientExtensionResults: {} };
}

function explain(error, form) {
  if (error instanceof Failure) return error.message;
  if (error.name === "InvalidStateError") return t("You already have a passkey on that device.");
  if (error.name === "SecurityError") return t("Passkeys work only at {origin}. Open the panel there.", { origin: form.dataset.origin });
  if (error.name === "NotAllowedError") return t("The browser returned no passkey: the request was cancelled or timed out, or there is no passkey here.");
  return t("The browser could not do this. Try again or use another method.");
}

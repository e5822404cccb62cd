// A service worker: without it, the browser would replace the page by one of its own if the answer to a form does not arrive, or by a
// proxy's. Then this one lets the page stay as it is, with what was typed, and tells it. It keeps nothing, and touches nothing else.
const NO_CONTENT = 204; // the answer with which a browser stays on its page
const FAILED = 502; // from here on a status means that the service could not answer

addEventListener("install", () => skipWaiting());
addEventListener("fetch", (event) => {
  const { mode, method, referrer } = event.request;
  // What another site sends is left to the browser, which tells the service where it came from.
  if (mode === "navigate" && method === "POST" && referrer.startsWith(`${location.origin}/`)) event.respondWith(send(event.request));
});

async function send(request) {
  try {
    const answer = await fetch(request);
    if (answer.status < FAILED || answer.headers.has("X-Request-Id")) return answer; // the service's own pages say what has happened
  } catch {
    // the connection broke
  }
  for (const page of await clients.matchAll({ type: "window", includeUncontrolled: true })) page.postMessage({ unanswered: request.url });
  return new Response(null, { status: NO_CONTENT });
}

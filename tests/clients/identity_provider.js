// An OpenID provider on this machine: the package oidc-provider, whose forms take any password. It prints its issuer.
// Arguments: the address of the panel, and a file with accounts, which is read for each sign-in: {"ada": {"name": …, "groups": […]}}.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const [panel, accounts] = process.argv.slice(2);
const server = createServer();

server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: "trellis",
        client_secret: "a secret of the tests, with / and +",
        redirect_uris: [`${panel}/admin/sign-on/callback`],
        post_logout_redirect_uris: [`${panel}/admin/sign-in`],
      },
    ],
    claims: { openid: ["sub"], profile: ["name"], email: ["email"], groups: ["groups"] },
    cookies: { keys: ["a key of the tests"] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@example.com`, ...JSON.parse(readFileSync(accounts, "utf8"))[id] }),
    }),
    pkce: { required: () => true },
    scopes: ["openid", "profile", "email", "groups"],
    ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 3600, IdToken: 60, Interaction: 600, Session: 3600 },
  });
  server.on("request", provider.callback());
  console.log(`issuer ${issuer}`);
});

// An issuer of tokens for tests, with real keys and signatures. It serves its key set over HTTP, and can
// change its keys.
import { generateKeyPairSync, sign } from "node:crypto";
import { createServer } from "node:http";

export const AUDIENCE = "aqlite-test";
export const rsa = pair("rsa", { modulusLength: 2048 });
export const ec = pair("ec", { namedCurve: "P-256" });

/** Creates a pair of keys, with the name of its algorithm. */
export function pair(kind, options) {
  const keys = generateKeyPairSync(kind, options);
  return { ...keys, alg: kind === "rsa" ? "RS256" : "ES256" };
}

export const base64url = (value) => Buffer.from(value).toString("base64url");
export const now = () => Math.floor(Date.now() / 1000);

/** An issuer: its key set, the number of requests for the key set, and its tokens. */
export class Issuer {
  keys = new Map([
    ["rsa", rsa],
    ["ec", ec],
  ]);
  asked = 0;
  /** The delay of each answer, in milliseconds. */
  delay = 0;

  static async start() {
    const issuer = new Issuer();
    issuer.listener = createServer((_, answer) => {
      issuer.asked += 1;
      const set = [...issuer.keys].map(([kid, { publicKey, alg }]) => ({
        ...publicKey.export({ format: "jwk" }),
        kid,
        alg,
        use: "sig",
      }));
      setTimeout(
        () =>
          answer
            .writeHead(200, { "content-type": "application/json" })
            .end(JSON.stringify({ keys: set })),
        issuer.delay,
      );
    });
    await new Promise((resolve) => issuer.listener.listen(0, "127.0.0.1", resolve));
    issuer.name = `http://127.0.0.1:${issuer.listener.address().port}`;
    return issuer;
  }

  /** The variables of a deployment that trusts this issuer. */
  get variables() {
    return {
      AUTH: "jwt",
      JWT_ISSUER: this.name,
      JWT_AUDIENCE: AUDIENCE,
      JWT_KEYS: `${this.name}/jwks`,
    };
  }

  /** Returns a signed token. */
  token(claims, { key = ec, kid = "ec", header = {}, signature } = {}) {
    const head = { alg: key.alg, kid, typ: "JWT", ...header };
    const body = { iss: this.name, aud: AUDIENCE, sub: "ann", exp: now() + 600, ...claims };
    const signed = `${base64url(JSON.stringify(head))}.${base64url(JSON.stringify(body))}`;
    const bytes = signature
      ? signature(signed)
      : sign("sha256", Buffer.from(signed), { key: key.privateKey, dsaEncoding: "ieee-p1363" });
    return `${signed}.${base64url(bytes)}`;
  }

  /** Returns the header `Authorization` with a token. */
  bearer(claims, options) {
    return { authorization: `Bearer ${this.token(claims, options)}` };
  }

  /** Returns the header `Authorization` with a token for a subject with these roles. */
  as(...roles) {
    return this.bearer({ roles });
  }

  stop() {
    this.listener.close();
  }
}

// The functions of the runtime that authentication needs: fetching the keys of an issuer, and
// WebCrypto.

/** The timeout of a request to an issuer, in milliseconds. */
const TIMEOUT = 5000;

const ALGORITHMS = {
  RS256: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
  ES256: { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" },
};

/** Fetches the text at an address. Fails unless the status is 200. Redirects are not followed. */
export async function fetchText(url) {
  const answer = await fetch(url, {
    redirect: "manual",
    signal: AbortSignal.timeout(TIMEOUT),
    headers: { accept: "application/json" },
  });
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
  return answer.text();
}

/** Returns whether a signature of the data was made with the private key of `jwk`. */
export async function verify(algorithm, jwk, data, signature) {
  const parameters = ALGORITHMS[algorithm];
  // WebCrypto also compares `alg`, `use` and `key_ops`. The core has checked the first two.
  const { kty, crv, n, e, x, y } = JSON.parse(jwk);
  const members = { kty, crv, n, e, x, y };
  const key = await crypto.subtle.importKey("jwk", members, parameters, false, ["verify"]);
  return crypto.subtle.verify(parameters, key, signature, data);
}

/** Derives 32 bytes from a password by PBKDF2 with SHA-256. */
export async function derive(password, salt, iterations) {
  const key = await crypto.subtle.importKey(
    "raw",
    new TextEncoder().encode(password),
    "PBKDF2",
    false,
    ["deriveBits"],
  );
  return new Uint8Array(
    await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", salt, iterations }, key, 256),
  );
}

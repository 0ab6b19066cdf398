// What the gate asks of the runtime: keys of an issuer, and WebCrypto.

/** How long an issuer may take, in milliseconds. */
const PATIENCE = 5000;

const ALGORITHMS = {
  RS256: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
  ES256: { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" },
};

/** The text at an address; fails unless it answers 200 itself. */
export async function fetchText(url) {
  const answer = await fetch(url, {
    redirect: "manual",
    signal: AbortSignal.timeout(PATIENCE),
    headers: { accept: "application/json" },
  });
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
  return answer.text();
}

/** Is this the key's signature of the data? */
export async function verify(algorithm, jwk, data, signature) {
  const how = ALGORITHMS[algorithm];
  const { kty, crv, n, e, x, y } = JSON.parse(jwk);
  const key = await crypto.subtle.importKey("jwk", { kty, crv, n, e, x, y }, how, false, [
    "verify",
  ]);
  return crypto.subtle.verify(how, key, signature, data);
}

/** 32 bytes from a password. */
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

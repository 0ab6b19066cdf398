// HTTP/2 of the program, without TLS ("prior knowledge"), which has many requests in one connection.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:http2";
import { after, before } from "node:test";
import { Issuer } from "./issuer.mjs";
import { V1, freshState, program, start, testOfProgram } from "./server.mjs";

let issuer;
let server;

before(async () => {
  if (!program) return;
  issuer = await Issuer.start();
  server = await start(freshState("http2"), { ...issuer.variables, AUTH: "jwt" });
});
after(async () => {
  await server?.stop();
  issuer?.stop();
});

/** Calls a function with a new connection. */
async function connected(work) {
  const session = connect(`http://127.0.0.1:${server.port}`);
  try {
    await once(session, "connect");
    return await work(session);
  } finally {
    session.destroy();
  }
}

/** Sends the headers of a request, with an incomplete body if `length` is given. Returns the status. */
async function status(session, headers, length) {
  const sent = length === undefined ? {} : { "content-length": String(length) };
  const stream = session.request({ ...headers, ...sent }, { endStream: length === undefined });
  // The server breaks off a body that nothing reads.
  stream.on("error", () => {});
  const [received] = await once(stream, "response");
  stream.close();
  return received[":status"];
}

testOfProgram("a request with too many headers is refused", () =>
  connected(async (session) => {
    const many = Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`x-${n}`, "a"]));
    assert.equal(await status(session, { ":path": "/health", ...many }), 431);
    assert.equal(await status(session, { ":path": "/health" }), 200);
  }),
);

testOfProgram("requests without permission are answered without the rest of their bodies", () =>
  connected(async (session) => {
    for (const [method, expected] of [
      ["OPTIONS", 200],
      ["POST", 401],
    ]) {
      const headers = { ":method": method, ":path": `${V1}/ehr` };
      const sent = Array.from({ length: 100 }, () => status(session, headers, 1_000_000));
      assert.deepEqual(new Set(await Promise.all(sent)), new Set([expected]), method);
    }
    assert.equal(await status(session, { ":path": "/health" }), 200);
  }),
);

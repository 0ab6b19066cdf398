// A kill test: workerd is killed while compositions are committed; after each start everything that was acknowledged must be there,
// and nothing may be there by halves. Runs for MINUTES (default 2).
import assert from "node:assert/strict";
import { ITS, freshState, sample, start, uploadTemplates } from "./server.mjs";

const until = Date.now() + Number(process.env.MINUTES ?? 2) * 60_000;
const data = sample();
const { ehr_id: ehrId } = data.compositions[0];
const state = freshState("kill");
const acknowledged = new Set();
let sent = 0;
let rounds = 0;

/** Commits one after another until the server is gone. */
async function writer(server) {
  for (;;) {
    const { composition } = data.compositions[sent % data.compositions.length];
    sent += 1;
    let answer;
    try {
      answer = await server.send("POST", `${ITS}/ehr/${ehrId}/composition`, { body: JSON.stringify(composition) });
    } catch {
      return;
    }
    if (answer.status === 201) acknowledged.add(answer.headers.get("etag").replaceAll('"', ""));
    else if (answer.status < 500) throw new Error(`${answer.status} ${answer.text}`);
  }
}

/** Everything acknowledged is found; everything found is whole. */
async function verify(server) {
  const found = (await server.rows("SELECT c/uid/value AS uid FROM EHR e CONTAINS COMPOSITION c")).map(([uid]) => uid);
  for (const uid of acknowledged) assert.ok(found.includes(uid), `${uid} was acknowledged and is lost`);
  for (const uid of found.slice(-20)) {
    const answer = await server.send("GET", `${ITS}/ehr/${ehrId}/versioned_composition/${uid.split("::")[0]}/version/${uid}`);
    assert.equal(answer.status, 200, `${uid}: ${answer.text}`);
    const contribution = await server.send("GET", `${ITS}/ehr/${ehrId}/contribution/${answer.json.contribution.id.value}`);
    assert.equal(contribution.status, 200, `the contribution of ${uid}: ${contribution.text}`);
  }
  return found.length;
}

let server = await start(state);
await uploadTemplates(server, data);
assert.equal((await server.send("PUT", `${ITS}/ehr/${ehrId}`)).status, 201);
while (Date.now() < until) {
  const writers = [writer(server), writer(server), writer(server)];
  await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 1500));
  await server.stop("SIGKILL");
  await Promise.all(writers);
  server = await start(state);
  const found = await verify(server);
  rounds += 1;
  console.log(`kill ${rounds}: ${acknowledged.size} acknowledged, ${found} found, of ${sent} sent`);
}
await server.stop();
console.log(`kill test: ${rounds} kills, nothing acknowledged was lost`);

// Bulk load, export and import in workerd. An export is imported into an empty repository, and exported
// again.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync, rmSync, truncateSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { exportTo, importFrom } from "./transfer.mjs";
import { ITS, V1, freshState, root, sample, start, uploadTemplates } from "./server.mjs";

const data = sample();
const folder = join(root, "target/e2e");
const ehrIds = [...new Set(data.compositions.map((entry) => entry.ehr_id))];
const lines = [
  ...ehrIds.map((ehr_id) => JSON.stringify({ ehr_id, ehr_status: null })),
  ...data.compositions.map(({ ehr_id, composition }) => JSON.stringify({ ehr_id, composition })),
];
let server;
let other;

before(async () => {
  server = await start(freshState("transfer-from"), { AUTH: "none", ADMIN: "true" });
  other = await start(freshState("transfer-to"), { AUTH: "none", ADMIN: "true" });
  await uploadTemplates(server, data);
});
after(() => Promise.all([server, other].filter(Boolean).map((each) => each.stop())));

const load = async (body, headers = {}) => {
  const answer = await server.send("POST", `${V1}/ehr/bulk`, {
    body,
    headers,
    type: "application/x-ndjson",
  });
  assert.equal(answer.status, 200, answer.text);
  return answer.text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
};
const count = async (from) =>
  (await from.rows("SELECT count(*) AS n FROM EHR e CONTAINS COMPOSITION c"))[0][0];

test("a bulk load of several megabytes is answered line by line, and a repetition loads nothing", async () => {
  const broken = JSON.stringify({ ehr_id: ehrIds[0], composition: { _type: "COMPOSITION" } });
  const body = [...lines, broken].join("\n");
  const outcomes = await load(body, { "idempotency-key": "first" });
  assert.equal(outcomes.length, lines.length + 1);
  assert.deepEqual(
    outcomes.map((outcome) => outcome.line),
    outcomes.map((_, index) => index + 1),
  );
  assert.ok(
    outcomes.slice(0, -1).every((outcome) => outcome.status === 201),
    JSON.stringify(outcomes.find((outcome) => outcome.status !== 201)),
  );
  assert.equal(outcomes.at(-1).status, 400);
  assert.equal(await count(server), data.compositions.length);
  const again = await load(body, { "idempotency-key": "first" });
  assert.deepEqual(
    again.slice(0, -1).map((outcome) => outcome.status),
    lines.map(() => 200),
  );
  assert.deepEqual(
    again.slice(0, -1).map((outcome) => outcome.uid),
    outcomes.slice(0, -1).map((outcome) => outcome.uid),
  );
  assert.equal(await count(server), data.compositions.length);
});

test("a body that arrives in many pieces is read unchanged, also a compressed one", async () => {
  const before = (await server.rows("SELECT count(*) AS n FROM EHR e"))[0][0];
  const ids = Array.from({ length: 260 }, () => crypto.randomUUID());
  // Random blanks and tabs, because a body that compresses more than 200-fold is refused.
  const blanks = (length) =>
    randomBytes(length)
      .map((byte) => (byte & 1 ? 32 : 9))
      .toString();
  const line = (ehr_id, index) =>
    `{"ehr_id":"${ehr_id}",${blanks(50_000 + 997 * (index % 101))}"ehr_status":null}`;
  const body = ids.map(line).join("\n");
  assert.ok(body.length > 5 * 4_000_000);
  for (const [sent, headers, status] of [
    [gzipSync(body), { "content-encoding": "gzip" }, 201],
    [body, {}, 409],
  ]) {
    const outcomes = await load(sent, headers);
    assert.deepEqual(
      outcomes.map((outcome) => [outcome.line, outcome.status]),
      ids.map((_, index) => [index + 1, status]),
    );
  }
  assert.equal((await server.rows("SELECT count(*) AS n FROM EHR e"))[0][0], before + ids.length);
});

test("an export of an imported export is equal byte by byte", async () => {
  const [from, to] = ["from.ndjson", "to.ndjson"].map((name) => join(folder, name));
  for (const file of [from, to]) rmSync(file, { force: true });
  const composition = data.compositions[0];
  const [uid] = (
    await server.rows(
      `SELECT c/uid/value FROM EHR e[ehr_id/value='${composition.ehr_id}'] CONTAINS COMPOSITION c`,
    )
  )[0];
  assert.equal(
    (await server.send("DELETE", `${ITS}/ehr/${composition.ehr_id}/composition/${uid}`)).status,
    204,
  );
  await exportTo(`http://127.0.0.1:${server.port}${V1}`, from);
  const whole = readFileSync(from, "utf8");
  truncateSync(from, Math.floor(statSync(from).size * 0.7));
  await exportTo(`http://127.0.0.1:${server.port}${V1}`, from);
  assert.ok(
    readFileSync(from, "utf8") === whole,
    "an export that broke off goes on where it stopped",
  );
  const counts = await importFrom(`http://127.0.0.1:${other.port}${V1}`, from);
  assert.equal(counts.there, 0);
  assert.equal((await importFrom(`http://127.0.0.1:${other.port}${V1}`, from)).new, 0);
  await exportTo(`http://127.0.0.1:${other.port}${V1}`, to);
  assert.ok(readFileSync(to, "utf8") === whole, "the second export differs");
  assert.equal(await count(other), data.compositions.length - 1);
});

test("a load may be longer than the limit of a body if none of its lines is", async () => {
  const longest =
    Math.max(...[...data.templates, ...lines].map((text) => Buffer.byteLength(text))) + 1;
  const small = await start(freshState("transfer-small"), {
    AUTH: "none",
    LIMIT_BODY: String(longest),
  });
  try {
    await uploadTemplates(small, data);
    const load = (body) =>
      small.send("POST", `${V1}/ehr/bulk`, { body, type: "application/x-ndjson" });
    const answers = (await load(lines.join("\n"))).text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      answers.map(({ line, status }) => [line, status]),
      lines.map((_, index) => [index + 1, 201]),
    );
    assert.equal((await load("x".repeat(longest + 1))).status, 413);
    const cut = (
      await load(`${lines.slice(0, 1).join("\n")}\n${" ".repeat(longest)}\n${lines[1]}`)
    ).text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      cut.map(({ status, code }) => status ?? code),
      [409, 413],
    );
  } finally {
    await small.stop();
  }
});

// A kill test. workerd is killed at random moments while clients commit contributions of several
// members. After each restart, every acknowledged contribution must be stored as a whole, and no
// contribution may be stored in part. COMMITS (1,000) and KILLS (15) set the length of the test.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { recordOf } from "./transfer.mjs";
import { ITS, V1, freshState, sample, startDev, uploadTemplates } from "./server.mjs";

const COMMITS = Number(process.env.COMMITS ?? 1_000);
const KILLS = Number(process.env.KILLS ?? 15);
const WRITERS = 4;
const MEMBERS = 3;

const data = sample();
const ehrIds = [...new Set(data.compositions.map((entry) => entry.ehr_id))].slice(0, WRITERS);
/** Digests of the contents that were sent, by the uid of the acknowledged contribution. */
const acknowledged = new Map();
/** The digests of the stored contents, by the uid of each contribution that was read so far. */
const held = new Map();
let last;
let sent = 0;

/** All servers that were started. Their logs are shown if the test fails. */
const servers = [];

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const digest = (content) => createHash("sha256").update(JSON.stringify(content)).digest("hex");
const coded = (code) => ({
  _type: "DV_CODED_TEXT",
  value: "creation",
  defining_code: {
    _type: "CODE_PHRASE",
    terminology_id: { _type: "TERMINOLOGY_ID", value: "openehr" },
    code_string: code,
  },
});
const audit = {
  _type: "AUDIT_DETAILS",
  system_id: "client",
  committer: { _type: "PARTY_IDENTIFIED", name: "Dr. Ek" },
  change_type: coded("249"),
};

/** Returns the pids of the workerd processes of a server: those in its process group. */
function workerds(server) {
  const isOurs = (pid) => {
    try {
      const [, name, rest] = /^\d+ \((.*)\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"));
      return name.startsWith("workerd") && Number(rest.split(" ")[2]) === server.child.pid;
    } catch {
      return false;
    }
  };
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && isOurs(name))
    .map(Number);
}

/** Commits one contribution after another until the server is killed or COMMITS are acknowledged. */
async function writer(server, ehrId) {
  while (acknowledged.size < COMMITS && !server.killed) {
    const members = Array.from(
      { length: MEMBERS },
      (_, index) => data.compositions[(sent + index) % data.compositions.length].composition,
    );
    sent += 1;
    const body = JSON.stringify({
      versions: members.map((composition) => ({ commit_audit: audit, data: composition })),
      audit,
    });
    let answer;
    try {
      answer = await server.send("POST", `${ITS}/ehr/${ehrId}/contribution`, { body });
    } catch (error) {
      // It is unknown whether this contribution was committed. Without a kill, no connection should
      // break, so this is logged.
      if (!server.killed) console.log(`a connection broke: ${error.cause ?? error}`);
      await sleep(100);
      continue;
    }
    if (answer.status === 201)
      acknowledged.set(
        answer.headers.get("etag").replaceAll('"', ""),
        members.map(({ content }) => digest(content)),
      );
    else if (answer.status < 500) throw new Error(`${answer.status} ${answer.text}`);
  }
}

/** Reads the contributions after the last one read. Each must have all versions that it lists. */
async function read(server) {
  for (let ended = false; !ended;) {
    const answer = await server.send("GET", `${V1}/admin/export${last ? `?after=${last}` : ""}`);
    assert.equal(answer.status, 200, answer.text);
    for (const line of answer.text.trim().split("\n")) {
      const { contribution, versions, end } = JSON.parse(recordOf(line));
      ended ||= end === true;
      if (!contribution) continue;
      last = contribution.uid.value;
      assert.deepEqual(
        versions.map((version) => version.uid.value),
        contribution.versions.map((reference) => reference.id.value),
        `${last} is stored in part`,
      );
      held.set(
        last,
        versions.map((version) => digest(version.data.content ?? null)),
      );
    }
  }
}

/**
 * Checks that every acknowledged contribution is stored as it was sent, and that every composition that
 * a query finds belongs to a stored contribution.
 */
async function verify(server) {
  await read(server);
  for (const [uid, contents] of acknowledged) {
    assert.ok(held.has(uid), `${uid} was acknowledged and is lost`);
    assert.deepEqual(held.get(uid), contents, `${uid} is not what was sent`);
  }
  const [[found]] = await server.rows("SELECT count(*) AS n FROM EHR e CONTAINS COMPOSITION c");
  assert.equal(
    found,
    (held.size - ehrIds.length) * MEMBERS,
    "there are compositions without a contribution",
  );
}

async function open() {
  const server = await startDev(state, { AUTH: "none", ADMIN: "true" });
  servers.push(server);
  return server;
}

/** Kills workerd and its parent process. The next server starts on the files that they left. */
async function kill(server) {
  const pids = workerds(server);
  assert.ok(pids.length > 0, "there is no workerd to kill");
  server.killed = true;
  for (const pid of pids) process.kill(pid, "SIGKILL");
  await server.stop("SIGKILL");
}

/** Writes until `moment` commits are acknowledged, and kills the server after a random delay. */
async function writeAndKill(server, moment) {
  let writing = true;
  const ended = () => (writing = false);
  const writers = Promise.all(ehrIds.map((ehrId) => writer(server, ehrId)));
  writers.then(ended, ended);
  while (writing && acknowledged.size < moment) await sleep(5);
  await sleep(Math.random() * 50);
  await Promise.all([kill(server), writers]);
}

async function run() {
  let server = await open();
  await uploadTemplates(server, data);
  for (const ehrId of ehrIds)
    assert.equal((await server.send("PUT", `${ITS}/ehr/${ehrId}`)).status, 201);
  const moments = Array.from({ length: KILLS }, () => Math.floor(Math.random() * COMMITS)).sort(
    (a, b) => a - b,
  );
  for (const [index, moment] of moments.entries()) {
    await writeAndKill(server, moment);
    server = await open();
    await verify(server);
    console.log(
      `kill ${index + 1}: ${acknowledged.size} acknowledged, ${held.size - ehrIds.length} held, of ${sent} sent`,
    );
  }
  await Promise.all(ehrIds.map((ehrId) => writer(server, ehrId)));
  await verify(server);
}

const state = freshState("kill");
try {
  await run();
} catch (error) {
  for (const [index, { log }] of servers.entries())
    console.error(`what server ${index + 1} of ${servers.length} said:\n${log}`);
  throw error;
} finally {
  await servers.at(-1)?.stop("SIGKILL");
}
console.log(
  `kill test: ${KILLS} kills during ${acknowledged.size} commits of ${MEMBERS} compositions; nothing acknowledged was lost, nothing is there by halves`,
);

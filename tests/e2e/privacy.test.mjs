// The files of a local deployment after a physical deletion, and the answers of instances and KV after
// a reset.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { ITS, V1, freshState, program, root, start } from "./server.mjs";

const json = (name) =>
  JSON.parse(readFileSync(join(root, "tests/cases/rest", `${name}.json`), "utf8"));
const template = readFileSync(join(root, "tests/cases/template/small.opt"), "utf8");
const open = { AUTH: "none", ADMIN: "true" };
const hasShell = spawnSync("sqlite3", ["-version"]).status === 0;

/** Returns a name of this length. None of its characters occurs in any other name or file. */
const name = (length) =>
  String.fromCodePoint(...Array.from({ length }, (_, n) => 0xe000 + length * 20 + n));
const lengths = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
const ehr = (length) => `6ba7b810-9dad-41d1-80b4-0000000000${String(length).padStart(2, "0")}`;

const files = (state) =>
  readdirSync(state, { recursive: true })
    .map((file) => join(state, file))
    .filter((file) => statSync(file).isFile());

/** Returns the lengths of the names of which a file of the server contains at least one character. */
function found(state) {
  const contents = files(state).map((file) => readFileSync(file));
  const occurs = (character) =>
    contents.some((content) => content.includes(Buffer.from(character)));
  return lengths.filter((length) => [...name(length)].some(occurs));
}

/** Rewrites the databases of a stopped service, which removes the bytes of deleted rows. */
function compact(state) {
  for (const file of files(state).filter((file) => /\.(sqlite|db|access-log)$/.test(file))) {
    const done = spawnSync(
      "sqlite3",
      [file, "PRAGMA secure_delete=ON; VACUUM; PRAGMA wal_checkpoint(TRUNCATE);"],
      { encoding: "utf8" },
    );
    assert.equal(done.status, 0, done.stderr);
  }
}

async function expect(status, answer) {
  const got = await answer;
  assert.equal(got.status, status, got.text);
  return got;
}

async function upload(server, text) {
  await expect(
    201,
    server.send("POST", `${ITS}/definition/template/adl1.4`, {
      body: text,
      type: "application/xml",
    }),
  );
}

/**
 * Creates an EHR whose documents contain a name in every place for free text. Returns the uid of its
 * composition.
 */
async function admit(server, length) {
  const [status, directory, weight] = ["status", "directory", "weight"].map(json);
  status.name.value = status.subject.external_ref.id.value = name(length);
  directory.name.value = directory.folders[0].name.value = name(length);
  weight.name.value =
    weight.composer.name =
    weight.archetype_details.rm_version =
    weight.content[0].name.value =
      name(length);
  await expect(
    201,
    server.send("PUT", `${ITS}/ehr/${ehr(length)}`, { body: JSON.stringify(status) }),
  );
  await expect(
    201,
    server.send("POST", `${ITS}/ehr/${ehr(length)}/directory`, { body: JSON.stringify(directory) }),
  );
  const made = await expect(
    201,
    server.send("POST", `${ITS}/ehr/${ehr(length)}/composition`, { body: JSON.stringify(weight) }),
  );
  return made.headers.get("etag").replaceAll('"', "");
}

test(
  "names of every length leave the files with their EHR, their object, and on a reset",
  { skip: !hasShell && "needs sqlite3" },
  async () => {
    const state = freshState("privacy");
    let server = await start(state, open);
    try {
      await upload(server, template);
      await expect(201, server.send("PUT", `${ITS}/ehr/${ehr(99)}`));
      await expect(
        201,
        server.send("POST", `${ITS}/ehr/${ehr(99)}/composition`, {
          body: JSON.stringify(json("weight")),
        }),
      );
      for (const length of [1, 2, 3, 4, 9, 10, 11, 12]) await admit(server, length);
      for (const length of [5, 6, 7, 8]) {
        const weight = json("weight");
        weight.name.value =
          weight.composer.name =
          weight.archetype_details.rm_version =
            name(length);
        const made = await expect(
          201,
          server.send("POST", `${ITS}/ehr/${ehr(99)}/composition`, {
            body: JSON.stringify(weight),
          }),
        );
        await expect(
          204,
          server.send(
            "DELETE",
            `${V1}/admin/ehr/${ehr(99)}/composition/${made.headers.get("etag").replaceAll('"', "")}`,
          ),
        );
      }
      assert.deepEqual(
        found(state).filter((length) => [1, 2, 3, 4, 9, 10, 11, 12].includes(length)),
        [1, 2, 3, 4, 9, 10, 11, 12],
      );
      for (const length of [1, 2, 3, 4])
        await expect(204, server.send("DELETE", `${V1}/admin/ehr/${ehr(length)}`));
      await server.stop();
      compact(state);
      assert.deepEqual(found(state), [9, 10, 11, 12]);
      server = await start(state, open);
      const count = "SELECT count(*) AS n FROM EHR e CONTAINS COMPOSITION c";
      assert.deepEqual(await server.rows(count), [[5]], "what was not removed is there");
      await expect(204, server.send("POST", `${V1}/admin/reset`));
      await server.stop();
      compact(state);
      assert.deepEqual(found(state), []);
      server = await start(state, open);
      await upload(server, template);
      await admit(server, 3);
      assert.deepEqual(await server.rows(count), [[1]]);
    } finally {
      await server.stop();
    }
  },
);

test("a template of the same name, version and time replaces the copies of KV and instances", async () => {
  const state = freshState("privacy-kv");
  let server = await start(state, open);
  const large = template.replace("</template>", `<!-- ${"x".repeat(60_000)} --></template>`);
  const get = async () =>
    (
      await expect(
        200,
        server.send("GET", `${ITS}/definition/template/adl1.4/weight.en.v2`, {
          headers: { accept: "application/xml" },
        }),
      )
    ).text;
  const exported = async () => (await expect(200, server.send("GET", `${V1}/admin/export`))).text;
  const load = async (record) => {
    const body = `{"digest":"${createHash("sha256").update(record).digest("hex")}","record":${record}}`;
    const answer = await expect(
      200,
      server.send("POST", `${V1}/admin/import`, { body, type: "application/x-ndjson" }),
    );
    assert.equal(JSON.parse(answer.text).status, 201, answer.text);
  };
  try {
    await upload(server, large);
    for (let i = 0; i < 3; i += 1) assert.equal(await get(), large);
    assert.ok(
      program ||
        files(state).some(
          (file) => file.includes("/kv/") && readFileSync(file).includes("x".repeat(1_000)),
        ),
      "KV holds it",
    );
    const record = /"record":(\{"definition":"template".*\})\}$/m.exec(await exported())[1];
    for (const change of ["first", "second"]) {
      await expect(204, server.send("POST", `${V1}/admin/reset`));
      await load(record.replace("<concept>Weight<", `<concept>Weight ${change}<`));
      assert.ok((await get()).includes(`Weight ${change}`), change);
      assert.ok((await get()).includes(`Weight ${change}`), `${change}, from KV`);
      assert.ok((await exported()).includes(`Weight ${change}`), `${change}, exported`);
      await server.stop();
      server = await start(state, open);
      assert.ok(
        (await exported()).includes(`Weight ${change}`),
        `${change}, exported by another instance`,
      );
      assert.ok((await get()).includes(`Weight ${change}`), `${change}, from another instance`);
    }
    await expect(200, server.send("DELETE", `${V1}/admin/template/weight.en.v2`));
    await load(record);
    assert.equal(await get(), large);
  } finally {
    await server.stop();
  }
});

// The XML that the worker writes is validated by the published schemas of openEHR, which are part of the
// external corpus.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ITS, freshState, root, sample, start, uploadTemplates } from "./server.mjs";

const named = process.env.AQLITE_CORPUS;
const schemas = join(named ?? join(root, "../shared/corpus"), "rm/reference/xsd");
const skip =
  !named && !existsSync(schemas) ? "no corpus with schemas: name one by AQLITE_CORPUS" : false;

test("XML that the worker writes is valid against the published schemas", { skip }, async () => {
  const data = sample();
  const folder = join(root, "target/e2e/xml-documents");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const server = await start(freshState("xml"));
  let written = 0;
  const keep = async (path) => {
    const answer = await server.send("GET", path, { headers: { accept: "application/xml" } });
    assert.equal(answer.status, 200, answer.text);
    assert.match(answer.headers.get("content-type"), /^application\/xml/);
    writeFileSync(join(folder, `${(written += 1)}.xml`), answer.text);
  };
  try {
    await uploadTemplates(server, data);
    const kinds = new Map(
      data.compositions.map((entry) => [
        entry.composition.archetype_details.template_id.value,
        entry,
      ]),
    );
    assert.ok(kinds.size >= 3);
    for (const { ehr_id: ehrId, composition } of kinds.values()) {
      const ehr = `${ITS}/ehr/${ehrId}`;
      if ((await server.send("PUT", ehr)).status === 201)
        await keep(`${ehr}/versioned_ehr_status/version`);
      const made = await server.send("POST", `${ehr}/composition`, {
        body: JSON.stringify(composition),
      });
      assert.equal(made.status, 201, made.text);
      const uid = made.headers.get("etag").replaceAll('"', "");
      await keep(`${ehr}/composition/${uid}`);
      await keep(`${ehr}/versioned_composition/${uid.split("::")[0]}/version/${uid}`);
    }
  } finally {
    await server.stop();
  }
  const checked = spawnSync("node", ["tests/conformance/xsd.mjs", schemas, folder], {
    cwd: root,
    encoding: "utf8",
  });
  assert.equal(checked.status, 0, checked.stderr);
  const found = JSON.parse(checked.stdout);
  assert.equal(Object.keys(found).length, written);
  for (const [file, messages] of Object.entries(found))
    assert.deepEqual(messages, [], `${folder}/${file}`);
});

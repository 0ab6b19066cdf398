// Contributions with the maximum number of versions, and long bodies in XML. Entries as in `bombs.mjs`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ITS, root } from "../server.mjs";
import { many } from "./bombs.mjs";
import { composition, newEhr, template, uidOf } from "./host.mjs";

/** The maximum number of versions of a contribution. */
const MOST = 1_000;

const file = (name) => readFileSync(join(root, "tests/cases/rest", name), "utf8");
const person = JSON.parse(file("person.json"));
const directory = JSON.parse(file("directory.json"));
const audit = (code) => JSON.parse(file("audit.json").replace("249", code));

const post = (host, path, body) =>
  host.send("POST", `${ITS}/${path}`, { body: JSON.stringify(body), keep: 1_000 });

/** Returns a VERSION after `preceding`; a first version if `preceding` is undefined. */
const version = (code, preceding, data) => ({
  _type: "ORIGINAL_VERSION",
  ...(preceding && {
    preceding_version_uid: { _type: "OBJECT_VERSION_ID", value: preceding },
  }),
  commit_audit: audit(code),
  ...(data && { data }),
});

const contribute = (host, owner, versions) =>
  post(host, `${owner}contribution`, { audit: audit("249"), versions });

/** Creates the maximum number of persons in one contribution. Returns their version uids. */
async function persons(host) {
  const ids = many(MOST, () => crypto.randomUUID());
  const versions = ids.map((id) => ({
    ...version("249", undefined, person),
    uid: { _type: "OBJECT_VERSION_ID", value: id },
  }));
  const made = await contribute(host, "demographic/", versions);
  assert.equal(made.status, 201, made.text);
  const { headers } = await host.expect(200, "GET", `${ITS}/demographic/person/${ids[0]}`);
  const [, system] = headers.etag.replaceAll('"', "").split("::");
  return (number) => ids.map((id) => `${id}::${system}::${number}`);
}

const chain = (uid, length) => {
  const [object, system] = uid.split("::");
  return many(length, (at) => version("251", `${object}::${system}::${at + 1}`, directory));
};

async function withDirectory(host) {
  const ehrId = await newEhr(host);
  const made = await host.expect(201, "POST", `${ITS}/ehr/${ehrId}/directory`, {
    body: JSON.stringify(directory),
  });
  return { ehrId, uid: uidOf(made) };
}

export const contributions = [
  {
    item: "contribution",
    title: `${MOST} parties are changed, then deleted`,
    prepare: persons,
    attack: async (host, uids) => [
      await contribute(
        host,
        "demographic/",
        uids(1).map((uid) => version("251", uid, person)),
      ),
      await contribute(
        host,
        "demographic/",
        uids(2).map((uid) => version("523", uid)),
      ),
    ],
    expected: [201],
  },
  {
    item: "contribution",
    title: `a chain of ${MOST} versions of a directory`,
    prepare: withDirectory,
    attack: async (host, { ehrId, uid }) => [
      await contribute(host, `ehr/${ehrId}/`, chain(uid, MOST)),
    ],
    expected: [201],
  },
  {
    item: "contribution",
    title: "a chain of 9,000 versions of a directory",
    prepare: withDirectory,
    attack: async (host, { ehrId, uid }) => [
      await contribute(host, `ehr/${ehrId}/`, chain(uid, 9_000)),
    ],
    expected: [413],
  },
  {
    item: "sizes",
    title: "four bodies of nine megabytes in XML at once",
    prepare: async (host) => {
      await host.expect([201, 409], "POST", `${ITS}/definition/template/adl1.4`, {
        body: template("weight.en.v2"),
        type: "application/xml",
      });
      const ehrId = await newEhr(host);
      const made = await host.expect(201, "POST", `${ITS}/ehr/${ehrId}/composition`, {
        body: JSON.stringify(composition()),
      });
      const read = await host.expect(200, "GET", `${ITS}/ehr/${ehrId}/composition/${uidOf(made)}`, {
        headers: { accept: "application/xml" },
      });
      const body = read.text
        .replace(/<uid [^>]*>.*?<\/uid>/s, "")
        .replace("<name><value>", `<name><value>${"a".repeat(9_000_000)}`);
      return { path: `${ITS}/ehr/${ehrId}/composition`, body };
    },
    attack: (host, { path, body }) =>
      Promise.all(
        many(4, () => host.send("POST", path, { body, type: "application/xml", keep: 1_000 })),
      ),
    expected: [201, 429],
    holds: (answers) => assert.ok(answers.some((answer) => answer.status === 201)),
  },
];

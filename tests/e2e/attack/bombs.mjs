// Small requests with a high cost: compressed bodies, templates, guides and queries. Each entry is one
// attack.
//
// | member | meaning |
// |---|---|
// | `item` | the class of the attack, as the threat model of docs/security.md names it |
// | `prepare` | stores the data that the attack needs; its result is the argument of `attack` |
// | `attack` | sends the requests; resolves to the answers |
// | `expected` | the permitted statuses of the answers |
// | `holds` | a further check of the answers |
import assert from "node:assert/strict";
import { constants, crc32, deflateRawSync } from "node:zlib";
import { V1, ITS } from "../server.mjs";
import { composition, newEhr, template } from "./host.mjs";

/**
 * The sizes of the attacks. The long ones are those of the attacks as they were found. The short ones are
 * the smallest that fail without the defence.
 */
export const LONG = process.env.AQLITE_ATTACK === "long";
const sized = (short, long) => (LONG ? long : short);

/** Returns the gzip form of one byte repeated `bytes` times, without allocating the expanded text. */
export function gzipBomb(bytes, byte = 0) {
  const block = Buffer.alloc(1_000_000, byte);
  const blocks = Math.ceil(bytes / block.length);
  const flushed = deflateRawSync(block, { finishFlush: constants.Z_FULL_FLUSH, level: 9 });
  const head = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3]);
  let checksum = 0;
  if (crc32) for (let i = 0; i < blocks; i += 1) checksum = crc32(block, checksum);
  const tail = Buffer.alloc(8);
  tail.writeUInt32LE(checksum, 0);
  tail.writeUInt32LE((blocks * block.length) % 2 ** 32, 4);
  return Buffer.concat([
    head,
    ...Array.from({ length: blocks }, () => flushed),
    deflateRawSync(Buffer.alloc(0)),
    tail,
  ]);
}

const gzipped = { "content-encoding": "gzip" };
export const post = (host, path, body, options = {}) =>
  host.send("POST", `${V1}${path}`, {
    body: typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    ...options,
  });
const query = (host, q, more = {}, options = {}) =>
  post(host, "/query/aql", { q, ...more }, options);
export const store = (host, text) =>
  host.send("POST", `${ITS}/definition/template/adl1.4`, { body: text, type: "application/xml" });

/** Returns the template with other occurrences of its POINT_EVENT. */
const occurrences = (
  id,
  lower,
  upper = `<upper_unbounded>true</upper_unbounded><lower>${lower}</lower>`,
) =>
  template(id, (text) =>
    text.replace(
      /(<rm_type_name>POINT_EVENT<\/rm_type_name>\s*<occurrences><lower_unbounded>false<\/lower_unbounded>)<upper_unbounded>true<\/upper_unbounded><lower>1<\/lower>/,
      `$1${upper}`,
    ),
  );

export const many = (count, make) => Array.from({ length: count }, (_, index) => make(index));

const ELEMENT =
  /<children xsi:type="C_COMPLEX_OBJECT">\s*<rm_type_name>ELEMENT<\/rm_type_name>[\s\S]*?<\/attributes>\s*<\/children>/;

/** Returns the template with `count` optional ELEMENTs instead of one. `code` returns the code of each. */
const wide = (id, count, code) =>
  template(id, (text) => {
    const [element] = ELEMENT.exec(text);
    const optional = element.replace(
      /<occurrences>[\s\S]*?<\/occurrences>/,
      "<occurrences><lower_unbounded>false</lower_unbounded><upper_unbounded>true</upper_unbounded><lower>0</lower></occurrences>",
    );
    return text.replace(element, () =>
      many(count, (index) => optional.replaceAll("at0004", code(index))).join(""),
    );
  });

/** Returns a composition with `count` ELEMENTs instead of one. */
const crowded = (id, count, code) =>
  composition(id, (document) => {
    const tree = document.content[0].data.events[0].data;
    const [element] = tree.items;
    tree.items = many(count, (index) => ({ ...element, archetype_node_id: code(index) }));
  });

/** Stores a template, requests everything that is generated from it, and commits compositions of it. */
async function committed(host, id, text, documents) {
  const answers = await generated(host, id, text);
  if (answers.length === 1) return answers;
  const ehrId = await newEhr(host);
  for (const document of documents)
    answers.push(await post(host, `/ehr/${ehrId}/composition`, document));
  return answers;
}

/** Returns a guide that doubles a text `times` times. */
const doubling = (id, times, first = "'aaaaaaaaaa'") =>
  JSON.stringify({
    id,
    gdl_version: "2.0",
    concept: "gt0001",
    language: { original_language: "ISO_639-1::en" },
    definition: {
      data_bindings: {
        gt0004: {
          model_id: "openEHR-EHR-EVALUATION.advice.v1",
          type: "OUTPUT",
          elements: { gt0005: { path: "/data[at0001]/items[at0002]" } },
        },
      },
      rules: {
        gt0011: {
          priority: 1,
          when: ["true==true"],
          then: [
            `$gt0005=${first}`,
            ...Array.from({ length: times }, () => "$gt0005=($gt0005+$gt0005)"),
          ],
        },
      },
    },
    ontology: {
      term_definitions: {
        en: {
          terms: {
            gt0001: { text: "Doubling" },
            gt0005: { text: "Advice" },
            gt0011: { text: "Double" },
          },
        },
      },
    },
  });

async function guide(host, text) {
  const stored = await post(host, "/definition/gdl", text);
  if (stored.status !== 201) return [stored];
  const ehrId = await newEhr(host);
  return [await host.send("GET", `${V1}/gdl/query/${ehrId}/${JSON.parse(text).id}`)];
}

/** Stores a template and requests everything that is generated from it. */
async function generated(host, id, text) {
  const stored = await store(host, text);
  if (stored.status !== 201) return [stored];
  const path = `${ITS}/definition/template/adl1.4/${id}`;
  const answers = [];
  for (const kind of [
    "kind=full",
    "kind=minimal",
    "kind=full&format=FLAT",
    "kind=full&format=STRUCTURED",
    "kind=full&format=XML",
  ])
    answers.push(await host.send("GET", `${path}/example?${kind}`));
  answers.push(await host.send("GET", `${path}/webtemplate`));
  return answers;
}

/** Returns an opening text `depth` times, and then a closing text `depth` times. */
const nested = (open, close, depth) => open.repeat(depth) + close.repeat(depth);

export const bombs = [
  {
    item: "body",
    title: "a compressed body of 1.5 MB that expands to 1.5 GB",
    attack: async (host) => [
      await post(host, "/query/aql", gzipBomb(sized(400e6, 1500e6)), { headers: gzipped }),
    ],
    expected: [413],
  },
  {
    item: "body",
    title: "ten compressed bodies at once",
    attack: (host) => {
      const bomb = gzipBomb(sized(100e6, 500e6));
      return Promise.all(
        Array.from({ length: 10 }, () => post(host, "/query/aql", bomb, { headers: gzipped })),
      );
    },
    expected: [413],
  },
  {
    item: "body",
    title: "a bulk load of compressed newlines",
    attack: async (host) => [
      await post(host, "/ehr/bulk", gzipBomb(sized(100e6, 300e6), 10), {
        headers: gzipped,
        type: "application/x-ndjson",
      }),
    ],
    expected: [200, 400, 413],
  },
  {
    item: "body",
    title: "a bulk load of one compressed line without end",
    attack: async (host) => [
      await post(host, "/ehr/bulk", gzipBomb(sized(200e6, 1500e6), 32), {
        headers: gzipped,
        type: "application/x-ndjson",
      }),
    ],
    expected: [413],
  },
  {
    item: "body",
    title: "an import of compressed newlines",
    attack: async (host) => [
      await post(host, "/admin/import", gzipBomb(sized(100e6, 300e6), 10), {
        headers: gzipped,
        type: "application/x-ndjson",
      }),
    ],
    expected: [200, 400, 413],
  },
  {
    item: "body",
    title: "bodies whose clients stall",
    attack: (host) =>
      Promise.all(
        Array.from({ length: sized(40, 200) }, () =>
          post(
            host,
            "/query/aql",
            { q: "SELECT e FROM EHR e LIMIT 1" },
            { stall: sized(2_000, 20_000) },
          ),
        ),
      ),
    expected: [200, 408, 429],
  },
  {
    item: "body",
    title: "many long headers",
    attack: async (host) => {
      const headers = Object.fromEntries(
        Array.from({ length: 60 }, (_, index) => [`x-filler-${index}`, "y".repeat(1_000)]),
      );
      return Promise.all(
        Array.from({ length: 50 }, () => host.send("GET", `${V1}/definition/query`, { headers })),
      );
    },
    expected: [200, 429, 431],
  },
  {
    item: "body",
    title: "headers with lists of thousands of members",
    attack: async (host) => {
      const lists = {
        accept: "application/x;q=0.1,".repeat(700),
        "if-none-match": '"a",'.repeat(3_000),
        prefer: "return=minimal,".repeat(800),
        "openehr-item-tag": 'key="a",value="b";'.repeat(700),
      };
      return Promise.all(
        Object.entries(lists).map(([name, value]) =>
          host.send("GET", `${V1}/definition/query`, { headers: { [name]: value } }),
        ),
      );
    },
    expected: [200, 400, 406, 431],
  },
  {
    item: "body",
    title: "documents nested a million levels deep",
    attack: async (host) => {
      const ehrId = await newEhr(host);
      const depth = sized(300_000, 1_000_000);
      return [
        await post(host, `/ehr/${ehrId}/composition`, nested('{"a":', "}", depth)),
        await post(host, `/ehr/${ehrId}/composition`, nested("<a>", "</a>", depth), {
          type: "application/xml",
        }),
        await post(host, "/query/aql", nested("[", "]", depth)),
        await query(host, `SELECT e FROM EHR e WHERE ${nested("(", ")", 100_000)}`),
        await query(
          host,
          `SELECT e FROM EHR e WHERE ${"NOT ".repeat(60_000)} e/ehr_id/value = 'x'`,
        ),
        await query(host, `SELECT e FROM EHR e ${"CONTAINS COMPOSITION c ".repeat(10_000)}`),
        await post(host, "/definition/gdl", nested('{"a":', "}", depth)),
        await store(host, nested("<a>", "</a>", depth)),
        await host.send("POST", `${V1}/ehr/${ehrId}/composition`, {
          body: nested('{"a":', "}", depth),
          type: "application/openehr.wt.structured+json",
          headers: { "openehr-template-id": "weight.en.v2" },
        }),
      ];
    },
    expected: [400, 413, 422],
  },
  {
    item: "body",
    title: "numbers of a million digits, names of a megabyte, a million members",
    attack: async (host) => {
      const ehrId = await newEhr(host);
      const text = JSON.stringify(composition());
      const size = sized(1_000_000, 5_000_000);
      const bodies = [
        text.replace("72.5", "7".repeat(size)),
        text.replace("72.5", `1e${"9".repeat(size)}`),
        text.replace('"units"', `"${"u".repeat(size)}"`),
        text.replace('"POINT_EVENT"', `"${"P".repeat(size)}"`),
        text.replace("event", "\\u0000".repeat(size / 10)),
        `{${Array.from({ length: size / 10 }, (_, index) => `"m${index}":1`).join()}}`,
        `{${'"a":1,'.repeat(size / 10)}"a":1}`,
        text.replace('"content":[', `"content":[${"{},".repeat(size / 10)}`),
      ];
      const answers = [];
      for (const body of bodies) answers.push(await post(host, `/ehr/${ehrId}/composition`, body));
      const attributes = Array.from({ length: size / 20 }, (_, index) => `a${index}="1"`).join(" ");
      answers.push(
        await post(host, `/ehr/${ehrId}/composition`, `<composition ${attributes}/>`, {
          type: "application/xml",
        }),
      );
      const spaces = Array.from(
        { length: size / 40 },
        (_, index) => `xmlns:n${index}="u${index}"`,
      ).join(" ");
      answers.push(
        await post(
          host,
          `/ehr/${ehrId}/composition`,
          `<composition ${spaces}>${"<n1:a/>".repeat(size / 40)}</composition>`,
          { type: "application/xml" },
        ),
      );
      return answers;
    },
    expected: [400, 413, 422],
  },
  {
    item: "template",
    title: "a template that demands 2,000,000,000 events",
    attack: (host) => generated(host, "bomb.lower.v1", occurrences("bomb.lower.v1", 2_000_000_000)),
    expected: [200, 400, 413, 422],
  },
  {
    item: "template",
    title: "a template that allows 2,000,000,000 events",
    attack: (host) =>
      generated(
        host,
        "bomb.upper.v1",
        occurrences(
          "bomb.upper.v1",
          0,
          "<upper_unbounded>false</upper_unbounded><lower>0</lower><upper>2000000000</upper>",
        ),
      ),
    expected: [200, 400, 413, 422],
  },
  {
    item: "template",
    title: "a template with thousands of nodes, each of them demanded a thousand times",
    attack: (host) =>
      generated(
        host,
        "bomb.levels.v1",
        template("bomb.levels.v1", (text) =>
          text
            .replace(
              /(<rm_type_name>POINT_EVENT<\/rm_type_name>\s*<occurrences>.*?<lower>)1</,
              "$11000<",
            )
            .replace(
              /(<rm_type_name>ELEMENT<\/rm_type_name>\s*<occurrences>).*?<\/occurrences>/s,
              "$1<lower_unbounded>false</lower_unbounded><upper_unbounded>true</upper_unbounded><lower>1000</lower></occurrences>",
            ),
        ),
      ),
    expected: [200, 400, 413, 422],
  },
  {
    item: "template",
    title: "a template whose pattern backtracks",
    attack: async (host) => {
      const pattern = `<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>name</rm_attribute_name><children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_TEXT</rm_type_name><node_id/><attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>value</rm_attribute_name><children xsi:type="C_PRIMITIVE_OBJECT"><rm_type_name>STRING</rm_type_name><node_id/><item xsi:type="C_STRING"><pattern>PATTERN</pattern></item></children></attributes></children></attributes>`;
      const answers = [];
      for (const [index, regex] of [
        "(a+)+b",
        "(a|a)*b",
        "((a{0,1000}){0,1000}){0,1000}",
        "(.*a){30}",
      ].entries()) {
        const id = `bomb.pattern${index}.v1`;
        const text = template(id, (all) =>
          all.replace(
            /(<rm_type_name>ELEMENT<\/rm_type_name>.*?<node_id>at0004<\/node_id>)/s,
            `$1${pattern.replace("PATTERN", regex)}`,
          ),
        );
        const stored = await store(host, text);
        answers.push(stored);
        if (stored.status !== 201) continue;
        const ehrId = await newEhr(host);
        const body = composition(
          id,
          (document) =>
            (document.content[0].data.events[0].data.items[0].name.value = "a".repeat(50_000)),
        );
        answers.push(await post(host, `/ehr/${ehrId}/composition`, body));
      }
      return answers;
    },
    expected: [201, 400, 413, 422],
  },
  {
    item: "template",
    title: "a template of thousands of alternatives for one node, and compositions of them",
    attack: (host) =>
      committed(
        host,
        "bomb.same.v1",
        wide("bomb.same.v1", 4_000, () => "at0004"),
        [crowded("bomb.same.v1", 10_000, () => "at0004")],
      ),
    expected: [200, 201, 400, 413, 422],
  },
  {
    item: "template",
    title: "a template of 900 alternatives for one node, and compositions of them",
    attack: (host) =>
      committed(
        host,
        "bomb.some.v1",
        wide("bomb.some.v1", 900, () => "at0004"),
        [crowded("bomb.some.v1", 20_000, () => "at0004")],
      ),
    expected: [200, 201, 400, 413, 422],
  },
  {
    item: "template",
    title: "a template of thousands of nodes, and compositions with all of them, and with others",
    attack: (host) =>
      committed(
        host,
        "bomb.wide.v1",
        wide("bomb.wide.v1", 4_000, (index) => `at${1_000 + index}`),
        [
          crowded("bomb.wide.v1", 30_000, (index) => `at${1_000 + (index % 4_000)}`),
          crowded("bomb.wide.v1", 30_000, (index) => `at${90_000 + index}`),
        ],
      ),
    expected: [200, 201, 400, 413, 422],
    holds: (answers) =>
      answers.forEach((answer) =>
        assert.ok(
          answer.status < 400 || answer.bytes < 1_000_000,
          `an error of ${answer.bytes} bytes`,
        ),
      ),
  },
  {
    item: "template",
    title: "many large templates, each of them used once",
    attack: async (host) => {
      const answers = [];
      for (const index of many(sized(20, 60), (each) => each)) {
        const id = `bomb.many${index}.v1`;
        answers.push(
          await store(
            host,
            wide(id, 5_000, (each) => `at${1_000 + each}`),
          ),
        );
        answers.push(
          await host.send("GET", `${ITS}/definition/template/adl1.4/${id}/example?kind=minimal`),
        );
      }
      return answers;
    },
    expected: [200, 201, 400, 404, 413, 422],
  },
  {
    item: "template",
    title: "FLAT with an index of 2,000,000,000, and with two levels of 1,000",
    prepare: async (host) => {
      await host.expect([201, 409], "POST", `${ITS}/definition/template/adl1.4`, {
        body: template("weight.en.v2"),
        type: "application/xml",
      });
      return newEhr(host);
    },
    attack: async (host, ehrId) => {
      const flat = (more) => ({
        "ctx/language": "en",
        "ctx/territory": "SE",
        "ctx/composer_name": "x",
        ...more,
      });
      const send = (body) =>
        post(host, `/ehr/${ehrId}/composition?templateId=weight.en.v2`, body, {
          type: "application/openehr.wt.flat+json",
        });
      const magnitude = (event, value = 1) => ({
        [`encounter/body_weight/events_at0003:${event}/weight|magnitude`]: value,
        [`encounter/body_weight/events_at0003:${event}/weight|unit`]: "kg",
      });
      return [
        await send(flat(magnitude(2_000_000_000))),
        await send(flat(magnitude("99999999999999999999999"))),
        await send(flat({ ...magnitude(0), "encounter/_link:2000000000|meaning": "x" })),
        await send(flat({ ...magnitude(0), "ctx/participation_name:2000000000": "x" })),
        await send(
          flat(
            Object.fromEntries(
              Array.from({ length: sized(20_000, 100_000) }, (_, index) => [
                `encounter/body_weigth/events:${index}/wieght|magnitude`,
                1,
              ]),
            ),
          ),
        ),
        await send(flat({ [`encounter/${"body_weigth/".repeat(50_000)}x`]: 1 })),
      ];
    },
    expected: [400, 413, 422],
  },
  ...[26, 30].map((times) => ({
    item: "guide",
    title: `a guide that doubles a text ${times} times`,
    attack: (host) => guide(host, doubling(`doubling_${times}.v1`, times)),
    expected: [400, 413, 422],
  })),
  {
    item: "guide",
    title: "a guide of 100,000 statements, and one of 50,000 rules",
    attack: async (host) => {
      const steps = JSON.parse(doubling("many_steps.v1", 0));
      steps.definition.rules.gt0011.then = Array.from(
        { length: sized(20_000, 100_000) },
        () => "$gt0005=($gt0005+'a')",
      );
      const rules = JSON.parse(doubling("many_rules.v1", 0));
      rules.definition.rules = Object.fromEntries(
        Array.from({ length: sized(10_000, 50_000) }, (_, index) => [
          `gt${index + 100_000}`,
          { priority: index, when: ["fired($gt100000)"], then: ["$gt0005=($gt0005+'a')"] },
        ]),
      );
      return [
        ...(await guide(host, JSON.stringify(steps))),
        ...(await guide(host, JSON.stringify(rules))),
      ];
    },
    expected: [200, 400, 413, 422],
  },
  {
    item: "guide",
    title: "a guide of 1,900 malformed rules, and one of references that its cards repeat",
    attack: async (host) => {
      const broken = JSON.parse(doubling("malformed.v1", 0));
      broken.definition.rules = Object.fromEntries(
        many(1_900, (index) => [
          `gt${index + 100_000}`,
          { priority: index, when: ["((((((("], then: ["$$$$ == =", "abc".repeat(20)] },
        ]),
      );
      const cards = JSON.parse(doubling("references.v1", 0));
      cards.description = {
        references: [{ label: "x".repeat(sized(200_000, 900_000)), url: "u" }],
      };
      cards.definition.rules.gt0011.cards = [
        {
          summary: "s",
          links: many(sized(5_000, 20_000), () => ({ label_reference: "$ref[1].label" })),
        },
      ];
      const answers = [];
      for (const text of [broken, cards])
        answers.push(
          await post(host, "/definition/gdl", text, {
            headers: { prefer: "return=representation" },
          }),
        );
      return answers;
    },
    expected: [201, 400],
    holds: ([broken, cards]) => {
      assert.equal(broken.status, 201);
      assert.equal(JSON.parse(broken.text).problems.length, 1_000);
      assert.equal(cards.status, 400);
    },
  },
  {
    item: "guide",
    title: "a guide that compares thousands of codes, and tests them by `is_a` of as many others",
    attack: (host) => {
      const codes = JSON.parse(doubling("codes.v1", 0));
      const count = sized(2_000, 5_000);
      codes.definition.rules.gt0011.when = [
        "$gt0005 is_a local::gt0012|Statin|",
        ...many(count, (index) => `$gt0005==ATC::C${index}|drug|`),
      ];
      codes.ontology.term_bindings = {
        ATC: { bindings: { gt0012: { codes: many(count, (index) => `ATC::X${index}`) } } },
      };
      return guide(host, JSON.stringify(codes));
    },
    expected: [200],
  },
  {
    item: "guide",
    title: "a guide of 900 bindings on hundreds of EHRs",
    populated: true,
    attack: async (host) => {
      const guide = JSON.parse(doubling("bindings.v1", 1));
      const path = "/data[at0001]/events[at0006]/data[at0003]/items[at0004]";
      guide.definition.data_bindings = {
        ...guide.definition.data_bindings,
        ...Object.fromEntries(
          many(900, (index) => [
            `gt2${index}`,
            {
              model_id: "openEHR-EHR-OBSERVATION.blood_pressure.v2",
              type: "INPUT",
              elements: { [`gt3${index}`]: { path } },
              predicates: [
                `$gt3${index}.magnitude>${index}`,
                "max(/data[at0001]/events[at0006]/time)",
              ],
            },
          ]),
        ),
      };
      const stored = await post(host, "/definition/gdl", guide);
      const ehrs = await query(host, "SELECT e/ehr_id/value AS id FROM EHR e LIMIT 400");
      const ids = JSON.parse(ehrs.text).rows.map(([id]) => id);
      return [
        stored,
        await post(host, "/gdl/query", { guide_id: "bindings.v1", ehr_ids: ids }),
        await host.send("GET", `${V1}/gdl/query/${ids[0]}/bindings.v1?trace=true`),
      ];
    },
    expected: [200, 201, 400, 408],
  },
  {
    item: "guide",
    title: "a call of CDS Hooks with a prefetch of ten megabytes",
    attack: async (host) => {
      await post(host, "/definition/gdl", doubling("cds.v1", 1));
      const call = (members) =>
        post(host, "/cds-services/cds.v1", {
          hook: "patient-view",
          hookInstance: crypto.randomUUID(),
          context: { userId: "Practitioner/x", patientId: "p" },
          prefetch: { patient: { resourceType: "Patient", ...members } },
        });
      const count = sized(100_000, 300_000);
      return [
        await call({ identifier: many(count, (index) => ({ value: `${index}`, system: "s" })) }),
        await call({ name: many(count, () => [[], 0]) }),
      ];
    },
    expected: [400, 404, 413],
  },
  {
    item: "query",
    title: "stored queries of many versions, each of a long text",
    attack: async (host) => {
      const text = `SELECT e/ehr_id/value FROM EHR e WHERE e/ehr_id/value = '${"x".repeat(250_000)}'`;
      const put = (name, version) =>
        host.send("PUT", `${V1}/query/${name}/${version}`, { body: text, type: "text/plain" });
      const answers = [];
      for (let index = 0; index < sized(100, 900); index += 1)
        answers.push(await put(index % 2 ? "bomb" : `bomb::${index}`, `1.0.${index}`));
      const runs = many(20, () => post(host, "/query/bomb", { fetch: 1 }));
      answers.push(...(await Promise.all(runs)));
      answers.push(await host.send("GET", `${V1}/definition/query/bomb`));
      answers.push(await host.send("GET", `${V1}/definition/query`));
      return answers;
    },
    expected: [200, 400, 429],
  },
  {
    item: "query",
    title: "a parameter of megabytes that is named 900 times",
    populated: true,
    attack: async (host) => {
      const from = "SELECT count(*) AS n FROM EHR e CONTAINS COMPOSITION c CONTAINS ELEMENT a";
      const where = (condition, between) =>
        `${from} WHERE ${many(900, () => condition).join(between)}`;
      const long = "x".repeat(3_900_000);
      const nodes = many(190, (index) => `ELEMENT a${index}[at0001, $p]`).join(" AND ");
      const cases = [
        [where("a/name/value = $p", " OR "), long],
        [where("a/name/value < $p", " AND "), long],
        [where("a/value/magnitude = $p", " OR "), "1".repeat(3_900_000)],
        [where("a/name/value matches {$p}", " OR "), many(50_000, (index) => `value ${index}`)],
        [where("c/uid/value matches {$p, 'x'}", " OR "), many(49_000, (index) => `value ${index}`)],
        [where("a/name/value LIKE $p", " OR "), "*a?".repeat(3_300)],
        [`${from} AND (${nodes})`, long],
      ];
      const answers = [];
      for (const [q, p] of cases) {
        answers.push(await query(host, q, { query_parameters: { p } }));
        answers.push(await post(host, "/query/aql/explain", { q, query_parameters: { p } }));
      }
      return answers;
    },
    expected: [200, 400, 408],
  },
  {
    item: "query",
    title: "a cross join of four elements",
    populated: true,
    attack: async (host) => [
      await query(
        host,
        "SELECT count(a/name/value) AS n FROM EHR e CONTAINS (ELEMENT a AND ELEMENT b AND ELEMENT c AND ELEMENT d)",
      ),
    ],
    expected: [400, 408, 413, 429],
  },
  {
    item: "query",
    title: "twenty cross joins at once",
    populated: true,
    attack: (host) =>
      Promise.all(
        Array.from({ length: sized(20, 100) }, () =>
          query(
            host,
            "SELECT a/name/value AS n FROM EHR e CONTAINS (ELEMENT a AND ELEMENT b AND ELEMENT c AND ELEMENT d)",
          ),
        ),
      ),
    // The answer has one page of rows. The engine may find them before the join exceeds a limit.
    expected: [200, 408, 413, 429, 503],
  },
  {
    item: "query",
    title: "`matches` with 300,000 values",
    populated: true,
    attack: async (host) => [
      await query(
        host,
        "SELECT a/name/value AS n FROM EHR e CONTAINS ELEMENT a WHERE a/name/value matches {$p}",
        {
          query_parameters: { p: Array.from({ length: 300_000 }, (_, index) => `value ${index}`) },
        },
      ),
    ],
    expected: [200, 400, 413],
  },
  {
    item: "query",
    title: "300,000 values for a parameter that the query has not",
    populated: true,
    attack: async (host) => [
      await query(host, "SELECT e/ehr_id/value FROM EHR e", {
        query_parameters: { p: Array.from({ length: 300_000 }, (_, index) => `value ${index}`) },
      }),
    ],
    expected: [200, 400, 413],
  },
  {
    item: "query",
    title: "whole compositions beside each of their parts",
    populated: true,
    attack: async (host) => [
      await query(
        host,
        "SELECT DISTINCT c, l FROM COMPOSITION c CONTAINS LOCATABLE l LIMIT 100000",
      ),
    ],
    expected: [400, 408, 413],
  },
  {
    item: "query",
    title: "a sort and a DISTINCT of whole documents",
    populated: true,
    attack: async (host) => [
      await query(
        host,
        "SELECT c, l, l/name/value AS n FROM COMPOSITION c CONTAINS LOCATABLE l ORDER BY n DESC LIMIT 100000",
      ),
      await query(
        host,
        `SELECT DISTINCT ${Array.from({ length: 200 }, (_, index) => `c AS c${index}`).join(", ")} FROM COMPOSITION c LIMIT 100000`,
      ),
    ],
    expected: [200, 400, 408, 413],
  },
  {
    item: "query",
    title: "LIKE with patterns that backtrack",
    populated: true,
    attack: async (host) => {
      const patterns = [
        `${"*a".repeat(2_000)}*b`,
        `${"?*".repeat(5_000)}`,
        `*${"a".repeat(100_000)}*`,
      ];
      return Promise.all(
        patterns.map((pattern) =>
          query(
            host,
            "SELECT a/name/value AS n FROM EHR e CONTAINS LOCATABLE a WHERE a/name/value LIKE $p OR a/uid/value LIKE $p",
            { query_parameters: { p: pattern } },
          ),
        ),
      );
    },
    expected: [200, 400, 408, 413],
  },
  {
    item: "query",
    title: "regular expressions in archetype and node predicates that backtrack",
    populated: true,
    attack: async (host) => {
      const predicate = (regex) =>
        query(
          host,
          `SELECT a/name/value AS n FROM EHR e CONTAINS LOCATABLE a[archetype_node_id matches {/${regex}/}]`,
        );
      return Promise.all(
        ["(a+)+b", "(.|.)*b", "(((.{0,1000}){0,1000}){0,1000})", "o.*o.*o.*o.*o.*o.*Q"].map(
          predicate,
        ),
      );
    },
    expected: [200, 400, 408, 413],
  },
  ...Object.entries({
    "6,000 conditions": `SELECT e/ehr_id/value FROM EHR e WHERE ${many(6_000, (index) => `e/ehr_id/value = 'x${index}'`).join(" OR ")}`,
    "5,000 conditions on every name": `SELECT a/name/value AS n FROM EHR e CONTAINS LOCATABLE a WHERE ${many(5_000, (index) => `a/name/value = 'x${index}'`).join(" OR ")}`,
    "8,000 columns": `SELECT ${many(8_000, (index) => `e/ehr_id/value AS a${index}`).join(", ")} FROM EHR e`,
    "3,000 aggregates": `SELECT ${many(3_000, (index) => `count(DISTINCT a/uid/value) AS a${index}`).join(", ")} FROM EHR e CONTAINS LOCATABLE a`,
    "10,000 keys of ORDER BY": `SELECT a/name/value AS n FROM EHR e CONTAINS LOCATABLE a ORDER BY ${many(10_000, () => "n").join(", ")}`,
    "20,000 members of a set": `SELECT a/name/value AS n FROM EHR e CONTAINS LOCATABLE a WHERE a/name/value matches {${many(20_000, (index) => `'${index}'`).join()}}`,
    "15,000 arguments of a function": `SELECT concat(${many(15_000, () => "a/name/value").join()}) AS n FROM EHR e CONTAINS LOCATABLE a LIMIT 100000`,
    "40,000 steps of a path": `SELECT a/${many(40_000, () => "name").join("/")} AS n FROM EHR e CONTAINS LOCATABLE a`,
    "a variable of 200,000 letters": `SELECT ${"x".repeat(200_000)}/name FROM EHR e`,
    "a class of 180,000 letters": `SELECT e FROM EHR e CONTAINS ${"LOCATABEL".repeat(20_000)} l`,
    "5,000 conditions of a predicate": `SELECT c/uid/value FROM EHR e CONTAINS COMPOSITION c[${many(5_000, (index) => `name/value='${index}'`).join(" or ")}]`,
    "900 classes joined by OR": `SELECT e/ehr_id/value FROM EHR e CONTAINS (${many(900, (index) => `ELEMENT a${index}`).join(" OR ")})`,
    "900 classes joined by AND": `SELECT e/ehr_id/value FROM EHR e CONTAINS (${many(900, (index) => `ELEMENT a${index}`).join(" AND ")})`,
    "60 classes one inside the other": `SELECT e/ehr_id/value FROM EHR e CONTAINS ${many(60, (index) => `LOCATABLE l${index}`).join(" CONTAINS ")}`,
  }).map(([title, text]) => ({
    item: "query",
    title: `a text with ${title}`,
    populated: true,
    attack: async (host) => [await query(host, text)],
    expected: [200, 400, 408, 413],
  })),
  {
    item: "query",
    title: "explaining 3,000 columns",
    populated: true,
    attack: async (host) => [
      await post(host, "/query/aql/explain", {
        q: `SELECT ${many(3_000, (index) => `c/content[name/value='${index}']/data AS a${index}`).join(", ")} FROM EHR e CONTAINS COMPOSITION c`,
      }),
    ],
    expected: [200, 400, 408, 413],
  },
  {
    item: "load",
    title: "loads of 20,000 EHRs, and of 200,000 lines that are refused",
    attack: async (host) => [
      await post(
        host,
        "/ehr/bulk",
        many(sized(10_000, 20_000), () =>
          JSON.stringify({ ehr_id: crypto.randomUUID(), ehr_status: null }),
        ).join("\n"),
        { type: "application/x-ndjson" },
      ),
      await post(host, "/ehr/bulk", many(sized(100_000, 200_000), () => "{}").join("\n"), {
        type: "application/x-ndjson",
      }),
    ],
    expected: [200, 400, 413],
  },
  {
    item: "load",
    title: "ten loads at once",
    attack: (host) =>
      Promise.all(
        many(10, () =>
          post(
            host,
            "/ehr/bulk",
            many(sized(1_500, 3_000), () =>
              JSON.stringify({ ehr_id: crypto.randomUUID(), ehr_status: null }),
            ).join("\n"),
            { type: "application/x-ndjson" },
          ),
        ),
      ),
    expected: [200, 429],
  },
  {
    item: "query",
    title: "explaining, formatting and completing what is expensive",
    populated: true,
    attack: async (host) => [
      await post(host, "/query/aql/explain", {
        q: "SELECT a/name/value AS n FROM EHR e CONTAINS (ELEMENT a AND ELEMENT b AND ELEMENT c AND ELEMENT d)",
      }),
      await query(
        host,
        "SELECT c, l FROM EHR e CONTAINS COMPOSITION c CONTAINS (LOCATABLE l AND LOCATABLE m)",
        {},
        { headers: { accept: "text/csv" } },
      ),
      await query(
        host,
        "SELECT c, l FROM EHR e CONTAINS COMPOSITION c CONTAINS (LOCATABLE l AND LOCATABLE m)",
        {},
        { headers: { accept: "application/x-ndjson" } },
      ),
    ],
    expected: [200, 400, 408, 413],
  },
  {
    item: "query",
    title: "pages far behind the end, and numbers beyond their range",
    populated: true,
    attack: async (host) => {
      const large = ["18446744073709551615", "9223372036854775807", "1e30", "-1"];
      const q = encodeURIComponent("SELECT a/name/value AS n FROM EHR e CONTAINS ELEMENT a");
      const answers = [];
      for (const value of large) {
        answers.push(await host.send("GET", `${V1}/query/aql?q=${q}&offset=${value}&fetch=10`));
        answers.push(await host.send("GET", `${V1}/query/aql?q=${q}&fetch=${value}`));
        answers.push(
          await host.send("POST", `${V1}/ehr/bulk?first=${value}`, {
            body: "{}\n{}",
            type: "application/x-ndjson",
          }),
        );
      }
      return answers;
    },
    expected: [200, 400],
    holds: (answers) =>
      answers.forEach(
        (answer, index) =>
          index % 3 < 2 ||
          assert.equal(
            answer.status === 200 && index < 3,
            false,
            "`first` is beyond its range and was taken",
          ),
      ),
  },
];

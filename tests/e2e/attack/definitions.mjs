// Many concurrent requests whose cost results from a large definition or a large body. Entries as in
// `bombs.mjs`.
import assert from "node:assert/strict";
import { V1, ITS } from "../server.mjs";
import { LONG, many, post, store } from "./bombs.mjs";
import { composition, newEhr, template } from "./host.mjs";

const sized = (short, long) => (LONG ? long : short);
const together = (count, send) => Promise.all(many(count, send));
const statuses = (answers) => answers.map((answer) => answer.status);

const COUNT =
  "<occurrences><lower_included>true</lower_included><upper_included>true</upper_included><lower_unbounded>false</lower_unbounded><upper_unbounded>true</upper_unbounded><lower>0</lower></occurrences>";
const object = (type, id, inner = "") =>
  `<children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>${type}</rm_type_name>${COUNT}<node_id>${id}</node_id>${inner}</children>`;
const items = (inner) =>
  `<attributes xsi:type="C_MULTIPLE_ATTRIBUTE"><rm_attribute_name>items</rm_attribute_name><existence><lower_included>true</lower_included><upper_included>true</upper_included><lower_unbounded>false</lower_unbounded><upper_unbounded>false</upper_unbounded><lower>0</lower><upper>1</upper></existence>${inner}<cardinality><is_ordered>false</is_ordered><is_unique>false</is_unique><interval><lower_included>true</lower_included><upper_included>true</upper_included><lower_unbounded>false</lower_unbounded><upper_unbounded>true</upper_unbounded><lower>0</lower></interval></cardinality></attributes>`;
const coded = (codes) =>
  `<attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>value</rm_attribute_name><children xsi:type="C_COMPLEX_OBJECT"><rm_type_name>DV_CODED_TEXT</rm_type_name>${COUNT}<node_id/><attributes xsi:type="C_SINGLE_ATTRIBUTE"><rm_attribute_name>defining_code</rm_attribute_name><children xsi:type="C_CODE_PHRASE"><rm_type_name>CODE_PHRASE</rm_type_name>${COUNT}<node_id/><terminology_id><value>local</value></terminology_id>${many(codes, (index) => `<code_list>at${9_000 + index}</code_list>`).join("")}</children></attributes></children></attributes>`;
const terms = (first, count, length) =>
  many(
    count,
    (index) =>
      `<term_definitions code="at${first + index}"><items id="text">${`t${index}`.padEnd(length, "é")}</items><items id="description">${"d".repeat(length)}</items></term_definitions>`,
  ).join("");

/** Returns the template with further items beside its ELEMENT, and further terms. */
const grown = (id, more, words) =>
  template(id, (text) =>
    text
      .replace(
        /(<rm_type_name>ELEMENT<\/rm_type_name>[\s\S]*?<\/attributes>\s*<\/children>)/,
        (all) => all + more,
      )
      .replace(/<term_definitions code="at0004">/, (all) => words + all),
  );

/** CLUSTERs on three levels, twelve on each level. Each has nine ELEMENTs, with any type of value. */
const bushy = (id) => {
  let inner = many(9, (index) => object("ELEMENT", `at${1_000 + index}`)).join("");
  for (let level = 0; level < 3; level += 1) {
    const below = items(inner);
    inner = many(12, (index) => object("CLUSTER", `at${3_000 + level * 20 + index}`, below)).join(
      "",
    );
  }
  return grown(id, inner, terms(1_000, 9, 4));
};

/**
 * ELEMENTs with the same hundreds of codes and long terms. The web template repeats the terms in each
 * ELEMENT.
 */
const worded = (id) =>
  grown(
    id,
    many(60, (index) => object("ELEMENT", `at${1_000 + index}`, coded(1_200))).join(""),
    terms(1_000, 60, 4) + terms(9_000, 1_200, 300),
  );

/** A template of about 5 MB, which is accepted: a thousand ELEMENTs, each with terms. */
const long = (id) =>
  grown(
    id,
    many(900, (index) => object("ELEMENT", `at${1_000 + index}`, coded(1))).join(""),
    terms(1_000, 900, 600) + terms(10_000, 2_000, 700),
  );

const ofTemplate = (host, id, path = "", headers = {}) =>
  host.send("GET", `${ITS}/definition/template/adl1.4/${id}${path}`, { headers });

/** A body with unknown members. */
const unknown = (count) => `{${many(count, (index) => `"k${index}":1`).join()}}`;

/** Returns a composition of about `bytes` bytes. Its links are `make(index)`. */
const linked = (count) =>
  JSON.stringify(
    composition("weight.en.v2", (document) => {
      document.links = many(count, (index) => ({
        _type: "LINK",
        meaning: { _type: "DV_TEXT", value: `m${index}` },
        type: { _type: "DV_TEXT", value: "t" },
        target: { _type: "DV_EHR_URI", value: `ehr://${index}` },
      }));
    }),
  );

const withTemplate = async (host) => {
  await host.expect([201, 409], "POST", `${ITS}/definition/template/adl1.4`, {
    body: template("weight.en.v2"),
    type: "application/xml",
  });
  return newEhr(host);
};

export const definitions = [
  {
    item: "template",
    title: "a template whose web template would be too large is refused where it is uploaded",
    attack: async (host) => [
      await store(host, bushy("large.bushy.v1")),
      await store(host, worded("large.worded.v1")),
    ],
    expected: [400],
  },
  {
    item: "template",
    title: "thirty of everything that is generated from a template of 5 MB",
    prepare: async (host) => {
      const stored = await store(host, long("large.long.v1"));
      assert.equal(stored.status, 201, stored.text.slice(0, 500));
    },
    attack: async (host) => {
      const id = "large.long.v1";
      const times = sized(6, 30);
      return [
        ...(await together(times, () => ofTemplate(host, id, "/webtemplate"))),
        ...(await together(times, () => ofTemplate(host, id, "/example?format=FLAT"))),
        ...(await together(times, () => ofTemplate(host, id, "/example"))),
        ...(await together(times, () => ofTemplate(host, id, "", { accept: "application/json" }))),
      ];
    },
    expected: [200, 422, 429],
    holds: (answers) => assert.ok(statuses(answers).includes(200), "one of them is answered"),
  },
  {
    item: "template",
    title: "uploads of 7 MB at once",
    attack: (host) => {
      const text = grown(
        "large.upload.v1",
        many(900, (index) => object("ELEMENT", `at${1_000 + index}`)).join(""),
        terms(1_000, 900, 900) + terms(10_000, 1_500, 900),
      );
      return together(sized(3, 6), () => store(host, text));
    },
    expected: [201, 400, 409, 413, 429],
  },
  {
    item: "template",
    title: "compositions of templates of 5 MB in turn, which no cache holds together",
    prepare: async (host) => {
      const ids = many(sized(5, 8), (index) => `large.turn${index}.v1`);
      for (const id of ids) {
        const stored = await store(host, long(id));
        assert.equal(stored.status, 201, stored.text.slice(0, 500));
      }
      return { ids, ehrId: await newEhr(host) };
    },
    attack: (host, { ids, ehrId }) =>
      together(sized(20, 30), (index) =>
        post(host, `/ehr/${ehrId}/composition`, composition(ids[index % ids.length])),
      ),
    expected: [201, 429],
  },
  {
    item: "body",
    title: "eight bodies of 700,000 unknown members at once",
    prepare: withTemplate,
    attack: (host, ehrId) => {
      const body = unknown(sized(400_000, 700_000));
      return together(8, () => post(host, `/ehr/${ehrId}/composition`, body));
    },
    expected: [400, 429],
  },
  {
    item: "body",
    title: "thirty sound bodies of a megabyte at once, and thirty reads of them",
    prepare: withTemplate,
    attack: async (host, ehrId) => {
      const body = linked(4_500);
      const written = await together(sized(15, 30), () =>
        post(host, `/ehr/${ehrId}/composition`, body),
      );
      const place = written.find((answer) => answer.status === 201).headers.location;
      const { pathname } = new URL(place);
      return [
        ...written,
        ...(await together(sized(15, 30), () => host.send("GET", pathname))),
        ...(await together(sized(15, 30), () =>
          host.send("GET", pathname, { headers: { accept: "application/openehr.wt.flat+json" } }),
        )),
      ];
    },
    expected: [200, 201, 400, 422, 429],
  },
  {
    item: "body",
    title: "a contribution of ten thousand members",
    prepare: withTemplate,
    attack: async (host, ehrId) => {
      const audit = {
        change_type: {
          value: "creation",
          defining_code: { terminology_id: { value: "openehr" }, code_string: "249" },
        },
        committer: { _type: "PARTY_IDENTIFIED", name: "x" },
      };
      const versions = many(sized(5_000, 10_000), (index) => ({
        _type: "IMPORTED_VERSION",
        item: {
          _type: "ORIGINAL_VERSION",
          uid: { value: `aaaaaaaa-0000-4000-8000-000000000000::far.example::${index + 2}` },
          preceding_version_uid: {
            value: `aaaaaaaa-0000-4000-8000-000000000000::far.example::${index + 1}`,
          },
          contribution: {
            namespace: "x",
            type: "CONTRIBUTION",
            id: { _type: "HIER_OBJECT_ID", value: "x" },
          },
          commit_audit: {
            system_id: "far",
            time_committed: { value: "2020-01-01T00:00:00Z" },
            ...audit,
          },
          lifecycle_state: {
            value: "deleted",
            defining_code: { terminology_id: { value: "openehr" }, code_string: "523" },
          },
        },
      }));
      return [await post(host, `/ehr/${ehrId}/contribution`, { versions, audit })];
    },
    expected: [201, 400, 409, 413],
  },
  {
    item: "body",
    title: "a bulk line of 60 MB",
    attack: async (host) => [
      await post(host, "/ehr/bulk", Buffer.alloc(sized(30e6, 60e6), "x"), {
        type: "application/x-ndjson",
      }),
    ],
    expected: [413],
    holds: ([answer]) => assert.match(answer.text, /10,?000,?000/, "the limit is named"),
  },
  {
    item: "body",
    title: "paths, parameters and headers as long as they may be",
    prepare: withTemplate,
    attack: async (host, ehrId) => {
      const query = many(10_000, (index) => `p${index}=1`)
        .join("&")
        .slice(0, 60_000);
      const tags = many(10_000, (index) => `"${index}"`)
        .join(",")
        .slice(0, 60_000);
      return [
        ...(await together(10, () => host.send("GET", `${V1}/ehr/${ehrId}?${query}`))),
        ...(await together(10, () =>
          host.send("GET", `${V1}/ehr/${ehrId}`, { headers: { "if-none-match": tags } }),
        )),
        ...(await together(10, () =>
          host.send("PUT", `${V1}/ehr/${ehrId}/ehr_status`, {
            body: "{}",
            headers: { "if-match": tags },
          }),
        )),
        ...(await together(10, () => host.send("GET", `${V1}/ehr/${"x".repeat(60_000)}`))),
      ];
    },
    expected: [200, 400, 404, 412, 414, 431],
  },
];

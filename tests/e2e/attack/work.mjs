// Queries and templates whose work grows faster than their length: many paths, predicates and function
// calls on one wide document, and texts of many short parts. Entries as in `bombs.mjs`.
import { ITS, V1 } from "../server.mjs";
import { many } from "./bombs.mjs";
import { composition, newEhr, template } from "./host.mjs";

const ID = "bomb.events.v1";
const EVENTS = 4_000;

/** Stores a composition of thousands of events. Returns the id of its EHR. */
async function wide(host) {
  await host.expect([201, 409], "POST", `${ITS}/definition/template/adl1.4`, {
    body: template(ID),
    type: "application/xml",
  });
  const ehrId = await newEhr(host);
  const document = composition(ID, (whole) => {
    const history = whole.content[0].data;
    const [event] = history.events;
    history.events = many(EVENTS, (at) => ({
      ...event,
      name: { _type: "DV_TEXT", value: `event ${at}` },
    }));
  });
  await host.expect(201, "POST", `${ITS}/ehr/${ehrId}/composition`, {
    body: JSON.stringify(document),
  });
  return ehrId;
}

const list = (count, part, between = ", ") => many(count, part).join(between);
const weight = "o/data/events/data/items/value/magnitude";
const nested = (inner) => `${"ROUND(".repeat(60)}${inner}${",3)".repeat(60)}`;
const code = (number) => `at${String(number).padStart(4, "0")}`;

/** The clauses SELECT and WHERE of the queries, by title. `o` is the observation, `l` an element. */
const queries = {
  "hundreds of predicates": {
    columns: "COUNT(*) AS n",
    where: list(
      200,
      (at) =>
        `o/data/events[time/value > '20${10 + (at % 90)}-01-01' and name/value='event ${at}']/data/items/value/magnitude > ${at}`,
      " OR ",
    ),
  },
  "hundreds of paths": {
    columns: list(
      230,
      (at) =>
        `o/data/events[${code(2 + at)}]/data/items[${code(4 + at)}]/value/magnitude AS a${at}`,
    ),
  },
  "hundreds of distinct counts": {
    columns: list(
      196,
      (at) => `COUNT(DISTINCT ${weight.replace("items", `items[${code(at)}]`)}) AS a${at}`,
    ),
  },
  "thousands of nested function calls": {
    elements: true,
    columns: list(380, (at) => `${nested("1e300")} AS a${at}`),
  },
  "function calls in hundreds of conditions": {
    elements: true,
    columns: "COUNT(*) AS n",
    where: list(300, (at) => `${nested("l/value/magnitude")} = ${1_000 + at}.5`, " OR "),
  },
  "a function of 10,000 arguments": {
    elements: true,
    columns: `CONCAT(${list(10_000, () => "l/name/value", ",")}) AS a`,
  },
};

/** Returns a query on the EHR of the wide document. */
function queryOf({ columns, where, elements }, ehrId) {
  const from = `FROM EHR e[ehr_id/value='${ehrId}'] CONTAINS OBSERVATION o`;
  return `SELECT ${columns} ${from}${elements ? " CONTAINS ELEMENT l" : ""}${where ? ` WHERE ${where}` : ""}`;
}

const onWideDocument = Object.entries(queries).map(([title, clauses]) => ({
  item: "query",
  title: `${title} on one document of ${EVENTS} events`,
  prepare: wide,
  attack: (host, ehrId) =>
    Promise.all(
      many(3, () =>
        host.send("POST", `${V1}/query/aql`, {
          body: JSON.stringify({ q: queryOf(clauses, ehrId), fetch: 1_000 }),
          keep: 1_000,
        }),
      ),
    ),
  expected: [200, 400, 408, 413, 429],
}));

/** The size of a text: about the default of `LIMIT_TEMPLATE`. */
const LENGTH = 7_800_000;
const repeated = (part) => part.repeat(Math.floor(LENGTH / part.length));

/** Returns a template of ADL 2 with lines behind its head, and with other content. */
const adl = ({ head = "", content = "" }) =>
  `operational_template (adl_version=2.0.6; rm_release=1.0.4; generated)
\topenEHR-EHR-COMPOSITION.bomb.v1.0.0

language
\toriginal_language = <[ISO_639-1::en]>
${head}
definition
\tCOMPOSITION[id1] matches {${content}}

terminology
\tterm_definitions = <["en"] = <["id1"] = <text = <"x"> description = <"x">>>>
`;

const adlTexts = {
  "blank lines": { head: repeated("\n") },
  "lines of one letter": { head: repeated("l\n") },
  comments: { head: repeated("--\n") },
  objects: { content: `content matches {${repeated("A[a]")}}` },
  references: { content: `content matches {${repeated("use_node OBSERVATION[id2] /a\n")}}` },
};

const shortParts = Object.entries(adlTexts).map(([title, parts]) => ({
  item: "template",
  title: `a template in ADL 2 of millions of ${title}`,
  attack: async (host) => [
    await host.send("POST", `${ITS}/definition/template/adl2`, {
      body: adl(parts),
      type: "text/plain",
    }),
  ],
  expected: [201, 400, 409, 413, 422],
}));

export const work = [...onWideDocument, ...shortParts];

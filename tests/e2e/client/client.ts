// A client program with the types that openapi-typescript generates from `/openapi.json`. The compiler
// must accept every line, and reject the lines that are marked with @ts-expect-error.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

/** The results of one run of the client. */
export interface Round {
  ehr: string;
  stored: string[];
  kilograms: unknown;
  problem: string | undefined;
}

function given<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`${what} is missing`);
  return value;
}

/** Returns the JSON form of an answer, whose type also permits XML and CSV. */
function json<T>(data: T): Exclude<T, string | undefined> {
  if (typeof data !== "object") throw new Error("the answer is no JSON");
  return data as Exclude<T, string | undefined>;
}

/** Creates an EHR, commits a composition, and queries it, page by page. */
export async function round(
  base: string,
  template: string,
  composition: components["schemas"]["COMPOSITION"],
  q: string,
): Promise<Round> {
  const client = createClient<paths>({ baseUrl: base });
  const uploaded = await client.POST("/definition/template/adl1.4", {
    body: template,
    bodySerializer: (text) => text,
    headers: { "Content-Type": "application/xml" },
  });
  if (uploaded.error) throw new Error(uploaded.error.message);
  const created = await client.POST("/ehr", {
    params: { header: { Prefer: "return=representation" } },
    headers: { "Content-Type": "application/json" },
  });
  const made = json(created.data);
  if (!("ehr_id" in made)) throw new Error("no representation was given");
  const ehr = given(made.ehr_id.value, "ehr_id");
  await client.POST("/ehr/{ehr_id}/composition", {
    params: { path: { ehr_id: ehr } },
    body: composition,
  });
  const rows: unknown[][] = [];
  let snapshot: string | undefined;
  for (;;) {
    const { data, error } = await client.POST("/query/aql", {
      body: { q, offset: rows.length, fetch: 1, snapshot },
    });
    if (error) throw new Error(error.message);
    const page = json(data);
    if (page.rows.length === 0) break;
    rows.push(...page.rows);
    snapshot = page.meta._snapshot;
  }
  const wrong = await client.POST("/query/aql", { body: { q: "SELECT" } });
  return {
    ehr,
    stored: rows.map(([uid]) => String(uid)),
    kilograms: rows[0]?.[1],
    problem: wrong.error?.errors?.[0]?.value,
  };
}

/** Calls that the compiler must reject. */
export function refused(client: ReturnType<typeof createClient<paths>>): unknown[] {
  return [
    // @ts-expect-error There is no such path.
    () => client.GET("/patients"),
    // @ts-expect-error A query has a text.
    () => client.POST("/query/aql", { body: { fetch: 1 } }),
    // @ts-expect-error The path names an EHR.
    () => client.GET("/ehr/{ehr_id}", { params: { path: {} } }),
    // @ts-expect-error A page has a number of rows.
    () => client.POST("/query/aql", { body: { q: "", fetch: "many" } }),
    // @ts-expect-error A quantity has units.
    (): components["schemas"]["DV_QUANTITY"] => ({ _type: "DV_QUANTITY", magnitude: 1 }),
  ];
}

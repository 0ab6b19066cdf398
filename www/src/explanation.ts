// The explanation of a query: its syntax, meaning, plan and execution.
import { count, h } from "./dom";
import type { Explained, Part, Place } from "./protocol";

/** The maximum number of entries of a list. Further ones are counted only. */
const LISTED = 40;

/** Shows a place of the query in the editor. */
type ShowPlace = (place: Place) => void;

function rung(
  title: string,
  about: string,
  open: boolean,
  ...content: (Node | null)[]
): HTMLElement {
  return h(
    "details",
    { class: "rung", open },
    h("summary", {}, h("strong", {}, title), " ", h("span", { class: "quiet" }, about)),
    ...content,
  );
}

function placed({ from, to }: Part): Place | null {
  return from !== undefined && to !== undefined && to > from ? { from, to } : null;
}

function part(of: Part, show: ShowPlace): HTMLElement {
  const place = placed(of);
  const label = place
    ? h("button", { type: "button", class: "part", onclick: () => show(place) }, of.label)
    : h("span", { class: "part" }, of.label);
  if (!of.parts?.length) return h("li", {}, label);
  return h("li", {}, label, h("ul", {}, ...of.parts.map((below) => part(below, show))));
}

function parts(of: Part | null, show: ShowPlace): HTMLElement {
  if (!of) return h("p", { class: "quiet" }, "Not reached: the query has a problem before this.");
  return h("ul", { class: "parts" }, part(of, show));
}

function tokens({ tokens: all }: Explained, q: string, show: ShowPlace): HTMLElement {
  const chips = all.map((token) =>
    h(
      "button",
      {
        type: "button",
        class: `token ${token.kind}`,
        title: token.kind,
        onclick: () => show(token),
      },
      q.slice(token.from, token.to),
    ),
  );
  return h("p", { class: "tokens" }, ...chips);
}

function figure(name: string, value: number, unit = ""): HTMLElement {
  return h("div", {}, h("dt", {}, name), h("dd", {}, `${count.format(value)}${unit}`));
}

/** The shapes of one node: their number, their fragments, and the row construction of the first. */
interface Way {
  variable: string;
  name: string;
  shapes: number;
  fragments: number;
  read: boolean;
  rows: string[][];
}

function gathered({ run }: Explained): Way[] {
  const ways = new Map<string, Way>();
  for (const { variable, name, fragments, passes, rows } of run?.matching ?? []) {
    const key = `${variable} ${name} ${passes}`;
    const way = ways.get(key) ?? { variable, name, shapes: 0, fragments: 0, read: passes, rows };
    ways.set(key, { ...way, shapes: way.shapes + 1, fragments: way.fragments + fragments });
  }
  return [...ways.values()].sort(
    (a, b) => Number(b.read) - Number(a.read) || b.fragments - a.fragments,
  );
}

function made({ read, rows }: Way): string {
  if (!read) return "passed over: its node does not match";
  return rows.length === 0 ? "worked out for each" : rows.map((row) => row.join(" · ")).join("\n");
}

function ways(explained: Explained): HTMLElement | null {
  const all = gathered(explained);
  if (all.length === 0) return null;
  const numbers = (...values: number[]) =>
    values.map((value) => h("td", { class: "right" }, count.format(value)));
  const rows = all
    .slice(0, LISTED)
    .map((way) =>
      h(
        "tr",
        {},
        h("td", {}, way.variable),
        h("td", {}, way.name),
        ...numbers(way.shapes, way.fragments),
        h("td", { class: "made" }, made(way)),
      ),
    );
  const head = h(
    "thead",
    {},
    h(
      "tr",
      {},
      ...["Variable", "Node", "Shapes", "Fragments", "A row is made of"].map((name) =>
        h("th", { scope: "col" }, name),
      ),
    ),
  );
  const more = all.length - rows.length;
  return h(
    "div",
    { class: "ways", tabindex: 0, role: "region", "aria-label": "Row templates" },
    h("table", {}, head, h("tbody", {}, ...rows)),
    more > 0 ? h("p", { class: "quiet" }, `and ${count.format(more)} more`) : null,
  );
}

function run(explained: Explained): HTMLElement {
  const { run: ran } = explained;
  if (!ran) return h("p", { class: "quiet" }, "It was not run: see the problems.");
  const facts = h(
    "dl",
    { class: "facts" },
    figure("Patients", ran.ehrs),
    figure("Documents", ran.documents),
    figure("Looked into", ran.documents_scanned),
    figure("Shapes", ran.shapes),
    figure("Batches", ran.batches),
    ran.segments ? figure("Segments", ran.segments) : null,
    ran.reads?.blobs ? figure("Blobs", ran.reads.blobs) : null,
    ran.reads?.rows ? figure("Stored rows", ran.reads.rows) : null,
    figure("Read", Math.round(ran.bytes / 1024), " kB"),
    ran.rows === null ? h("div") : figure("Rows", ran.rows),
  );
  return h(
    "div",
    {},
    facts,
    ran.error ? h("p", { class: "bad" }, ran.error) : null,
    ways(explained),
  );
}

/**
 * Draws the steps of a query `q`, the last first: readers usually want to know why it is slow or
 * empty.
 */
export function drawExplanation(explained: Explained, q: string, show: ShowPlace): HTMLElement {
  const problems = explained.diagnostics.map((problem) =>
    h(
      "li",
      {},
      h("button", { type: "button", class: "link", onclick: () => show(problem) }, problem.code),
      " ",
      problem.message,
    ),
  );
  return h(
    "div",
    { class: "explanation", tabindex: 0, role: "region", "aria-label": "The query explained" },
    problems.length > 0 ? h("ul", { class: "problem-list" }, ...problems) : null,
    rung(
      "Run",
      `what it touched; with its explanation ${explained.milliseconds.toFixed(1)} ms`,
      true,
      run(explained),
    ),
    rung(
      "Plan",
      "what is asked of the data, and how rows are made of it",
      true,
      parts(explained.plan, show),
    ),
    rung(
      "Query",
      "names resolved, parameters and value sets written in",
      false,
      parts(explained.query, show),
    ),
    rung("Syntax", "the tree as it was written", false, parts(explained.syntax, show)),
    rung(
      "Tokens",
      `${count.format(explained.tokens.length)} words and signs`,
      false,
      tokens(explained, q, show),
    ),
  );
}

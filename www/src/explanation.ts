// The explanation of a query: its syntax, meaning, plan and execution.
import { h } from "./dom";
import type { Explained, Part, Place } from "./protocol";
import { count, texts } from "./texts";

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
  if (!of) return h("p", { class: "quiet" }, texts.explanation.notReached);
  return h("ul", { class: "parts", lang: "en" }, part(of, show));
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

/**
 * The layouts of one node that agree in `read`: their number, the number of their fragments, and the
 * columns of each row of the first layout.
 */
interface NodeLayouts {
  variable: string;
  name: string;
  layouts: number;
  fragments: number;
  read: boolean;
  rows: string[][];
}

function gathered({ run }: Explained): NodeLayouts[] {
  const ways = new Map<string, NodeLayouts>();
  for (const { variable, name, fragments, passes, rows } of run?.matching ?? []) {
    const key = `${variable} ${name} ${passes}`;
    const way = ways.get(key) ?? { variable, name, layouts: 0, fragments: 0, read: passes, rows };
    ways.set(key, { ...way, layouts: way.layouts + 1, fragments: way.fragments + fragments });
  }
  return [...ways.values()].sort(
    (a, b) => Number(b.read) - Number(a.read) || b.fragments - a.fragments,
  );
}

function made({ read, rows }: NodeLayouts): string {
  if (!read) return texts.explanation.passedOver;
  return rows.length === 0
    ? texts.explanation.eachWorkedOut
    : rows.map((row) => row.join(" · ")).join("\n");
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
        ...numbers(way.layouts, way.fragments),
        h("td", { class: "made" }, made(way)),
      ),
    );
  const head = h(
    "thead",
    {},
    h(
      "tr",
      {},
      ...[
        texts.explanation.variable,
        texts.explanation.node,
        texts.explanation.layouts,
        texts.explanation.fragments,
        texts.explanation.rowIsMadeOf,
      ].map((name) => h("th", { scope: "col" }, name)),
    ),
  );
  const more = all.length - rows.length;
  return h(
    "div",
    { class: "ways", tabindex: 0, role: "region", "aria-label": texts.explanation.rowTemplates },
    h("table", {}, head, h("tbody", {}, ...rows)),
    more > 0 ? h("p", { class: "quiet" }, texts.frame.more({ count: more })) : null,
  );
}

function run(explained: Explained): HTMLElement {
  const { run: ran } = explained;
  if (!ran) return h("p", { class: "quiet" }, texts.explanation.notRun);
  const facts = h(
    "dl",
    { class: "facts" },
    figure(texts.data.patients, ran.ehrs),
    figure(texts.explanation.documents, ran.documents),
    figure(texts.explanation.scanned, ran.documents_scanned),
    figure(texts.explanation.layouts, ran.layouts),
    figure(texts.explanation.batches, ran.batches),
    ran.segments ? figure(texts.explanation.segments, ran.segments) : null,
    ran.reads?.blobs ? figure(texts.explanation.blobs, ran.reads.blobs) : null,
    ran.reads?.rows ? figure(texts.explanation.storedRows, ran.reads.rows) : null,
    figure(texts.explanation.read, Math.round(ran.bytes / 1024), " kB"),
    ran.rows === null ? h("div") : figure(texts.explanation.rows, ran.rows),
  );
  return h(
    "div",
    {},
    facts,
    ran.error ? h("p", { class: "bad", lang: "en" }, ran.error) : null,
    ways(explained),
  );
}

/**
 * Draws the steps of the query `q` in reverse order: most readers want to know why the query is slow
 * or has no rows, which the last step shows.
 */
export function drawExplanation(explained: Explained, q: string, show: ShowPlace): HTMLElement {
  const problems = explained.diagnostics.map((problem) =>
    h(
      "li",
      {},
      h("button", { type: "button", class: "link", onclick: () => show(problem) }, problem.code),
      " ",
      h("span", { lang: "en" }, problem.message),
    ),
  );
  return h(
    "div",
    { class: "explanation", tabindex: 0, role: "region", "aria-label": texts.explanation.title },
    problems.length > 0 ? h("ul", { class: "problem-list" }, ...problems) : null,
    rung(texts.explanation.run, texts.explanation.runAbout(explained), true, run(explained)),
    rung(texts.explanation.plan, texts.explanation.planAbout, true, parts(explained.plan, show)),
    rung(texts.frame.query, texts.explanation.queryAbout, false, parts(explained.query, show)),
    rung(
      texts.explanation.syntax,
      texts.explanation.syntaxAbout,
      false,
      parts(explained.syntax, show),
    ),
    rung(
      texts.explanation.tokens,
      texts.explanation.tokensAbout({ count: explained.tokens.length }),
      false,
      tokens(explained, q, show),
    ),
  );
}

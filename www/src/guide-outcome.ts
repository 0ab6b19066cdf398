// The outcome of a run of a guide: results, cards, the reason why each rule fired or did not fire,
// and the data that the run read.
import { view } from "./cell";
import { h } from "./dom";
import { list, members, text, type Members } from "./guide-text";
import { NumberText, print, type Json } from "./json";
import { tree } from "./tree";
import { texts } from "./texts";

/** A run on a patient's record or on a form. */
export interface Outcome {
  /** The subject of the run. */
  whom: string;
  milliseconds: number;
  fired: number;
  outputs: { name: string; model: string; path: string; value: Json }[];
  cards: Members[];
  trace: Members;
  queries: { id: string; aql: string }[];
}

/** Draws a run. `ask` runs a query in the query view. */
export function drawOutcome(outcome: Outcome, ask: (q: string) => void): HTMLElement[] {
  const { whom, outputs, trace, fired } = outcome;
  const missing = list(trace["missing"]).map((variable) => named(members(variable)));
  const notes = list(trace["notes"]).map(members);
  const before = list(trace["pre_conditions"]).map(members);
  const defaults = list(trace["default_actions"]).map(members);
  const inputs = list(trace["inputs"]).map(members);
  const parts = [
    h(
      "div",
      { class: "bar" },
      h(
        "h2",
        {},
        outputs.length > 0
          ? texts.guideOutcome.says({ whom })
          : texts.guideOutcome.saysNothing({ whom }),
      ),
      h(
        "p",
        { class: "summary" },
        texts.guideOutcome.fired({ count: fired, milliseconds: outcome.milliseconds }),
      ),
    ),
    missing.length > 0
      ? h(
          "p",
          { class: "missing" },
          h("strong", {}, texts.guideOutcome.missing),
          " ",
          missing.join(", "),
        )
      : null,
    ...outcome.cards.map(drawCard),
    outputs.length > 0
      ? h("dl", { class: "outputs" }, ...outputs.map(drawOutput))
      : h("p", { class: "quiet" }, texts.guideOutcome.noResult),
    ...(notes.length > 0
      ? [
          h("h3", {}, texts.guideOutcome.notComputed),
          h("ul", { class: "notes" }, ...notes.map(drawNote)),
        ]
      : []),
    ...(before.length > 0
      ? [
          h("h3", {}, texts.guideOutcome.before),
          h("ul", { class: "conditions" }, ...before.map(drawCondition)),
        ]
      : []),
    ...(defaults.length > 0
      ? [
          h("h3", {}, texts.guideOutcome.setBefore),
          h("p", { class: "quiet" }, defaults.map(valued).join(", ")),
        ]
      : []),
    h("h3", {}, texts.guideOutcome.rules),
    h("ol", { class: "rules" }, ...list(trace["rules"]).map((rule) => drawRule(members(rule)))),
    ...(inputs.length > 0 ? [h("h3", {}, texts.guideOutcome.read), ...inputs.map(drawInput)] : []),
    ...(outcome.queries.length > 0
      ? [
          h("h3", {}, texts.guideOutcome.asked),
          ...outcome.queries.map((query) => drawQuery(query, ask)),
        ]
      : []),
  ];
  return parts.filter((part) => part !== null);
}

/** Draws a query with a button that opens it. */
export function drawQuery(
  { id, aql }: { id: string; aql: string },
  ask: (q: string) => void,
): HTMLElement {
  const open = h(
    "button",
    { type: "button", class: "link", onclick: () => ask(aql) },
    texts.guideOutcome.openQuery,
  );
  return h(
    "details",
    { class: "asked" },
    h("summary", {}, id || texts.guideOutcome.query),
    h("pre", { tabindex: 0 }, h("code", {}, aql)),
    h("p", { class: "below" }, open),
  );
}

function named(variable: Members): string {
  return text(variable["name"]) || text(variable["variable"]);
}

function valued(variable: Members): string {
  return `${named(variable)}: ${text(variable["value"]) || texts.frame.noValue}`;
}

/** Returns the name of an indicator of CDS Hooks. */
function indicatorName(indicator: string): string {
  const names: Record<string, string> = texts.guideOutcome.indicators;
  return names[indicator] ?? indicator;
}

/**
 * Returns Markdown with the characters in place of their escapes. The page shows the rest of Markdown as
 * it is written.
 */
function unescaped(markdown: string): string {
  const characters: Record<string, string> = {
    "&amp;": "&",
    "&lt;": "<",
    "&gt;": ">",
    "&quot;": '"',
    "&#39;": "'",
  };
  return markdown.replace(
    /\\([\n!-/:-@[-`{-~])|&(?:amp|lt|gt|quot|#39);/g,
    (reference, escaped?: string) => escaped ?? characters[reference] ?? reference,
  );
}

/** Draws a card of CDS Hooks. */
function drawCard(card: Members): HTMLElement {
  const indicator = text(card["indicator"]) || "info";
  const source = text(members(card["source"])["label"]);
  const links = list(card["links"]).map(members);
  const suggestions = list(card["suggestions"]).map(members);
  return h(
    "article",
    { class: `advice ${indicator}` },
    h(
      "p",
      {},
      h("span", { class: "indicator" }, indicatorName(indicator)),
      h("strong", {}, text(card["summary"])),
    ),
    card["detail"] ? h("p", { class: "words" }, unescaped(text(card["detail"]))) : null,
    suggestions.length > 0
      ? h("ul", { class: "suggestions" }, ...suggestions.map(drawSuggestion))
      : null,
    links.length > 0 ? h("p", {}, ...links.flatMap((link) => [drawLink(link), " "])) : null,
    source ? h("small", {}, source) : null,
  );
}

/**
 * Draws a link. Only web addresses become links: a guide may come from an untrusted author, and could
 * contain a `javascript:` address.
 */
function drawLink(link: Members): HTMLElement {
  const url = text(link["url"]);
  const label = text(link["label"]) || url;
  return /^https?:\/\//.test(url)
    ? h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, label)
    : h("span", {}, label);
}

function drawSuggestion(suggestion: Members): HTMLElement {
  const actions = list(suggestion["actions"]).map(members);
  const resources = actions
    .map((action) => action["resource"] ?? null)
    .filter((resource) => resource !== null);
  return h(
    "li",
    {},
    text(suggestion["label"]),
    ...resources.map((resource) => tree("resource", resource, false)),
  );
}

function drawOutput({ name, model, path, value }: Outcome["outputs"][number]): HTMLElement {
  const object = typeof value === "object" && value !== null && !(value instanceof NumberText);
  return h(
    "div",
    { class: "output" },
    h(
      "dt",
      {},
      h("strong", {}, name),
      h("code", { class: "path" }, model),
      h("code", { class: "path" }, path),
    ),
    h(
      "dd",
      {},
      h("span", { class: "value" }, view(print(value)).text || texts.frame.noValue),
      object ? tree("value", value, false) : null,
    ),
  );
}

function drawNote(note: Members): HTMLElement {
  return h(
    "li",
    {},
    h("strong", { lang: "en" }, text(note["reason"])),
    ` ${texts.guideOutcome.inPlace({ place: text(note["place"]) })} `,
    h("code", {}, text(note["statement"])),
  );
}

/** Draws a rule with the values of its conditions, which show why the rule did not fire. */
function drawRule(rule: Members): HTMLElement {
  const fired = rule["fired"] === true;
  const set = list(rule["set"]).map((variable) => valued(members(variable)));
  const conditions = list(rule["conditions"]).map(members);
  return h(
    "li",
    {},
    h(
      "details",
      {},
      h(
        "summary",
        {},
        h(
          "span",
          { class: fired ? "mark fired" : "mark" },
          fired ? texts.guideOutcome.ruleFired : texts.guideOutcome.ruleNotFired,
        ),
        " ",
        text(rule["name"]) || text(rule["rule"]),
      ),
      h(
        "ul",
        {},
        ...(conditions.length > 0
          ? conditions.map(drawCondition)
          : [h("li", { class: "quiet" }, texts.guideOutcome.noConditions)]),
      ),
      set.length > 0
        ? h("p", { class: "set" }, texts.guideOutcome.set({ values: set.join(", ") }))
        : null,
    ),
  );
}

function drawCondition(condition: Members): HTMLElement {
  const result =
    condition["result"] === true ? "true" : condition["result"] === false ? "false" : "unknown";
  const read = list(condition["variables"]).map((variable) => valued(members(variable)));
  return h(
    "li",
    { class: `condition ${result}` },
    h("span", { class: "verdict" }, texts.guideOutcome[result]),
    h("code", {}, text(condition["text"])),
    read.length > 0 ? h("small", {}, read.join(", ")) : null,
  );
}

/** Draws the sources of the data of a binding. */
function drawInput(input: Members): HTMLElement {
  const used = list(input["used"]).map(members);
  const found = Number(text(input["found"]));
  const words =
    found === 0
      ? texts.guideOutcome.nothingFound
      : used.length === found
        ? texts.guideOutcome.found({ count: found })
        : texts.guideOutcome.passing({ count: used.length, of: found });
  const sources = used.map((source) => {
    const values = list(source["values"])
      .map(members)
      .map((value) =>
        h(
          "li",
          {},
          h("strong", {}, text(value["value"])),
          " ",
          h("code", { class: "path" }, text(value["path"])),
        ),
      );
    return h(
      "li",
      {},
      h(
        "small",
        {},
        [text(source["time"]), text(source["composition"])].filter(Boolean).join(" · "),
      ),
      h("ul", {}, ...values),
    );
  });
  return h(
    "details",
    { class: "asked" },
    h("summary", {}, `${text(input["binding"])} · ${text(input["model_id"])} · ${words}`),
    h("ul", { class: "sources" }, ...sources),
  );
}

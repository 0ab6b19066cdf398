// A guide as its author wrote it: purpose, problems, bindings with their queries, rules, terms.
import { h } from "./dom";
import { drawQuery } from "./guide-outcome";
import type { DescribedGuide, GuideBinding, GuideProblem } from "./guide-text";

/**
 * Draws a guide. `ask` runs a query in the query view, `save` offers the guide in another syntax.
 */
export function drawAbout(
  guide: DescribedGuide,
  ask: (q: string) => void,
  save: (syntax: "json" | "odin") => void,
): HTMLElement[] {
  const paragraph = (title: string, words: string | null) =>
    words?.trim() ? [h("h3", {}, title), h("p", { class: "words" }, words.trim())] : [];
  return [
    h(
      "div",
      { class: "bar" },
      h("h2", {}, guide.concept ?? guide.id),
      h("p", { class: "summary" }, `${guide.id} · GDL ${guide.gdl_version}`),
    ),
    ...paragraph("Purpose", guide.purpose),
    ...paragraph("Use", guide.use),
    ...paragraph("Misuse", guide.misuse),
    h(
      "p",
      { class: "actions" },
      h(
        "button",
        { type: "button", id: "guide-json", onclick: () => save("json") },
        "Save as GDL2 (JSON)",
      ),
      h(
        "button",
        { type: "button", id: "guide-odin", onclick: () => save("odin") },
        "Save as ODIN",
      ),
    ),
    h(
      "h3",
      {},
      guide.problems.length === 0 ? "No problems found" : `Problems (${guide.problems.length})`,
    ),
    drawProblems(guide.problems),
    h("h3", {}, "Bindings"),
    ...guide.bindings.map((binding) => drawBinding(binding, ask)),
    h("h3", {}, `Rules (${guide.rules.length}), by priority`),
    ...statements("Before all", guide.pre_conditions),
    ...statements("First", guide.default_actions),
    h("ol", { class: "rules" }, ...guide.rules.map(drawRule)),
    h(
      "details",
      { class: "asked", id: "guide-terms" },
      h("summary", {}, `Terms (${guide.terms.length})`),
      h("dl", { class: "terms" }, ...guide.terms.flatMap(drawTerm)),
    ),
  ];
}

/** Draws problems with their places. `show` opens the place of a problem. */
export function drawProblems(
  problems: GuideProblem[],
  show?: (problem: GuideProblem) => void,
): HTMLElement {
  const place = (problem: GuideProblem) => {
    const words = `line ${problem.line}, column ${problem.column}`;
    return show
      ? h("button", { type: "button", class: "link", onclick: () => show(problem) }, words)
      : words;
  };
  const draw = (problem: GuideProblem) => {
    const { severity, code, message, help } = problem;
    return h(
      "li",
      { class: severity },
      h("strong", {}, place(problem), ": "),
      ...quoted(message),
      " ",
      h("small", {}, code),
      help ? h("span", { class: "help-line" }, ...quoted(help)) : null,
    );
  };
  return h("ul", { class: "guide-problems" }, ...problems.map(draw));
}

/** Formats a message: source words in back-ticks become code. */
function quoted(text: string): Node[] {
  return text
    .split("`")
    .map((part, at) => (at % 2 === 1 ? h("code", {}, part) : document.createTextNode(part)));
}

function drawBinding(binding: GuideBinding, ask: (q: string) => void): HTMLElement {
  const elements = binding.elements.map(({ id, name, path }) =>
    h(
      "li",
      {},
      h("strong", {}, name ?? id),
      " ",
      h("small", {}, id),
      " ",
      h("code", { class: "path" }, path),
    ),
  );
  return h(
    "article",
    { class: "binding" },
    h(
      "p",
      {},
      h(
        "span",
        { class: "mark" },
        binding.type === "OUTPUT" ? "makes" : binding.type === "INPUT" ? "reads" : "both",
      ),
      " ",
      h("strong", {}, binding.name ?? binding.id),
      " ",
      h("code", { class: "path" }, binding.model_id),
    ),
    h("ul", {}, ...elements),
    ...statements("Only where", binding.predicates),
    binding.aql ? drawQuery({ id: "AQL", aql: binding.aql }, ask) : null,
  );
}

function statements(title: string, texts: string[]): HTMLElement[] {
  return texts.length === 0
    ? []
    : [
        h(
          "p",
          { class: "statements" },
          h("small", {}, title),
          ...texts.map((one) => h("code", {}, one)),
        ),
      ];
}

function drawRule({
  id,
  name,
  priority,
  when,
  then,
  cards,
}: DescribedGuide["rules"][number]): HTMLElement {
  const words = cards > 0 ? ` · ${cards} ${cards === 1 ? "card" : "cards"}` : "";
  return h(
    "li",
    {},
    h(
      "details",
      {},
      h(
        "summary",
        {},
        h("span", { class: "mark" }, String(priority)),
        " ",
        name ?? id,
        h("small", {}, words),
      ),
      ...statements("When", when),
      ...statements("Then", then),
    ),
  );
}

function drawTerm({ id, text, description }: DescribedGuide["terms"][number]): HTMLElement[] {
  return [
    h("dt", {}, h("code", {}, id), " ", text),
    h("dd", {}, description === text ? "" : description),
  ];
}

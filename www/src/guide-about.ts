// The description of a guide: purpose, problems, bindings with their queries, rules, terms.
import { h, quoted } from "./dom";
import { EngineError } from "./engine";
import { languageOf, reasonOf } from "./fault";
import { drawQuery } from "./guide-outcome";
import type { DescribedGuide, GuideBinding, GuideProblem } from "./guide-text";
import { texts } from "./texts";

/**
 * Draws a guide. `ask` runs a query in the query view. `save` downloads the guide in another syntax.
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
    ...paragraph(texts.guideAbout.purpose, guide.purpose),
    ...paragraph(texts.guideAbout.use, guide.use),
    ...paragraph(texts.guideAbout.misuse, guide.misuse),
    h(
      "p",
      { class: "actions" },
      h(
        "button",
        { type: "button", id: "guide-json", onclick: () => save("json") },
        texts.guideAbout.saveJson,
      ),
      h(
        "button",
        { type: "button", id: "guide-odin", onclick: () => save("odin") },
        texts.guideAbout.saveOdin,
      ),
    ),
    h(
      "h3",
      {},
      guide.problems.length === 0
        ? texts.guideAbout.noProblems
        : texts.guideAbout.problems({ count: guide.problems.length }),
    ),
    drawProblems(guide.problems),
    h("h3", {}, texts.guideAbout.bindings),
    ...guide.bindings.map((binding) => drawBinding(binding, ask)),
    h("h3", {}, texts.guideAbout.rules({ count: guide.rules.length })),
    ...statements(texts.guideAbout.beforeAll, guide.pre_conditions),
    ...statements(texts.guideAbout.first, guide.default_actions),
    h("ol", { class: "rules" }, ...guide.rules.map(drawRule)),
    h(
      "details",
      { class: "asked", id: "guide-terms" },
      h("summary", {}, texts.guideAbout.terms({ count: guide.terms.length })),
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
    const words = texts.frame.place(problem);
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
      h("span", { lang: "en" }, ...quoted(message)),
      " ",
      h("small", {}, code),
      help ? h("span", { class: "help-line", lang: "en" }, ...quoted(help)) : null,
    );
  };
  return h("ul", { class: "guide-problems" }, ...problems.map(draw));
}

/**
 * Draws why a file is not a guide. A text with located problems can be edited: `edit` opens it in the
 * editor.
 */
export function drawRefused(name: string, error: unknown, edit: () => void): HTMLElement {
  const problems = error instanceof EngineError ? (error.diagnostics as GuideProblem[]) : [];
  const isLocated = problems.length > 0;
  return h(
    "div",
    { class: "bad" },
    h("strong", {}, name),
    ": ",
    isLocated ? drawProblems(problems) : h("span", { lang: languageOf(error) }, reasonOf(error)),
    isLocated ? h("button", { type: "button", onclick: edit }, texts.guide.editHere) : null,
  );
}

function directionOf({ type }: GuideBinding): string {
  if (type === "OUTPUT") return texts.guideAbout.makes;
  return type === "INPUT" ? texts.guideAbout.reads : texts.guideAbout.both;
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
      h("span", { class: "mark" }, directionOf(binding)),
      " ",
      h("strong", {}, binding.name ?? binding.id),
      " ",
      h("code", { class: "path" }, binding.model_id),
    ),
    h("ul", {}, ...elements),
    ...statements(texts.guideAbout.onlyWhere, binding.predicates),
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
  const words = cards > 0 ? ` · ${texts.guideAbout.cards({ count: cards })}` : "";
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
      ...statements(texts.guideAbout.when, when),
      ...statements(texts.guideAbout.then, then),
    ),
  );
}

function drawTerm({ id, text, description }: DescribedGuide["terms"][number]): HTMLElement[] {
  return [
    h("dt", {}, h("code", {}, id), " ", text),
    h("dd", {}, description === text ? "" : description),
  ];
}

/** Shows a message in place of a part of the view. */
export function say(container: HTMLElement, title: string, about: string): void {
  container.replaceChildren(h("div", { class: "empty" }, h("h2", {}, title), h("p", {}, about)));
}

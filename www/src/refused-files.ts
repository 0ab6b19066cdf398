// The refused files: their problems by rule with counts, a report as a file, and a button that adds
// compositions in spite of their problems.
import { h, save } from "./dom";
import { textField } from "./export";
import type { TextFile } from "./input-files";
import type { Problem } from "./protocol";
import { texts } from "./texts";

/** A file that was refused. */
export interface Refused {
  file: TextFile;
  /** The problems of the content. For any other reason, a single problem without rule and path. */
  problems: Problem[];
  /** The patient of the composition, if it can be added in spite of its problems. */
  ehr: (() => Promise<string>) | null;
  /**
   * Adds the composition without its uid, if nothing else was refused. Returns the id of the EHR.
   */
  renew: (() => Promise<string>) | null;
  /** The number of stored lines of an export of which other lines were refused; 0 otherwise. */
  stored: number;
}

/** The actions on refused files; `null` where they are not offered. */
export interface RefusedActions {
  /** Adds compositions in spite of their problems. */
  load: (() => void) | null;
  /** Adds compositions without their uids. */
  renew: (() => void) | null;
}

/** The maximum number of rules, and of places of one rule, that are drawn. */
const RULES = 40;
const PLACES = 20;

/** The problems of one rule. */
interface Fold {
  /** The code of the rule; empty for problems without one. */
  rule: string;
  /** The distinct messages in their general form. */
  messages: Set<string>;
  files: Set<string>;
  places: { file: string; problem: Problem }[];
}

/** Groups problems by rule, or by message without a rule. The group with most places comes first. */
export function folded(refused: Refused[]): Fold[] {
  const folds = new Map<string, Fold>();
  for (const { file, problems } of refused) {
    for (const problem of problems) {
      const key = problem.rule || general(problem.message);
      const fold = folds.get(key) ?? {
        rule: problem.rule,
        messages: new Set(),
        files: new Set(),
        places: [],
      };
      fold.messages.add(general(problem.message));
      fold.files.add(file.name);
      fold.places.push({ file: file.name, problem });
      folds.set(key, fold);
    }
  }
  return [...folds.values()].sort((a, b) => b.places.length - a.places.length);
}

/** Replaces the parts that differ between messages of one kind: quoted words, line numbers. */
function general(message: string): string {
  const [line = ""] = message.split("\n");
  // The core writes English, the page its own language.
  const own = texts.frame.place({ line: 0, column: 0 }).replaceAll("0", "\\d+");
  return line
    .replaceAll(/`[^`]*`/g, "…")
    .replaceAll(new RegExp(`${own}|line \\d+, column \\d+`, "g"), (place) =>
      place.replaceAll(/\d+/g, "…"),
    );
}

/** Writes the report: one line of CSV for each problem. */
export function report(refused: Refused[]): string {
  const lines = refused.flatMap(({ file, problems }) =>
    problems.map(({ rule, path, message }) => [file.name, rule, path, message]),
  );
  const written = [["file", "rule", "path", "problem"], ...lines].map((line) =>
    line.map((text) => (text === "" ? "" : textField(text))).join(","),
  );
  return `${written.join("\r\n")}\r\n`;
}

/** Returns the language attribute of a problem: the core, which has the rules, writes English. */
function languageOf({ rule }: Pick<Problem, "rule">): string | null {
  return rule === "" ? null : "en";
}

/** Returns the rule of a group with its first message. */
function titleOf({ rule, messages }: Fold): string {
  const [first = ""] = messages;
  const count = messages.size - 1;
  const words = count > 0 ? texts.refused.others({ first, count }) : first;
  return rule ? `${rule}: ${words}` : words;
}

function drawFold(fold: Fold, open: boolean): HTMLElement {
  const { files, places } = fold;
  const shown = places.slice(0, PLACES).map(({ file, problem }) => {
    const { path, message } = problem;
    const at = path ? ` ${path}` : "";
    return h(
      "li",
      { class: "bad" },
      h("strong", {}, `${file}:`),
      h("code", { class: "path" }, at),
      " ",
      h("span", { lang: languageOf(problem) }, message),
    );
  });
  const more = places.length - shown.length;
  return h(
    "details",
    { class: "fold", open },
    h(
      "summary",
      {},
      titleOf(fold),
      " ",
      h("span", { class: "count" }, texts.refused.times({ count: places.length, of: files.size })),
    ),
    h("ul", {}, ...shown, more > 0 ? h("li", {}, texts.frame.more({ count: more })) : null),
  );
}

/** Draws the numbers of refused files, and of the stored lines of those that are stored in part. */
function drawTitles(refused: Refused[]): HTMLElement[] {
  const count = refused.filter(({ stored }) => stored === 0).length;
  const parts = refused.filter(({ stored }) => stored > 0);
  const whole = h(
    "p",
    {},
    h("strong", {}, texts.refused.title({ count })),
    `: ${texts.refused.about}`,
  );
  return [
    ...(count > 0 ? [whole] : []),
    ...parts.map(({ file, stored }) =>
      h("p", {}, h("strong", {}, file.name), `: ${texts.refused.partly({ count: stored })}`),
    ),
  ];
}

/** Draws the refused files. */
export function drawRefused(refused: Refused[], { load, renew }: RefusedActions): HTMLElement {
  const folds = folded(refused);
  const loadable = refused.filter(({ ehr }) => ehr !== null).length;
  const renewable = refused.filter((one) => one.renew !== null).length;
  const buttons = [
    h(
      "button",
      {
        id: "save-report",
        type: "button",
        onclick: () => save("problems.csv", "text/csv;charset=utf-8", report(refused)),
      },
      texts.refused.report,
    ),
    load && loadable > 0
      ? h(
          "button",
          { id: "load-anyway", type: "button", onclick: load },
          texts.refused.load({ count: loadable }),
        )
      : null,
    renew && renewable > 0
      ? h(
          "button",
          { id: "add-renewed", type: "button", onclick: renew },
          texts.refused.renew({ count: renewable }),
        )
      : null,
  ];
  return h(
    "div",
    { class: "refused" },
    ...drawTitles(refused),
    ...folds.slice(0, RULES).map((fold) => drawFold(fold, folds.length <= 3)),
    folds.length > RULES
      ? h("p", { class: "quiet" }, texts.refused.moreRules({ count: folds.length - RULES }))
      : null,
    h("p", { class: "actions" }, ...buttons),
  );
}

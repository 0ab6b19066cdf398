// The constraints of the templates on the inputs of a guide: units, ranges and choices of
// the node to which a variable is bound.
import type { Engine } from "./engine";
import type { DescribedGuide } from "./guide-text";
import type { WebInput, WebNode, WebTemplate } from "./web-template";
import { texts } from "./texts";

/** The maximum number of templates that are read for a form. */
const TEMPLATES = 40;

/** The constraints of templates on one variable. */
export interface Hint {
  units: string[];
  /** The choices as literals of fixtures. */
  options: { literal: string; text: string }[];
  /** The ranges in words. */
  words: string;
  /** The ranges by unit; a count has no unit (empty). */
  ranges: Map<string, Range>;
}

/** Hints by variable. */
export type Hints = Map<string, Hint>;

type Range = NonNullable<NonNullable<WebInput["validation"]>["range"]>;

/** Whether the number of a literal, such as `140,mm[Hg]` or `3`, is out of the range of its unit. */
export function isOutside(literal: string, { ranges }: Hint): boolean {
  const [amount = "", unit = ""] = literal.split(",").map((part) => part.trim());
  const { min = -Infinity, minOp, max = Infinity, maxOp } = ranges.get(unit) ?? {};
  const [value, least, most] = [Number(amount), Number(min), Number(max)];
  return (
    value < least ||
    value > most ||
    (value === least && minOp === ">") ||
    (value === most && maxOp === "<")
  );
}

function inWords(range: Range, unit: string): string {
  const words = limitsInWords(range);
  return words && unit ? `${words} ${unit}` : words;
}

function limitsInWords({ min, minOp, max, maxOp }: Range): string {
  const { range, both, atLeast, moreThan, atMost, lessThan } = texts.guideForm;
  const [least, most] = [String(min), String(max)];
  if (min !== undefined && max !== undefined && minOp !== ">" && maxOp !== "<")
    return range({ min: least, max: most });
  const lower = minOp === ">" ? moreThan({ min: least }) : atLeast({ min: least });
  const upper = maxOp === "<" ? lessThan({ max: most }) : atMost({ max: most });
  if (min === undefined) return max === undefined ? "" : upper;
  return max === undefined ? lower : both({ lower, upper });
}

/** Returns the constraints of one node. */
function hintOf({ rmType, inputs = [] }: WebNode, language: string): Hint {
  const hint: Hint = { units: [], options: [], words: "", ranges: new Map() };
  for (const input of inputs) {
    const list = input.list ?? [];
    if (rmType === "DV_QUANTITY" && input.suffix === "unit")
      for (const { value: unit, validation } of list) {
        hint.units.push(unit);
        hint.ranges.set(unit, validation?.range ?? {});
      }
    else if (rmType === "DV_COUNT") hint.ranges.set("", input.validation?.range ?? {});
    else if (rmType === "DV_ORDINAL" || rmType === "DV_CODED_TEXT")
      for (const { value, label = value, localizedLabels, ordinal } of list) {
        const text = localizedLabels?.[language] ?? label;
        const code = `${value.includes("::") ? "" : "local::"}${value}|${label}|`;
        hint.options.push({ literal: ordinal === undefined ? code : `${ordinal}|${code}`, text });
      }
  }
  const words = [...hint.ranges].map(([unit, range]) => inWords(range, unit));
  hint.words = words.filter(Boolean).join(", ");
  return hint;
}

/** Returns the path of a node from its archetype, without names: `/data[at0001]/items[at0004]`. */
function pathBelow(model: string, path: string): string | null {
  const plain = path.replaceAll(/\[([^\],]*),[^\]]*\]/g, "[$1]");
  const at = plain.lastIndexOf(`[${model}]`);
  return at < 0 ? null : plain.slice(at + model.length + 2).replace(/\/value$/, "");
}

function* nodes(node: WebNode): Generator<WebNode> {
  yield node;
  for (const child of node.children ?? []) yield* nodes(child);
}

/** Returns the hints of templates about the inputs of a guide. The first template wins. */
export function hintsFrom(
  templates: WebTemplate[],
  guide: DescribedGuide,
  language: string,
): Hints {
  const found: Hints = new Map();
  for (const { tree } of templates)
    for (const node of nodes(tree)) {
      if (!node.inputs?.length) continue;
      for (const { model_id, elements } of guide.bindings) {
        const path = pathBelow(model_id, node.aqlPath);
        const bound = elements.find((element) => path !== null && element.path === path);
        if (bound && !found.has(bound.id)) found.set(bound.id, hintOf(node, language));
      }
    }
  return found;
}

/** The web templates of a repository. They are read again only if the data were exchanged. */
export class Hinting {
  readonly #engine: Engine;
  #of = "";
  #templates: Promise<WebTemplate[]> = Promise.resolve([]);

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Returns the hints for a guide; empty if there are no templates or if they cannot be read. */
  async hints(of: string, guide: DescribedGuide, language: string): Promise<Hints> {
    if (this.#of !== of) {
      this.#of = of;
      this.#templates = this.#read();
    }
    return hintsFrom(await this.#templates, guide, language);
  }

  async #read(): Promise<WebTemplate[]> {
    try {
      const ids = (await this.#engine.call("templates", null)).slice(0, TEMPLATES);
      const texts = await Promise.all(ids.map((id) => this.#engine.call("webTemplate", id)));
      return texts.map((text) => JSON.parse(text) as WebTemplate);
    } catch {
      return [];
    }
  }
}

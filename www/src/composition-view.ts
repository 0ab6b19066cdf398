// A composition as a readable document: names and values. The value of a selected cell is marked.
import { view } from "./cell";
import { h } from "./dom";
import { NumberText, print, type Json } from "./json";
import { texts } from "./texts";

type Members = { [name: string]: Json };

function isObject(value: Json | undefined): value is Members {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof NumberText)
  );
}

/** The name of a LOCATABLE. */
function named(value: Members): string | null {
  const name = value["name"];
  const text = isObject(name) ? name["value"] : undefined;
  return typeof text === "string" ? text : null;
}

/**
 * The name of a party, such as the composer, and its relationship to the patient, such as mother;
 * `null` for anything else.
 */
function party(value: Json): string | null {
  if (!isObject(value)) return null;
  const { name, relationship } = value;
  const parts = [name, isObject(relationship) ? relationship["value"] : null];
  return parts.filter((part) => typeof part === "string").join(", ") || null;
}

/** Attributes that identify and describe, and are not shown. */
const QUIET = new Set([
  "_type",
  "name",
  "archetype_node_id",
  "archetype_details",
  "uid",
  "language",
  "encoding",
  "territory",
  "links",
  "feeder_audit",
]);

/** Whether an attribute is not shown. The subject is, unless it is the patient. */
function isQuiet(attribute: string, value: Json): boolean {
  const isPatient = attribute === "subject" && isObject(value) && value["_type"] === "PARTY_SELF";
  return isPatient || QUIET.has(attribute);
}

/** Returns the code of the innermost node of a path: `at0004` of `…/items[at0004]/value`. */
function innermost(path: string): string | null {
  return [...path.matchAll(/\[([\w.-]+)/g)].at(-1)?.[1] ?? null;
}

/** Formats a date-time with a space, at which the line may break. */
function readable(text: string): string {
  return text.replace(/^(\d{4}-\d\d-\d\d)T(?=\d\d:)/, "$1 ");
}

/** A value of a document that a reader sees. */
export interface Fact {
  /** The path of the value. It is unique in the document, and equal in other versions. */
  key: string;
  /** The names of the nodes around the value, and its own name. */
  names: string[];
  text: string;
}

/** Returns the values of a document in their order. Those that a reader does not see are left out. */
export function facts(document: Json): Fact[] {
  const found: Fact[] = [];
  const keys = new Map<string, number>();
  // The same path may occur several times, in lists and in repeated groups. A number makes it unique.
  const unique = (key: string) => {
    const before = keys.get(key) ?? 0;
    keys.set(key, before + 1);
    return before === 0 ? key : `${key} #${before + 1}`;
  };
  const visit = (value: Json, key: string, names: string[], attribute: string): void => {
    if (Array.isArray(value)) {
      for (const item of value) visit(item, key, names, attribute);
      return;
    }
    const person = party(value);
    const isData = isObject(value) && String(value["_type"] ?? "").startsWith("DV_");
    if (person !== null || isData || !isObject(value)) {
      const shown = person ?? view(print(value)).text;
      const own = attribute === "value" ? names : [...names, attribute.replaceAll("_", " ")];
      if (shown) found.push({ key: unique(key), names: own, text: readable(shown) });
      return;
    }
    const title = named(value);
    const node = value["archetype_node_id"];
    const here = typeof node === "string" ? unique(`${key}[${node},${title ?? ""}]`) : key;
    for (const [member, item] of Object.entries(value))
      if (!isQuiet(member, item))
        visit(item, `${here}/${member}`, title ? [...names, title] : names, member);
  };
  visit(document, "", [], "");
  return found;
}

/** A document in which the place of a cell is marked. */
export class Paper {
  readonly element: HTMLElement;
  /** The JSON of the cell; `null` if nothing is marked. */
  readonly #marked: string | null;
  /** The code of the node that contains the cell. The same value may occur elsewhere, too. */
  readonly #code: string | null;
  #inside = false;
  #first: HTMLElement | undefined;

  /**
   * `cell` is the JSON of the cell, `path` is the path of its column. Without a cell, nothing is
   * marked.
   */
  constructor(document: Json, cell?: Json, path: string | null = null) {
    this.#marked = cell === undefined ? null : print(cell);
    this.#code = innermost(path ?? "");
    this.element = h("article", { class: "paper" }, ...this.#draw(document, 3));
  }

  /** Scrolls to the first marked place. */
  reveal(): void {
    this.#first?.scrollIntoView({ block: "center" });
  }

  #draw(value: Json, level: number): HTMLElement[] {
    if (Array.isArray(value)) return value.flatMap((item) => this.#draw(item, level));
    if (!isObject(value)) return [];
    const outside = this.#inside;
    this.#inside ||= value["archetype_node_id"] === this.#code;
    try {
      return this.#object(value, level);
    } finally {
      this.#inside = outside;
    }
  }

  #object(value: Members, level: number): HTMLElement[] {
    const title = named(value);
    if (value["_type"] === "ELEMENT")
      return [
        this.#mark(value, this.#line(title ?? "", value["value"] ?? value["null_flavour"] ?? null)),
      ];
    const inner = Object.entries(value).flatMap(([attribute, item]) =>
      this.#attribute(attribute, item, title ? level + 1 : level),
    );
    if (!title) return inner;
    const heading =
      level <= 6
        ? (h as (tag: string, attributes: object, ...children: string[]) => HTMLElement)(
            `h${level}`,
            {},
            title,
          )
        : h("p", { class: "paper-deep" }, title);
    return [this.#mark(value, h("section", {}, heading, ...inner))];
  }

  #attribute(attribute: string, value: Json, level: number): HTMLElement[] {
    if (isQuiet(attribute, value)) return [];
    const person = party(value);
    if (person !== null) return [this.#line(attribute.replaceAll("_", " "), person)];
    const whole = isObject(value) && String(value["_type"] ?? "").startsWith("DV_");
    if (whole || !(Array.isArray(value) || isObject(value)))
      return [this.#line(attribute.replaceAll("_", " "), value)];
    return this.#draw(value, level);
  }

  #line(name: string, value: Json): HTMLElement {
    const shown = view(print(value));
    const line = h(
      "p",
      { class: "paper-line" },
      h("span", { class: "paper-name" }, name),
      h("span", {}, shown.kind === "null" ? texts.frame.noValue : readable(shown.text)),
    );
    return this.#holds(value) ? this.#point(line) : line;
  }

  /** Whether the cell shows this value, or a direct part of it. */
  #holds(value: Json): boolean {
    if (this.#marked === null) return false;
    if (this.#code && !this.#inside) return false;
    if (print(value) === this.#marked) return true;
    return (
      isObject(value) &&
      Object.values(value).some((item) => !isObject(item) && print(item) === this.#marked)
    );
  }

  #mark(value: Json, element: HTMLElement): HTMLElement {
    return (this.#inside || !this.#code) && print(value) === this.#marked
      ? this.#point(element)
      : element;
  }

  #point(element: HTMLElement): HTMLElement {
    element.classList.add("marked");
    this.#first ??= element;
    return element;
  }
}

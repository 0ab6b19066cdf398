// A composition as a readable document: names and values, with the place of a cell marked.
import { view } from "./cell";
import { h } from "./dom";
import { NumberText, print, type Json } from "./json";

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
  "subject",
  "links",
  "feeder_audit",
]);

/** Returns the code of the innermost node of a path: `at0004` of `…/items[at0004]/value`. */
function innermost(path: string): string | null {
  return [...path.matchAll(/\[([\w.-]+)/g)].at(-1)?.[1] ?? null;
}

/** Formats a date-time with a space, at which the line may break. */
function readable(text: string): string {
  return text.replace(/^(\d{4}-\d\d-\d\d)T(?=\d\d:)/, "$1 ");
}

/** A document in which the place of a cell is marked. */
export class Paper {
  readonly element: HTMLElement;
  readonly #marked: string;
  /** The code of the node that contains the cell. The same value may occur elsewhere, too. */
  readonly #code: string | null;
  #inside = false;
  #first: HTMLElement | undefined;

  /** `cell` is the JSON of the cell, `path` is the path of its column. */
  constructor(document: Json, cell: Json, path: string | null) {
    this.#marked = print(cell);
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
    if (QUIET.has(attribute)) return [];
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
      h("span", {}, shown.kind === "null" ? "no value" : readable(shown.text)),
    );
    return this.#holds(value) ? this.#point(line) : line;
  }

  /** Whether the cell shows this value, or a direct part of it. */
  #holds(value: Json): boolean {
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

// Forms made from web templates: a control for each input, and the values as FLAT.
import { h } from "./dom";
import { NumberText } from "./json";
import type { Misplaced } from "./protocol";
import { numberFrom, type NumberKind } from "./typed-number";
import {
  label,
  meaning,
  type WebInput,
  type WebNode,
  type WebOption,
  type WebTemplate,
} from "./web-template";
import { texts } from "./texts";

/** The entered values: keys and values of the format FLAT. */
export type Flat = Record<string, string | NumberText | boolean>;

/** A control for one input. */
export interface Control {
  element: HTMLInputElement | HTMLSelectElement;
  /** Whether the value is a number. */
  isNumber?: true;
  /** The entered value; `null` if there is none or if it is unreadable. */
  value(): string | null;
  /** The reason why the entered text is unreadable; `null` if it is readable. */
  problem(): string | null;
}

/** The classes whose only input is a choice without a suffix of its own. */
const CODED = new Set(["DV_ORDINAL", "DV_SCALE", "DV_CODED_TEXT", "DV_STATE"]);

let last = 0;

function choice(options: WebOption[], language: string): Control {
  const words = (option: WebOption) =>
    [option.ordinal, option.localizedLabels?.[language] ?? option.label ?? option.value]
      .filter((part) => part !== undefined)
      .join(" · ");
  const element = h(
    "select",
    {},
    h("option", { value: "" }, texts.templates.notChosen),
    ...options.map((option) => h("option", { value: option.value }, words(option))),
  );
  return { element, value: () => element.value || null, problem: () => null };
}

function field(
  attributes: Record<string, string | number>,
  read: (text: string) => string = (text) => text,
): Control {
  const element = h("input", { ...attributes, autocomplete: "off" });
  return {
    element,
    value: () => (element.value.trim() === "" ? null : read(element.value.trim())),
    problem: () => null,
  };
}

function numeric(kind: NumberKind): Control {
  const inputmode = kind === "decimal" ? "decimal" : "numeric";
  const element = h("input", { type: "text", inputmode, autocomplete: "off" });
  const value = () => numberFrom(element.value.trim(), kind);
  const problem = () => {
    const text = element.value.trim();
    return text === "" || value() !== null ? null : texts.templates[kind]({ text });
  };
  return { element, isNumber: true, value, problem };
}

/** Returns the offset of this browser at a local time: `+02:00`. */
function zone(local: string): string {
  const minutes = -new Date(local).getTimezoneOffset();
  const two = (number: number) => String(Math.trunc(number)).padStart(2, "0");
  return `${minutes < 0 ? "-" : "+"}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
}

/** Returns the control for an input. */
export function control(input: WebInput, language: string): Control {
  if (input.list?.length && !input.listOpen) return choice(input.list, language);
  if (input.type === "BOOLEAN")
    return {
      ...choice(
        [
          { value: "true", label: texts.templates.yes },
          { value: "false", label: texts.templates.no },
        ],
        language,
      ),
    };
  if (input.type === "DECIMAL") return numeric("decimal");
  if (input.type === "INTEGER") return numeric("whole");
  if (input.type === "DATE") return field({ type: "date" });
  if (input.type === "TIME") return field({ type: "time", step: 1 });
  if (input.type === "DATETIME")
    return field(
      { type: "datetime-local", step: 1 },
      (text) => `${text.length === 16 ? `${text}:00` : text}${zone(text)}`,
    );
  return field({
    type: "text",
    ...(input.list?.length
      ? { placeholder: input.list.map((option) => option.label ?? option.value).join(", ") }
      : {}),
  });
}

/** Returns the key of an input below the key of its node. */
function keyOf(node: WebNode, input: WebInput, key: string): string {
  const suffix = input.suffix ?? (CODED.has(node.rmType) ? "code" : "");
  return suffix ? `${key}|${suffix}` : key;
}

/** The line of a value, and its controls by key. */
interface Field {
  line: HTMLElement;
  controls: { key: string; input: WebInput; control: Control }[];
}

/** An element that is drawn when the user opens it: a closed group, or the next instance of a node. */
interface Fold {
  /** Whether the field of a key is inside of this element, so that it must be opened first. */
  hides(key: string): boolean;
  open(): void;
}

/** A form for a template. */
export class Form {
  readonly element: HTMLElement;
  readonly #language: string;
  /** The fields by the key of their node. */
  readonly #fields = new Map<string, Field>();
  readonly #folds: Fold[] = [];

  constructor({ tree }: WebTemplate, language: string) {
    this.#language = language;
    this.element = h("div", { class: "form" }, ...this.#children(tree, tree.id));
  }

  /** Returns the entered values. */
  flat(): Flat {
    return Object.assign({}, ...[...this.#fields.values()].map(entered)) as Flat;
  }

  /** Returns the problems of unreadable texts. */
  unreadable(): Misplaced[] {
    const controls = [...this.#fields.values()].flatMap((field) => field.controls);
    return controls.flatMap(({ key, control }) => {
      const message = control.problem();
      return message === null ? [] : [{ key, message }];
    });
  }

  /** Returns the texts of the controls by key. */
  texts(): Map<string, string> {
    const controls = [...this.#fields.values()].flatMap((field) => field.controls);
    return new Map(
      controls.flatMap(({ key, control: { element } }) =>
        element.value === "" ? [] : [[key, element.value]],
      ),
    );
  }

  /** Fills in the texts of another form for the same template. */
  enter(texts: Map<string, string>): void {
    for (const [key, text] of texts) {
      const found = this.#field(key)?.controls.find((one) => one.key === key);
      if (found) found.control.element.value = text;
    }
  }

  /**
   * Shows problems at their fields and opens the groups around them. Returns the problems without a
   * field.
   */
  showProblems(wrong: Misplaced[]): Misplaced[] {
    for (const { line } of this.#fields.values()) unmark(line);
    const elsewhere = wrong.filter(({ key, message }) => !this.#showProblem(key, message));
    this.element.querySelector<HTMLElement>("[aria-invalid]")?.focus();
    return elsewhere;
  }

  #showProblem(key: string, message: string): boolean {
    const field = this.#field(key);
    const found = field?.controls.find((one) => one.key === key) ?? field?.controls[0];
    if (!field || !found) return false;
    mark(field.line, found.control.element, message);
    return true;
  }

  /** Returns the field of a key, and opens the groups around it. */
  #field(key: string): Field | undefined {
    const place = key.replace(/\|.*/, "");
    // Opening an element may draw further closed elements inside, so the search is repeated.
    for (let fold: Fold | undefined; (fold = this.#folds.find(({ hides }) => hides(place)));)
      fold.open();
    return this.#fields.get(place) ?? this.#fields.get(`${place}:0`);
  }

  #children(node: WebNode, key: string): HTMLElement[] {
    return (node.children ?? [])
      .filter((child) => !child.inContext)
      .map((child) => this.#node(child, `${key}/${child.id}`));
  }

  /** Draws a node, with a button for further instances. */
  #node(node: WebNode, key: string): HTMLElement {
    const draw = (at: number) => this.#instance(node, node.max === 1 ? key : `${key}:${at}`);
    if (node.max === 1) return draw(0);
    let number = 1;
    const more = h(
      "button",
      { type: "button", class: "link more" },
      texts.templates.another({ name: label(node, this.#language) }),
    );
    const box = h("div", { class: "form-list" }, draw(0), more);
    const open = () => {
      more.before(draw(number));
      number += 1;
      if (node.max > 0 && number >= node.max) more.remove();
    };
    more.addEventListener("click", open);
    this.#folds.push({
      open,
      hides: (place) =>
        more.parentElement !== null &&
        place.startsWith(`${key}:`) &&
        Number.parseInt(place.slice(key.length + 1), 10) >= number,
    });
    return box;
  }

  #instance(node: WebNode, key: string): HTMLElement {
    return node.inputs?.length ? this.#value(node, key) : this.#group(node, key);
  }

  /** Draws a group. It is filled when it is opened, because a template has hundreds of fields. */
  #group(node: WebNode, key: string): HTMLElement {
    const body = h("div", { class: "form-group" });
    const details = h(
      "details",
      { open: node.min > 0 },
      h(
        "summary",
        { title: meaning(node, this.#language) },
        label(node, this.#language),
        required(node),
      ),
      body,
    );
    let filled = false;
    const fill = () => {
      if (!details.open || filled) return;
      filled = true;
      body.append(...this.#children(node, key));
    };
    details.addEventListener("toggle", fill);
    fill();
    const open = () => {
      details.open = true;
      fill();
    };
    this.#folds.push({
      open,
      hides: (place) => !(details.open && filled) && place.startsWith(`${key}/`),
    });
    return details;
  }

  #value(node: WebNode, key: string): HTMLElement {
    const name = label(node, this.#language);
    const controls = (node.inputs ?? []).map((input) => ({
      input,
      control: control(input, this.#language),
    }));
    // A unit without alternatives needs no choice.
    for (const {
      input,
      control: { element },
    } of controls)
      if (
        input.suffix === "unit" &&
        element instanceof HTMLSelectElement &&
        element.options.length === 2
      )
        element.selectedIndex = 1;
    const id = `field-${(last += 1)}`;
    controls.forEach(({ input, control: { element } }, at) => {
      if (at === 0) element.id = id;
      else
        element.setAttribute("aria-label", `${name}, ${input.suffix ?? input.type.toLowerCase()}`);
      if (
        input.suffix &&
        controls.length > 1 &&
        element instanceof HTMLInputElement &&
        !element.placeholder
      )
        element.placeholder = input.suffix.replaceAll("_", " ");
    });
    const line = h(
      "p",
      { class: "form-field", title: meaning(node, this.#language) },
      h("label", { for: id }, name, required(node)),
      h("span", { class: "form-controls" }, ...controls.map(({ control: { element } }) => element)),
    );
    this.#fields.set(key, {
      line,
      controls: controls.map(({ input, control }) => ({
        key: keyOf(node, input, key),
        input,
        control,
      })),
    });
    return line;
  }
}

/** Returns the entered values of a field. A unit alone is not a value. */
function entered({ controls }: Field): Flat {
  const there = controls.flatMap(({ key, input, control }) => {
    const value = control.value();
    return value === null ? [] : [{ key, input, control, value }];
  });
  if (there.every(({ input }) => input.suffix === "unit")) return {};
  return Object.fromEntries(
    there.map(({ key, input, control, value }) => [
      key,
      control.isNumber
        ? new NumberText(value)
        : input.type === "BOOLEAN"
          ? value === "true"
          : value,
    ]),
  );
}

/** Shows a problem of a control in its line. Only the first problem of a line is shown. */
export function mark(line: Element, element: HTMLElement, message: string): void {
  if (line.querySelector(".wrong")) return;
  const problem = h("small", { class: "wrong", id: `wrong-${(last += 1)}` }, message);
  line.append(problem);
  element.setAttribute("aria-invalid", "true");
  const described = element.getAttribute("aria-describedby");
  element.setAttribute("aria-describedby", described ? `${problem.id} ${described}` : problem.id);
}

/** Removes the problem of a line. */
export function unmark(line: Element): void {
  line.querySelector(".wrong")?.remove();
  const marked = line.querySelector("[aria-invalid]");
  if (!marked) return;
  marked.removeAttribute("aria-invalid");
  const described = (marked.getAttribute("aria-describedby") ?? "").replace(/^wrong-\d+ ?/, "");
  if (described) marked.setAttribute("aria-describedby", described);
  else marked.removeAttribute("aria-describedby");
}

function required({ min }: WebNode): HTMLElement | null {
  return min > 0 ? h("span", { class: "required", title: texts.templates.required }, " *") : null;
}

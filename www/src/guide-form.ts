// A form for the inputs of a guide. Each input has a control. The values are literals as in fixtures.
import { h } from "./dom";
import { control, mark, unmark, type Control } from "./form";
import { isOutside, type Hint, type Hints } from "./guide-hints";
import type { DescribedGuide, GuideInput } from "./guide-text";
import type { WebInput } from "./web-template";
import { texts } from "./texts";

let last = 0;

interface Field {
  controls: Control[];
  /** The entered value as a literal, or `null`. */
  literal(): string | null;
  /** Shows a literal in the controls. */
  set(literal: string): void;
  /** Empties the controls, but for units and kinds. The default empties the first one. */
  clear?(): void;
}

/** A field that returns the literal that was set. */
interface ExactField extends Field {
  /** Whether the controls show a literal that was set. It needs not be readable. */
  isSet(): boolean;
  clear(): void;
}

function single(input: WebInput, language: string): Field {
  const only = control(input, language);
  return {
    controls: [only],
    literal: () => only.value(),
    set: (literal) => (only.element.value = literal),
  };
}

/** Returns the label of a code: `Low` of `1|local::at0005|Low|`. */
function labelOf(literal: string): string {
  return /\|([^|]*)\|?\s*$/.exec(literal)?.[1] ?? literal;
}

/** Returns the code of a literal without its label: `local::at0005`. */
function codeOf(literal: string): string {
  return /[\w.-]+::[\w.()-]+/.exec(literal)?.[0] ?? literal;
}

/** Selects an option of a list. Adds a missing option, because a case may contain any value. */
function select(element: HTMLElement, value: string, label: string): void {
  if (!(element instanceof HTMLSelectElement)) {
    if (element instanceof HTMLInputElement) element.value = value;
    return;
  }
  const found = [...element.options].find(
    (option) => option.value !== "" && codeOf(option.value) === codeOf(value),
  );
  if (found) element.value = found.value;
  else element.append(h("option", { value, selected: true }, label || value));
}

function choice(options: GuideInput["options"] = [], language: string): Field {
  const list = options.map(({ literal, text }) => ({ value: literal, label: text || literal }));
  const made = single({ type: "CODED_TEXT", list, listOpen: list.length === 0 }, language);
  const set = (literal: string) => {
    for (const { element } of made.controls) select(element, literal, labelOf(literal));
  };
  return { ...made, set };
}

/** Creates controls for a number and its unit. Several units are a choice. */
function quantity(units: string[], language: string): Field {
  const number = control({ type: "DECIMAL" }, language);
  const unit = control(
    units.length > 0
      ? { type: "CODED_TEXT", list: units.map((value) => ({ value, label: value })) }
      : { type: "TEXT" },
    language,
  );
  if (unit.element instanceof HTMLSelectElement) unit.element.selectedIndex = 1;
  else unit.element.placeholder = texts.guideForm.unit;
  const literal = () => {
    const amount = number.value();
    return amount === null
      ? null
      : [amount, unit.value()].filter((part) => part !== null).join(",");
  };
  const set = (given: string) => {
    const at = given.indexOf(",");
    number.element.value = at < 0 ? given : given.slice(0, at);
    const named = at < 0 ? "" : given.slice(at + 1).trim();
    if (named) select(unit.element, named, named);
  };
  return { controls: [number, unit], literal, set };
}

function proportion(language: string): Field {
  const [numerator, denominator] = [
    control({ type: "DECIMAL" }, language),
    control({ type: "DECIMAL" }, language),
  ];
  const kind = control(
    {
      type: "CODED_TEXT",
      list: texts.guideForm.kinds.map((label, value) => ({ value: String(value), label })),
    },
    language,
  );
  if (kind.element instanceof HTMLSelectElement) kind.element.selectedIndex = 1;
  const controls = [numerator, denominator, kind];
  const literal = () =>
    numerator.value() === null ? null : controls.map((part) => part.value() ?? 1).join(",");
  const set = (given: string) =>
    given.split(",").forEach((part, at) => {
      const one = controls[at];
      if (one && part.trim()) one.element.value = part.trim();
    });
  return { controls, literal, set };
}

/** Writes a time of ISO 8601 in its extended form, with a decimal point. */
function extended(text: string): string {
  return text
    .replace(/^(\d{4})(\d\d)(\d\d)(?=T|$)/, "$1-$2-$3")
    .replace(
      /T(\d\d)(\d\d)(\d\d)?/,
      (_, hour, minute, second = "00") => `T${hour}:${minute}:${second}`,
    )
    .replace(/([+-]\d\d)(\d\d)$/, "$1:$2")
    .replace(",", ".");
}

/**
 * Converts a time to the form of its control: the local time without zone. Returns an empty text if
 * it cannot be read.
 */
function localTime(literal: string): string {
  const text = extended(literal.trim());
  const time = new Date(/T/.test(text) ? text : `${text}T00:00:00`);
  if (Number.isNaN(time.getTime())) return "";
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** Creates a control for a time. It shows a time that it cannot read as text. */
function moment(language: string): Field {
  const made = control({ type: "DATETIME" }, language);
  const { element } = made;
  const isText = () => element.type === "text";
  const show = (text: string, type: "datetime-local" | "text") => {
    if (element instanceof HTMLInputElement) element.type = type;
    element.value = text;
  };
  return {
    controls: [made],
    literal: () => (isText() ? element.value.trim() || null : made.value()),
    set: (literal) => {
      const local = localTime(literal);
      show(local || literal, local ? "datetime-local" : "text");
    },
    clear: () => show("", "datetime-local"),
  };
}

/** Returns the choices that the guide mentions, then those that only the templates define. */
function options(input: GuideInput, hint: Hint | undefined): GuideInput["options"] {
  const own = input.options ?? [];
  const known = new Set(own.map(({ literal }) => codeOf(literal)));
  return [...own, ...(hint?.options ?? []).filter(({ literal }) => !known.has(codeOf(literal)))];
}

function made(input: GuideInput, hint: Hint | undefined, language: string): Field {
  switch (input.control) {
    case "quantity":
      return quantity([...new Set([...(input.units ?? []), ...(hint?.units ?? [])])], language);
    case "count":
      return single({ type: "INTEGER" }, language);
    case "boolean":
      return single({ type: "BOOLEAN" }, language);
    case "date_time":
      return moment(language);
    case "proportion":
      return proportion(language);
    case "ordinal":
    case "coded_text":
      return choice(options(input, hint), language);
    default:
      return single({ type: "TEXT" }, language);
  }
}

/**
 * Makes a field return the literal that was set, until the user changes a control. A control may show
 * less than the literal: it adds a time to a date, and it does not show a zone.
 */
function exact(field: Field): ExactField {
  let given: string | null = null;
  let shown = "";
  const texts = () => field.controls.map(({ element }) => element.value).join("\n");
  const isSet = () => given !== null && texts() === shown;
  return {
    controls: field.controls,
    literal: () => (isSet() ? given : field.literal()),
    isSet,
    set: (literal) => {
      field.set(literal);
      given = literal;
      shown = texts();
    },
    clear: () => {
      given = null;
      const [first] = field.controls;
      if (field.clear) field.clear();
      else if (first) first.element.value = "";
    },
  };
}

/** Returns the control with an unreadable text. */
function unreadable({ controls, isSet }: ExactField): Control | undefined {
  return isSet() ? undefined : controls.find((one) => one.problem() !== null);
}

/** Copies the texts of fields for typing. */
function copyTexts(from: Field, to: Field): void {
  from.controls.forEach(({ element }, at) => {
    const other = to.controls[at]?.element;
    if (other instanceof HTMLInputElement) other.value = element.value;
  });
}

/** Converts a value in the form of a trace to a literal; `null` if the form lacks this choice. */
function literalOf(input: GuideInput, hint: Hint | undefined, value: string): string | null {
  if (input.control === "quantity") return value.replace(/^(\S+) /, "$1,");
  if (input.control === "proportion") return value.replace("/", ",");
  if (input.control === "count") return value.replaceAll(",", "");
  if (input.control !== "ordinal" && input.control !== "coded_text") return value;
  const same = options(input, hint)?.find(
    ({ literal, text }) => text === value || labelOf(literal) === value,
  );
  return same?.literal ?? null;
}

/** The labels of the second and third control of a field. */
const PARTS: Partial<Record<GuideInput["control"], ("unit" | "denominator" | "kind")[]>> = {
  quantity: ["unit"],
  proportion: ["denominator", "kind"],
};

/** The form of a guide. */
export class GuideForm {
  readonly element: HTMLElement;
  readonly #hints: Hints;
  readonly #inputs: GuideInput[];
  readonly #fields: [string, ExactField][] = [];
  /** Marks the fields whose values are out of range. */
  readonly #marking: (() => void)[] = [];
  readonly #now = exact(moment("en"));

  constructor(guide: DescribedGuide, language: string, hints: Hints) {
    this.#hints = hints;
    this.#inputs = guide.inputs;
    const groups = guide.bindings
      .map((binding) => ({
        binding,
        inputs: guide.inputs.filter((input) => input.binding === binding.id),
      }))
      .filter(({ inputs }) => inputs.length > 0);
    this.element = h(
      "div",
      { class: "form", oninput: () => this.#markRanges() },
      ...groups.map(({ binding, inputs }) =>
        h(
          "fieldset",
          { class: "guide-inputs" },
          h("legend", {}, binding.name ?? binding.model_id),
          ...inputs.map((input) => this.#draw(input, language)),
        ),
      ),
      this.#drawTime(),
    );
  }

  /** Copies the values from a form of the same guide in another language or version. */
  take(other: GuideForm): void {
    const entered = new Map(other.#fields);
    for (const [variable, field] of this.#fields) {
      const former = entered.get(variable);
      const literal = former?.literal() ?? null;
      if (literal !== null && former && !unreadable(former)) field.set(literal);
      else if (former) copyTexts(former, field);
    }
    const now = other.now();
    if (now !== null) this.#now.set(now);
    this.#markRanges();
  }

  /** Replaces all values by the input of a case, and the time of evaluation. */
  fill(literals: Iterable<[string, string]>, now: string | null): void {
    this.clear();
    const fields = new Map(this.#fields);
    for (const [variable, literal] of literals) fields.get(variable)?.set(literal);
    if (now !== null) this.#now.set(now);
    this.#markRanges();
  }

  /**
   * Replaces all values by those of a patient, as a trace shows them. Returns the names of the
   * inputs whose values the form cannot show.
   */
  show(values: Map<string, string>): string[] {
    const literals: [string, string][] = [];
    const odd: string[] = [];
    for (const input of this.#inputs) {
      const value = values.get(input.variable);
      if (value === undefined || value === "") continue;
      const literal = literalOf(input, this.#hints.get(input.variable), value);
      if (literal === null) odd.push(input.name);
      else literals.push([input.variable, literal]);
    }
    this.fill(literals, this.now());
    return odd;
  }

  /** Empties all fields. */
  clear(): void {
    for (const [, field] of this.#fields) field.clear();
    this.#now.clear();
    this.#markRanges();
  }

  #markRanges(): void {
    for (const mark of this.#marking) mark();
  }

  /** Marks the fields with unreadable texts. Returns their number. */
  showUnreadable(): number {
    const found = this.#fields.filter(([, field]) => {
      const line = field.controls[0]?.element.closest(".form-field");
      if (line) unmark(line);
      const wrong = unreadable(field);
      const message = wrong?.problem();
      if (line && wrong && message) mark(line, wrong.element, message);
      return wrong !== undefined;
    });
    return found.length;
  }

  /** Returns the entered values by variable. */
  literals(): Record<string, string> {
    return Object.fromEntries(
      this.#fields
        .map(([variable, { literal }]) => [variable, literal()])
        .filter(([, literal]) => literal !== null),
    ) as Record<string, string>;
  }

  /** Returns the time of evaluation, or `null` for the current time. */
  now(): string | null {
    return this.#now.literal();
  }

  #drawTime(): HTMLElement {
    const id = `input-${(last += 1)}`;
    const [only] = this.#now.controls;
    if (only) only.element.id = id;
    return h(
      "div",
      { class: "form-field form-time" },
      h("label", { for: id, title: texts.guideForm.timeEmpty }, texts.guideForm.time),
      h("div", { class: "form-controls" }, only?.element),
    );
  }

  #draw(input: GuideInput, language: string): HTMLElement {
    const id = `input-${(last += 1)}`;
    const hint = this.#hints.get(input.variable);
    const field = exact(made(input, hint, language));
    field.controls.forEach(({ element }, at) => {
      if (at === 0) element.id = id;
      else
        element.setAttribute(
          "aria-label",
          `${input.name}, ${texts.guideForm[PARTS[input.control]?.[at - 1] ?? "part"]}`,
        );
    });
    const first = field.controls[0]?.element;
    const isCode = input.control === "ordinal" || input.control === "coded_text";
    if (isCode && first instanceof HTMLInputElement)
      first.placeholder =
        input.control === "ordinal" ? "1|local::at0005|Low|" : "local::at0004|Yes|";
    const words = hint?.words ?? "";
    const range = h("small", { id: `${id}-range`, class: "form-range" }, words);
    if (words) first?.setAttribute("aria-describedby", range.id);
    if (words && hint)
      this.#marking.push(() => {
        const literal = field.literal();
        const isMarked = literal !== null && isOutside(literal, hint);
        first?.classList.toggle("outside", isMarked);
        range.textContent = isMarked ? texts.guideForm.outside({ ranges: words }) : words;
      });
    this.#fields.push([input.variable, field]);
    return h(
      "div",
      { class: "form-field" },
      h("label", { for: id, title: input.description ?? input.variable }, input.name),
      h(
        "div",
        { class: "form-controls" },
        ...field.controls.map(({ element }) => element),
        words ? range : null,
      ),
    );
  }
}

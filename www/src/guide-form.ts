// A form for the inputs of a guide: a control for each, and the values as literals of fixtures.
import { h } from "./dom";
import { control, type Control } from "./form";
import type { DescribedGuide, GuideInput } from "./guide-text";
import type { WebInput } from "./web-template";

let last = 0;

interface Field {
  controls: Control[];
  /** The entered value as a literal, or `null`. */
  literal(): string | null;
}

function single(input: WebInput, language: string): Field {
  const only = control(input, language);
  return { controls: [only], literal: () => only.value()?.toString() ?? null };
}

function choice(
  options: { literal: string; text: string }[],
  open: boolean,
  language: string,
): Field {
  const list = options.map(({ literal, text }) => ({ value: literal, label: text || literal }));
  return single({ type: "CODED_TEXT", list, listOpen: open }, language);
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
  else unit.element.placeholder = "unit";
  const literal = () => {
    const amount = number.value();
    return amount === null
      ? null
      : [amount, unit.value()].filter((part) => part !== null).join(",");
  };
  return { controls: [number, unit], literal };
}

const KINDS = ["ratio", "unitary", "percent", "fraction", "integer fraction"];

function proportion(language: string): Field {
  const [numerator, denominator] = [
    control({ type: "DECIMAL" }, language),
    control({ type: "DECIMAL" }, language),
  ];
  const kind = control(
    { type: "CODED_TEXT", list: KINDS.map((label, value) => ({ value: String(value), label })) },
    language,
  );
  if (kind.element instanceof HTMLSelectElement) kind.element.selectedIndex = 1;
  const literal = () =>
    numerator.value() === null
      ? null
      : [numerator, denominator, kind].map((part) => part.value() ?? 1).join(",");
  return { controls: [numerator, denominator, kind], literal };
}

function field(input: GuideInput, language: string): Field {
  const options = input.options ?? [];
  switch (input.control) {
    case "quantity":
      return quantity(input.units ?? [], language);
    case "count":
      return single({ type: "INTEGER" }, language);
    case "boolean":
      return single({ type: "BOOLEAN" }, language);
    case "date_time":
      return single({ type: "DATETIME" }, language);
    case "proportion":
      return proportion(language);
    case "ordinal":
    case "coded_text":
      return choice(options, options.length === 0, language);
    default:
      return single({ type: "TEXT" }, language);
  }
}

/** The labels of the second and third control of a field. */
const PARTS: Partial<Record<GuideInput["control"], string[]>> = {
  quantity: ["unit"],
  proportion: ["denominator", "kind"],
};

/** The form of a guide. */
export class GuideForm {
  readonly element: HTMLElement;
  readonly #fields: [string, Field][] = [];

  constructor(guide: DescribedGuide, language: string) {
    const groups = guide.bindings
      .map((binding) => ({
        binding,
        inputs: guide.inputs.filter((input) => input.binding === binding.id),
      }))
      .filter(({ inputs }) => inputs.length > 0);
    this.element = h(
      "div",
      { class: "form" },
      ...groups.map(({ binding, inputs }) =>
        h(
          "fieldset",
          { class: "guide-inputs" },
          h("legend", {}, binding.name ?? binding.model_id),
          ...inputs.map((input) => this.#draw(input, language)),
        ),
      ),
    );
  }

  /** Copies the values from a form of the same guide in another language. */
  take(other: GuideForm): void {
    const entered = new Map(other.#fields);
    for (const [variable, { controls }] of this.#fields) {
      controls.forEach(({ element }, at) => {
        const before = entered.get(variable)?.controls[at]?.element;
        if (element instanceof HTMLSelectElement && before instanceof HTMLSelectElement)
          element.selectedIndex = before.selectedIndex;
        else if (before) element.value = before.value;
      });
    }
  }

  /** Returns the entered values by variable. */
  literals(): Record<string, string> {
    return Object.fromEntries(
      this.#fields
        .map(([variable, { literal }]) => [variable, literal()])
        .filter(([, literal]) => literal !== null),
    ) as Record<string, string>;
  }

  #draw(input: GuideInput, language: string): HTMLElement {
    const id = `input-${(last += 1)}`;
    const made = field(input, language);
    made.controls.forEach(({ element }, at) => {
      if (at === 0) element.id = id;
      else
        element.setAttribute(
          "aria-label",
          `${input.name}, ${PARTS[input.control]?.[at - 1] ?? "part"}`,
        );
    });
    const free =
      input.control === "ordinal" || input.control === "coded_text"
        ? made.controls[0]?.element
        : undefined;
    if (free instanceof HTMLInputElement)
      free.placeholder =
        input.control === "ordinal" ? "1|local::at0005|Low|" : "local::at0004|Yes|";
    this.#fields.push([input.variable, made]);
    return h(
      "div",
      { class: "form-field" },
      h("label", { for: id, title: input.description ?? input.variable }, input.name),
      h("div", { class: "form-controls" }, ...made.controls.map(({ element }) => element)),
    );
  }
}

// The texts of the page in its language. `texts/en` is their source and their type.
//
// A bundle that is loaded on demand has its own copy of this module. The page must set its texts,
// too.
import type { texts as english } from "./texts/en";

/** The texts of one language. */
export type Texts = typeof english;

/** The texts of the selected language. They are set before anything is drawn. */
export let texts: Texts;

/** Formats whole numbers as the selected language writes them: 1,234. */
export let count: Intl.NumberFormat;

/**
 * Formats a number with at most two decimals, or below 1 with three significant digits. The
 * decimals suffice for differences of `scale`.
 */
export function decimal(value: number, scale = value): string {
  const zeros = scale === 0 ? 0 : Math.max(0, -Math.floor(Math.log10(Math.abs(scale))));
  return value.toLocaleString(texts.language, { maximumFractionDigits: Math.min(20, 2 + zeros) });
}

/** Selects the texts. */
export function setTexts(selected: Texts): void {
  texts = selected;
  count = new Intl.NumberFormat(selected.language);
}

/** Returns the region of the browser if its language is the selected one, else the language. */
function region(): string {
  const { language } = texts;
  return navigator.languages.find((one) => one.split("-")[0] === language) ?? language;
}

/** Formats a date. `en-GB` and `en-US` differ in the order of day and month. */
export function dateOf(time: number): string {
  return new Intl.DateTimeFormat(region()).format(time);
}

/** Formats a time of day in hours and minutes. */
export function timeOf(time: number): string {
  return new Intl.DateTimeFormat(region(), { timeStyle: "short" }).format(time);
}

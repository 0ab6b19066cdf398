// The texts of the page in its language. `texts/en` is their source and their type.
//
// A bundle that is loaded on demand has its own copy of this module. The page must set its texts, too.
import type { texts as english } from "./texts/en";

/** The texts of one language. */
export type Texts = typeof english;

/** The texts of the selected language. They are set before anything is drawn. */
export let texts: Texts;

/** Formats whole numbers as the selected language writes them: 1,234. */
export let count: Intl.NumberFormat;

let fractions: Intl.NumberFormat;

/** Formats a number with at most two decimals. */
export function decimal(value: number): string {
  return fractions.format(value);
}

/** Selects the texts. */
export function setTexts(selected: Texts): void {
  texts = selected;
  count = new Intl.NumberFormat(selected.language);
  fractions = new Intl.NumberFormat(selected.language, { maximumFractionDigits: 2 });
}

/**
 * Formats a date. The region is that of the browser if its language is the selected one: `en-GB` and
 * `en-US` differ in the order of day and month.
 */
export function dateOf(time: number): string {
  const { language } = texts;
  const own = navigator.languages.find((one) => one.split("-")[0] === language);
  return new Intl.DateTimeFormat(own ?? language).format(time);
}

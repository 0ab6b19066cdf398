// Numbers, plurals and lists of one language, for the texts of the catalogue.

/** The forms of a text by the plural category of its number. */
export type Forms = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };

/** The formats of one language. */
export interface Formats {
  /** Formats a number with the separators of the language, with a fixed number of decimals. */
  number(value: number, decimals?: number): string;
  /** Returns the form of a text that fits a number. */
  plural(value: number, forms: Forms): string;
  /** Returns a number with the form of its noun: `1,234 rows`. */
  counted(value: number, forms: Forms): string;
}

/** Returns the formats of a language. */
export function formats(language: string): Formats {
  const rules = new Intl.PluralRules(language);
  const styles = new Map<number, Intl.NumberFormat>();
  const style = (decimals: number) => {
    const known = styles.get(decimals);
    if (known) return known;
    const fraction = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
    const made = new Intl.NumberFormat(language, fraction);
    styles.set(decimals, made);
    return made;
  };
  const number = (value: number, decimals = 0) => style(decimals).format(value);
  const plural = (value: number, forms: Forms) => forms[rules.select(value)] ?? forms.other;
  return { number, plural, counted: (value, forms) => `${number(value)} ${plural(value, forms)}` };
}

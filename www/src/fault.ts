// The errors of the page and of its workers. The text of an error crosses to the page as a key with
// values, so that it appears in the language of the page.
import { texts } from "./texts";
import { errors } from "./texts/en/errors";

type Errors = typeof errors;

/** The keys of errors in the catalogue. */
export type FaultKey = keyof Errors;

/** An error as it is sent between workers and page. */
export interface FaultText {
  key: FaultKey;
  values: Record<string, string | number>;
}

type Values<K extends FaultKey> = Parameters<Errors[K]> extends [infer V] ? [values: V] : [];

/** Returns the text of an error in the language of the page. In workers the text is English. */
export function faultText({ key, values }: FaultText): string {
  // A worker loads no other language than English.
  const known = (texts as typeof texts | undefined)?.errors ?? errors;
  return (known[key] as (values: FaultText["values"]) => string)(values);
}

/** An error whose text is in the catalogue. */
export class Fault<K extends FaultKey = FaultKey> extends Error {
  readonly fault: FaultText;

  constructor(key: K, ...[values]: Values<K>) {
    const fault = { key, values: (values ?? {}) as FaultText["values"] };
    super(faultText(fault));
    this.fault = fault;
  }
}

/** Returns the reason of a failure for people. Texts of the core are English. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whether the text of a failure is in the language of the page. */
export function isTranslated(error: unknown): boolean {
  return ((error as Partial<Fault> | null)?.fault ?? null) !== null;
}

/** Returns the language attribute of the text of a failure; `null` if it is that of the page. */
export function languageOf(error: unknown): string | null {
  return isTranslated(error) ? null : "en";
}

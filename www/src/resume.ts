// The state that survives the reload after a change of the language: the form of the result and the
// values of parameters. It is stored only during the reload, because a value may concern a person.
import { forget, remember, remembered } from "./remember";

const KEY = "aqlite-resume";

/** The state of the page before the reload. */
export interface Resumed {
  form: string;
  values: Record<string, string>;
  keepsValues: boolean;
}

/** Stores the state and loads the page again. */
export function reloadWith(state: Resumed): void {
  remember("sessionStorage", KEY, JSON.stringify(state));
  location.reload();
}

/** Returns the state before the reload, once; `null` after an ordinary load. */
export function resumed(): Resumed | null {
  const stored = remembered("sessionStorage", KEY);
  forget("sessionStorage", KEY);
  if (stored === null) return null;
  try {
    return JSON.parse(stored) as Resumed;
  } catch {
    return null;
  }
}

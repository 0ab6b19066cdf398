// The state of the page that a change of the language keeps over the reload: the view, the source
// and the values of parameters. It is stored for the moment of the reload only, because a value may
// concern a person. A token is never stored.
import { forget, remember, remembered } from "./remember";

const KEY = "aqlite-resume";

/** The state of the page before the reload. */
export interface Resumed {
  view: string;
  form: string;
  values: Record<string, string>;
  keepsValues: boolean;
  /** The address of the selected server; `null` for the data of this browser. */
  server: string | null;
  /** Whether the server is that of the page. */
  isOwn: boolean;
  /** Whether the server was asked with a token, which the user must enter again. */
  hadToken: boolean;
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

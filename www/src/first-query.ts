// The query with which the page begins: that of a link, or else that of this tab before a reload.
import { remember, remembered } from "./remember";

const KEY = "aqlite-query";

/**
 * Reads the fragment of a link: the query and the form of its result. A link never contains data. It
 * contains the values of parameters only if the user chose so, because they may concern a person.
 */
export function linked(): URLSearchParams {
  return new URLSearchParams(location.hash.slice(1));
}

/** Returns the query of a link, or of this tab before a reload; `null` on a first visit. */
export function firstQuery(): string | null {
  return linked().get("q") ?? remembered("sessionStorage", KEY);
}

/** Stores the query for the next load of this tab of the browser. */
export function keepFirstQuery(q: string): void {
  remember("sessionStorage", KEY, q);
}

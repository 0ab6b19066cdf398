// The server that was selected in this tab of the browser, for the next load of the page.
import { forget, remember, remembered } from "./remember";

const KEY = "aqlite-source";

/** A selected server as it is stored for a reload. Its token is never stored. */
export interface KeptServer {
  base: string;
  isOwn: boolean;
  /** Whether requests to the server had a token. The user must enter the token again. */
  hadToken: boolean;
}

/** Returns the server that was selected before a reload; `null` for this browser. */
export function keptServer(): KeptServer | null {
  try {
    const text = remembered("sessionStorage", KEY) ?? "null";
    const found = JSON.parse(text) as Partial<KeptServer> | null;
    if (typeof found?.base !== "string") return null;
    return { base: found.base, isOwn: found.isOwn === true, hadToken: found.hadToken === true };
  } catch {
    return null;
  }
}

/** Stores the selected server; `null` for this browser. */
export function keepServer(server: KeptServer | null): void {
  if (server === null) forget("sessionStorage", KEY);
  else remember("sessionStorage", KEY, JSON.stringify(server));
}

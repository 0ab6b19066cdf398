// What this browser remembers beside the data: small texts. Where it may not, it forgets, and nothing else breaks.

type Place = "localStorage" | "sessionStorage";

/** What stands under a key; `null` for nothing. */
export function remembered(where: Place, key: string): string | null {
  try {
    return window[where].getItem(key);
  } catch {
    return null;
  }
}

/** Keeps a text under a key. */
export function remember(where: Place, key: string, text: string): void {
  try {
    window[where].setItem(key, text);
  } catch {
    // Forbidden or full.
  }
}

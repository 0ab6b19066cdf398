// Small texts that this browser stores beside the data. Without permission nothing is stored, and
// nothing else fails.

type Place = "localStorage" | "sessionStorage";

/** Returns the text of a key, or `null`. */
export function remembered(where: Place, key: string): string | null {
  try {
    return window[where].getItem(key);
  } catch {
    return null;
  }
}

/** Stores a text under a key. */
export function remember(where: Place, key: string, text: string): void {
  try {
    window[where].setItem(key, text);
  } catch {
    // The storage is forbidden or full.
  }
}

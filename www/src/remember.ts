// Small texts in the storage of this browser, outside of the data sets. If the user forbids storage,
// nothing is stored, and the page works on.

type Place = "localStorage" | "sessionStorage";

/** Returns the text of a key, or `null`. */
export function remembered(where: Place, key: string): string | null {
  try {
    return window[where].getItem(key);
  } catch {
    return null;
  }
}

/** Stores a text under a key. Returns false if the storage is forbidden or full. */
export function remember(where: Place, key: string, text: string): boolean {
  try {
    window[where].setItem(key, text);
    return true;
  } catch {
    return false;
  }
}

/** Removes the text of a key. */
export function forget(where: Place, key: string): void {
  try {
    window[where].removeItem(key);
  } catch {
    // The storage is forbidden, so there is no text.
  }
}

/** Returns the keys that begin with a prefix. */
export function keysWith(where: Place, prefix: string): string[] {
  try {
    return Object.keys(window[where]).filter((key) => key.startsWith(prefix));
  } catch {
    return [];
  }
}

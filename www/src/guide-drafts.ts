// Drafts of guides, which the user opened or edited and did not store, and opened fixtures. They are
// in the local storage of the browser, so they survive a reload of the page.
import { forget, keysWith, remember, remembered } from "./remember";

const PREFIX = "aqlite-guide ";

/** A guide with the text that is not stored. */
export interface Draft {
  /** The id in the list of guides. The id in the text may differ while the user edits the text. */
  id: string;
  title: string;
  text: string;
  /** The time of its last change, in milliseconds since 1970. */
  at: number;
}

function isDraft(found: unknown): found is Draft {
  const { id, title, text, at } = (found ?? {}) as Partial<Draft>;
  return [id, title, text].every((part) => typeof part === "string") && typeof at === "number";
}

/** Reads a stored draft. Returns `undefined` without one. */
function read(stored: string | null): Draft | undefined {
  try {
    const found = JSON.parse(stored ?? "null") as unknown;
    return isDraft(found) ? found : undefined;
  } catch {
    // Another version of the page may have stored another form.
    return undefined;
  }
}

/** The drafts of one source: of this browser, or of a server. */
export class Drafts {
  #prefix = PREFIX;
  #all: Draft[] = [];

  /** Reads the drafts of a source: the address of a server, or `null` for this browser. */
  open(place: string | null): void {
    const prefix = `${PREFIX}${place ?? ""} `;
    if (prefix === this.#prefix) return;
    this.#prefix = prefix;
    this.#all = keysWith("localStorage", prefix)
      .flatMap((key) => read(remembered("localStorage", key)) ?? [])
      .sort((a, b) => b.at - a.at);
  }

  /**
   * Takes over the changes of other tabs, so that no tab overwrites a newer text by its own older
   * one. `changed` is called with the id of the draft, and the draft as it was in this tab.
   */
  follow(changed: (id: string, former: Draft | undefined) => void): void {
    addEventListener("storage", ({ key, newValue }) => {
      if (!key?.startsWith(this.#prefix)) return;
      const id = key.slice(this.#prefix.length);
      const [former, draft] = [this.find(id), read(newValue)];
      if (draft) this.#put(draft);
      else this.#all = this.#all.filter((known) => known !== former);
      changed(id, former);
    });
  }

  /** All drafts, the last opened one first. */
  get all(): readonly Draft[] {
    return this.#all;
  }

  find(id: string): Draft | undefined {
    return this.#all.find((draft) => draft.id === id);
  }

  /** Stores a draft. Returns false if the draft is in memory only, so that a reload loses it. */
  keep(id: string, title: string, text: string): boolean {
    const draft = { id, title, text, at: Date.now() };
    this.#put(draft);
    return remember("localStorage", this.#prefix + id, JSON.stringify(draft));
  }

  #put(draft: Draft): void {
    const at = this.#all.findIndex(({ id }) => id === draft.id);
    if (at < 0) this.#all.unshift(draft);
    else this.#all[at] = draft;
  }

  drop(id: string): void {
    this.#all = this.#all.filter((draft) => draft.id !== id);
    forget("localStorage", this.#prefix + id);
  }
}

const FIXTURES = "aqlite-fixtures ";

/** A fixture file. */
export interface FixtureFile {
  name: string;
  text: string;
  /** The id of the guide that the user chose because the guide of the fixture is not present. */
  instead?: string;
}

const isText = (value: unknown): value is string => typeof value === "string";

function isFixture(found: unknown): found is FixtureFile {
  const { name, text, instead = "" } = (found ?? {}) as Partial<FixtureFile>;
  return isText(name) && isText(text) && isText(instead);
}

/** Reads the fixtures of a source: the address of a server, or `null` for this browser. */
export function storedFixtures(place: string | null): FixtureFile[] {
  try {
    const stored = remembered("localStorage", FIXTURES + (place ?? ""));
    const found = JSON.parse(stored ?? "[]") as unknown;
    return Array.isArray(found) ? found.filter(isFixture) : [];
  } catch {
    // Another version of the page may have stored another form.
    return [];
  }
}

/** Stores the fixtures of a source. Returns false if they are in memory only. */
export function storeFixtures(place: string | null, files: FixtureFile[]): boolean {
  const key = FIXTURES + (place ?? "");
  if (files.length > 0) return remember("localStorage", key, JSON.stringify(files));
  forget("localStorage", key);
  return true;
}

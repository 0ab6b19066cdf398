// The queries of this browser: recent and saved ones.
import { focusIfLost, h } from "./dom";
import { remember, remembered } from "./remember";
import { texts } from "./texts";

const RECENT = "aqlite-recent";
const SAVED = "aqlite-saved";
/** The maximum number of recent queries. */
const MOST = 40;

interface Saved {
  name: string;
  q: string;
  /** The values of its parameters, if the user chose to keep them. */
  values?: Record<string, string>;
}

/**
 * Reads a list from the storage. Returns an empty list if an item has an unexpected form, because
 * another version of the page may have stored it.
 */
function read<T>(key: string, is: (item: unknown) => item is T): T[] {
  try {
    const found = JSON.parse(remembered("localStorage", key) ?? "[]") as unknown;
    return Array.isArray(found) ? found.filter(is) : [];
  } catch {
    return [];
  }
}

function write(key: string, list: unknown[]): boolean {
  return remember("localStorage", key, JSON.stringify(list));
}

const isText = (item: unknown): item is string => typeof item === "string";
const isSaved = (item: unknown): item is Saved =>
  typeof item === "object" &&
  item !== null &&
  isText((item as Saved).name) &&
  isText((item as Saved).q) &&
  Object.values((item as Saved).values ?? {}).every(isText);

/** Summarizes a query in one line: its columns without the common parts. */
function oneLine(q: string): string {
  return q.replaceAll(/--.*$/gm, "").replaceAll(/\s+/g, " ").trim().slice(0, 160);
}

/** The lists beside the examples. */
export class History {
  readonly element = h("div", { class: "history" });
  readonly #choose: (q: string, values: Record<string, string>) => void;
  #recent = read(RECENT, isText);
  #saved = read(SAVED, isSaved);
  /** Whether the lists are in the storage. If not, they are in memory only. */
  #isKept = true;
  /**
   * The last query that was removed or replaced, with its position in its list. The user can restore
   * it until a list changes again.
   */
  #before: {
    key: typeof SAVED | typeof RECENT;
    what: string;
    how: "forgotten" | "replaced";
    recent: string | null;
    saved: Saved | null;
    at: number;
  } | null = null;

  constructor(choose: (q: string, values: Record<string, string>) => void) {
    this.#choose = choose;
    this.#draw();
    // Another tab has changed a list.
    addEventListener("storage", ({ key }) => {
      if (key !== SAVED && key !== RECENT) return;
      this.#read();
      this.#draw();
    });
  }

  /** Reads the lists again before a change, because another tab may have changed them. */
  #read(): void {
    if (!this.#isKept) return;
    [this.#recent, this.#saved] = [read(RECENT, isText), read(SAVED, isSaved)];
  }

  /** Adds a query that was run. */
  ran(q: string): void {
    this.#before = null;
    this.#read();
    this.#recent = [q, ...this.#recent.filter((other) => other !== q)].slice(0, MOST);
    this.#write(RECENT);
    this.#draw();
  }

  /** Whether a query is saved under this name. */
  has(name: string): boolean {
    return this.#saved.some((other) => other.name === name);
  }

  /** Saves a query with values under a name. A query with this name is replaced; this can be undone. */
  save(name: string, q: string, values: Record<string, string>): void {
    this.#read();
    const kept = Object.keys(values).length > 0 ? { name, q, values } : { name, q };
    const former = this.#saved.find((other) => other.name === name);
    const replaced = former !== undefined && JSON.stringify(former) !== JSON.stringify(kept);
    this.#before = replaced
      ? { key: SAVED, what: name, how: "replaced", recent: null, saved: former, at: 0 }
      : null;
    this.#put(kept);
    this.#write(SAVED);
    this.#draw();
  }

  /** Adds a saved query in place of one with its name. */
  #put(kept: Saved): void {
    this.#saved = [...this.#saved.filter(({ name }) => name !== kept.name), kept].sort((a, b) =>
      a.name.localeCompare(b.name),
    );
  }

  #draw(): void {
    const saved = this.#saved.map(({ name, q, values = {} }) =>
      this.#item(h("strong", {}, name), { q, values }, texts.query.forget({ name }), () =>
        this.#forget(SAVED, name),
      ),
    );
    const recent = this.#recent.map((q) =>
      this.#item(h("code", {}, oneLine(q)), { q, values: {} }, texts.query.forgetThis, () =>
        this.#forget(RECENT, q),
      ),
    );
    this.element.replaceChildren(
      this.#list(
        "saved",
        texts.query.saved,
        [this.#restoring(SAVED), ...saved],
        texts.query.savedNone,
      ),
      this.#list(
        "recent",
        texts.query.recent,
        [this.#restoring(RECENT), ...recent],
        texts.query.recentNone,
      ),
    );
  }

  /** Returns the line that restores a removed query, or `null`. */
  #restoring(key: typeof SAVED | typeof RECENT): HTMLElement | null {
    const before = this.#before;
    if (before?.key !== key) return null;
    const restore = () => {
      this.#before = null;
      this.#read();
      const { recent, saved, at } = before;
      if (saved) this.#put(saved);
      if (recent !== null && !this.#recent.includes(recent)) this.#recent.splice(at, 0, recent);
      this.#write(key);
      this.#draw();
      const index = key === SAVED ? this.#saved.findIndex(({ name }) => name === before.what) : at;
      const list = this.element.querySelector(key === SAVED ? "#saved" : "#recent");
      focusIfLost(list?.querySelectorAll<HTMLElement>(".example")[index] ?? null);
    };
    return h(
      "li",
      { class: "forgotten" },
      h(
        "span",
        { class: "quiet", role: "status" },
        key === SAVED ? texts.query[before.how]({ name: before.what }) : texts.query.forgottenOne,
      ),
      h("button", { type: "button", onclick: restore }, texts.frame.undo),
    );
  }

  #list(id: string, title: string, lines: (HTMLElement | null)[], none: string): HTMLElement {
    const items = lines.filter((line) => line !== null);
    const number = items.filter((line) => !line.classList.contains("forgotten")).length;
    const open = this.element.querySelector<HTMLDetailsElement>(`#${id}`)?.open ?? false;
    const body = items.length > 0 ? h("ul", {}, ...items) : h("p", { class: "quiet" }, none);
    return h(
      "details",
      { id, open },
      h("summary", {}, title, " ", h("span", { class: "count" }, String(number))),
      body,
    );
  }

  #item(
    label: HTMLElement,
    { q, values }: { q: string; values: Record<string, string> },
    forget: string,
    forgotten: () => void,
  ): HTMLElement {
    return h(
      "li",
      { class: "kept" },
      h(
        "button",
        { type: "button", class: "example", title: q, onclick: () => this.#choose(q, values) },
        label,
      ),
      h("button", { type: "button", class: "icon", "aria-label": forget, onclick: forgotten }, "✕"),
    );
  }

  #forget(key: typeof SAVED | typeof RECENT, what: string): void {
    this.#read();
    const saved = key === SAVED ? (this.#saved.find(({ name }) => name === what) ?? null) : null;
    const at = Math.max(0, this.#recent.indexOf(what));
    this.#before = { key, what, how: "forgotten", recent: key === RECENT ? what : null, saved, at };
    if (key === SAVED) this.#saved = this.#saved.filter(({ name }) => name !== what);
    else this.#recent = this.#recent.filter((q) => q !== what);
    this.#write(key);
    this.#draw();
    focusIfLost(this.element.querySelector<HTMLElement>(".forgotten button"));
  }

  #write(key: typeof SAVED | typeof RECENT): void {
    this.#isKept = write(key, key === SAVED ? this.#saved : this.#recent);
  }
}

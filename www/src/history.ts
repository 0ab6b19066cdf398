// The queries of this browser: recent and saved ones.
import { h } from "./dom";
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

function write(key: string, list: unknown[]): void {
  remember("localStorage", key, JSON.stringify(list));
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
  /**
   * The lists before the last query was removed or replaced. The user can restore them until a list
   * changes again.
   */
  #before: {
    key: typeof SAVED | typeof RECENT;
    what: string;
    how: "forgotten" | "replaced";
    recent: string[];
    saved: Saved[];
  } | null = null;

  constructor(choose: (q: string, values: Record<string, string>) => void) {
    this.#choose = choose;
    this.#draw();
  }

  /** Adds a query that was run. */
  ran(q: string): void {
    this.#before = null;
    this.#recent = [q, ...this.#recent.filter((other) => other !== q)].slice(0, MOST);
    write(RECENT, this.#recent);
    this.#draw();
  }

  /** Whether a query is saved under this name. */
  has(name: string): boolean {
    return this.#saved.some((other) => other.name === name);
  }

  /** Saves a query with values under a name. A query with this name is replaced; this can be undone. */
  save(name: string, q: string, values: Record<string, string>): void {
    const kept = Object.keys(values).length > 0 ? { name, q, values } : { name, q };
    const former = this.#saved.find((other) => other.name === name);
    const replaced = former !== undefined && JSON.stringify(former) !== JSON.stringify(kept);
    this.#before = replaced
      ? { key: SAVED, what: name, how: "replaced", recent: this.#recent, saved: this.#saved }
      : null;
    this.#saved = [...this.#saved.filter((other) => other.name !== name), kept].sort((a, b) =>
      a.name.localeCompare(b.name),
    );
    write(SAVED, this.#saved);
    this.#draw();
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
      [this.#recent, this.#saved, this.#before] = [before.recent, before.saved, null];
      this.#write(key);
      this.#draw();
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
    this.#before = { key, what, how: "forgotten", recent: this.#recent, saved: this.#saved };
    if (key === SAVED) this.#saved = this.#saved.filter(({ name }) => name !== what);
    else this.#recent = this.#recent.filter((q) => q !== what);
    this.#write(key);
    this.#draw();
  }

  #write(key: typeof SAVED | typeof RECENT): void {
    write(key, key === SAVED ? this.#saved : this.#recent);
  }
}

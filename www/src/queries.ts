// The tabs of queries: each has a name, a text with its own undo steps, and values of parameters.
import type { EditorState } from "@codemirror/state";
import { byId, h, rove } from "./dom";
import type { Editor } from "./editor";
import { remember, remembered } from "./remember";
import { texts } from "./texts";

const KEY = "aqlite-queries";

/** A query of a tab. */
interface Query {
  name: string;
  text: string;
  /** The text with its undo steps; `null` before the query is shown. */
  state: EditorState | null;
  /** The values of its parameters. They may concern a person, so they are not stored. */
  values: Record<string, string>;
  hasRun: boolean;
}

/** The functions of the page that the tabs call. */
export interface QueriesHost {
  /** Returns the texts of the parameter fields. */
  values(): Record<string, string>;
  /** Called when another query is shown, with its values. `hasRun`: it had a result before. */
  shown(values: Record<string, string>, hasRun: boolean): void;
}

const query = (name: string, text = ""): Query => ({
  ...{ name, text, state: null, values: {}, hasRun: false },
});

const isStored = (item: unknown): item is { name: string; text: string } =>
  typeof item === "object" &&
  item !== null &&
  typeof (item as Query).name === "string" &&
  typeof (item as Query).text === "string";

/** Reads the stored tabs, without those of an unexpected form: another version may have stored them. */
function read(): { queries: Query[]; current: number } {
  try {
    const found = JSON.parse(remembered("sessionStorage", KEY) ?? "{}") as Record<string, unknown>;
    const listed = Array.isArray(found["queries"]) ? found["queries"].filter(isStored) : [];
    const queries = listed.map(({ name, text }) => query(name, text));
    const current = Number(found["current"]);
    if (queries[current]) return { queries, current };
  } catch {
    // The text is not JSON.
  }
  return { queries: [query(texts.query.numbered({ number: 1 }))], current: 0 };
}

/**
 * Scrolls a row of tabs until one of them is visible. `scrollIntoView` would also make the tab the
 * place from which the Tab key goes on, so a new page would not begin at its first link.
 */
function reveal(row: HTMLElement, tab: HTMLElement): void {
  const [all, one] = [row.getBoundingClientRect(), tab.getBoundingClientRect()];
  if (one.left < all.left) row.scrollLeft -= all.left - one.left;
  else if (one.right > all.right) row.scrollLeft += one.right - all.right;
}

/** The tabs. */
export class Queries {
  readonly #editor: Editor;
  readonly #host: QueriesHost;
  readonly #list = byId("queries");
  readonly #dialog = byId<HTMLDialogElement>("query-naming");
  readonly #name = byId<HTMLInputElement>("query-naming-name");
  #queries: Query[];
  #current: number;

  constructor(editor: Editor, host: QueriesHost) {
    this.#editor = editor;
    this.#host = host;
    ({ queries: this.#queries, current: this.#current } = read());
    // The query of a link opens in its own tab, so it replaces no query.
    if (this.#shown.text !== "" && this.#shown.text !== editor.text) this.#push(editor.text);
    this.#listen();
    this.#draw();
  }

  #listen(): void {
    rove(this.#list, (tab) => this.#open([...this.#list.children].indexOf(tab)));
    this.#list.addEventListener("dblclick", () => this.#rename());
    this.#list.addEventListener("keydown", (event) => {
      if (event.key === "F2") this.#rename();
      if (event.key === "Delete") this.#close(true);
    });
    byId("query-new").addEventListener("click", () => this.#add());
    byId("query-rename").addEventListener("click", () => this.#rename());
    byId("query-close").addEventListener("click", () => this.#close(false));
    byId("query-naming-cancel").addEventListener("click", () => this.#dialog.close());
    byId("query-naming-form").addEventListener("submit", () => this.#named());
  }

  /** Records that the query was run: when its tab is shown again, the query runs again. */
  ran(): void {
    this.#shown.hasRun = true;
  }

  /** Stores the names and texts for the next load of this tab of the browser. */
  keep(): void {
    this.#shown.text = this.#editor.text;
    const queries = this.#queries.map(({ name, text }) => ({ name, text }));
    remember("sessionStorage", KEY, JSON.stringify({ queries, current: this.#current }));
  }

  get #shown(): Query {
    const shown = this.#queries[this.#current];
    if (!shown) throw new Error("no query is shown");
    return shown;
  }

  #draw(): void {
    const tabs = this.#queries.map(({ name }, at) => {
      const isCurrent = at === this.#current;
      return h(
        "button",
        {
          ...{ type: "button", role: "tab", "aria-controls": "editor", title: name },
          ...{ "aria-selected": String(isCurrent), tabindex: isCurrent ? 0 : -1 },
        },
        name,
      );
    });
    this.#list.replaceChildren(...tabs);
    const shown = tabs[this.#current];
    if (shown) reveal(this.#list, shown);
    byId<HTMLButtonElement>("query-close").disabled = this.#queries.length === 1;
  }

  #focus(): void {
    (this.#list.children[this.#current] as HTMLElement | undefined)?.focus();
  }

  /** Copies text and values from the editor and the fields into the displayed query. */
  #leave(): void {
    const shown = this.#shown;
    shown.text = this.#editor.text;
    shown.state = this.#editor.view.state;
    shown.values = this.#host.values();
  }

  #enter(current: number): void {
    this.#current = current;
    const { state, text, values, hasRun } = this.#shown;
    this.#editor.exchange(state ?? text);
    this.#draw();
    this.keep();
    this.#host.shown(values, hasRun);
  }

  #open(at: number): void {
    if (at === this.#current || !this.#queries[at]) return;
    const hadFocus = this.#list.contains(document.activeElement);
    this.#leave();
    this.#enter(at);
    if (hadFocus) this.#focus();
  }

  /** Adds a query after the others, with an unused name. */
  #push(text: string): void {
    const names = new Set(this.#queries.map(({ name }) => name));
    let number = this.#queries.length + 1;
    while (names.has(texts.query.numbered({ number }))) number += 1;
    this.#queries.push(query(texts.query.numbered({ number }), text));
    this.#current = this.#queries.length - 1;
  }

  /** Shows the query of a link: in the tab that has it, else in a tab of its own. */
  follow(q: string, values: Record<string, string>): void {
    this.#leave();
    const known = this.#queries.findIndex(({ text }) => text === q);
    if (known >= 0) this.#current = known;
    else if (this.#shown.text !== "") this.#push(q);
    const { text, values: former } = this.#shown;
    if (text !== q) [this.#shown.text, this.#shown.state] = [q, null];
    this.#shown.values = { ...former, ...values };
    this.#enter(this.#current);
  }

  #add(): void {
    this.#leave();
    this.#push("");
    this.#enter(this.#current);
    this.#editor.view.focus();
  }

  #rename(): void {
    this.#name.value = this.#shown.name;
    this.#dialog.showModal();
    this.#name.select();
  }

  #named(): void {
    const name = this.#name.value.trim();
    if (name === "") return;
    this.#shown.name = name;
    this.#draw();
    this.keep();
    // The dialog returns the focus to the button of the tab, which was replaced by a new one.
    this.#dialog.addEventListener("close", () => this.#focus(), { once: true });
  }

  /** Closes the displayed query. Undo restores it with its undo steps. */
  #close(isFromList: boolean): void {
    if (this.#queries.length === 1) return;
    this.#leave();
    const [closed] = this.#queries.splice(this.#current, 1);
    const at = this.#current;
    this.#enter(Math.min(at, this.#queries.length - 1));
    if (closed) this.#offer(closed, at);
    if (isFromList) this.#focus();
    else byId("query-closed").querySelector("button")?.focus();
  }

  #offer(closed: Query, at: number): void {
    const status = byId("query-closed");
    const restore = () => {
      status.replaceChildren();
      this.#leave();
      this.#queries.splice(Math.min(at, this.#queries.length), 0, closed);
      this.#enter(Math.min(at, this.#queries.length - 1));
      this.#focus();
    };
    status.replaceChildren(
      h("span", {}, texts.query.closed(closed)),
      h("button", { type: "button", id: "query-restore", onclick: restore }, texts.frame.undo),
    );
  }
}

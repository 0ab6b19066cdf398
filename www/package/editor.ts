// `<aql-editor>`: the AQL editor of the page as a Web Component, with problems, completions and
// descriptions by this package.
import { dark, light } from "aqlite-colors";
import { forceLinting } from "@codemirror/lint";
import { Compartment, EditorState, type TransactionSpec } from "@codemirror/state";
import { EditorView, placeholder } from "@codemirror/view";
import { aqlExtensions } from "../src/aql-extensions";
import { editor as texts } from "../src/texts/en/editor";
import type { Diagnostic as Problem } from "../src/protocol";
import { browser } from "./browser-host";
import { complete, diagnose, format, hover } from "./language";
import { start, startIn } from "./start";
import type { Completions, Diagnostic, Hover } from "./types";

/**
 * The services that an editor needs. A `Repository` provides them, with the names of its templates.
 */
export interface EditorServices {
  diagnose(q: string): Diagnostic[] | Promise<Diagnostic[]>;
  complete(q: string, offset?: number): Completions | Promise<Completions>;
  hover(q: string, offset: number): Hover | null | Promise<Hover | null>;
}

/** The services without data. */
const withoutData: EditorServices = { diagnose, complete, hover };

const STYLE = `:host { ${light} display: block; background: var(--surface); color: var(--ink);
  border: 1px solid var(--line); border-radius: 8px; min-height: 6em; overflow: hidden; }
@media (prefers-color-scheme: dark) { :host { ${dark} } }
:host([hidden]) { display: none; }
:host(:focus-within) { border-color: var(--accent); }
div.holder { height: 100%; }`;

/** The events of the element with a detail. */
export interface AqlEditorEventMap {
  /** The query was checked: its problems. */
  diagnostics: CustomEvent<readonly Diagnostic[]>;
  /** The user wants to run the query: its text. */
  run: CustomEvent<string>;
}

type Events = HTMLElementEventMap & AqlEditorEventMap;

/** An element whose listeners have the types of its events. */
export interface ListenedElement extends HTMLElement {
  addEventListener<K extends keyof Events>(
    type: K,
    listener: (this: this, event: Events[K]) => unknown,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject,
    options?: boolean | AddEventListenerOptions,
  ): void;
  removeEventListener<K extends keyof Events>(
    type: K,
    listener: (this: this, event: Events[K]) => unknown,
    options?: boolean | EventListenerOptions,
  ): void;
  removeEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject,
    options?: boolean | EventListenerOptions,
  ): void;
}

/** A host without DOM, such as a server that renders pages, can import the class but not use it. */
const Base = (typeof HTMLElement === "undefined" ? class {} : HTMLElement) as unknown as {
  new (): ListenedElement;
};

/**
 * The element `<aql-editor>`.
 *
 * Attributes: `value` (the initial query), `placeholder`, `label` (the name for assistive
 * technology), `readonly`, and `name` (of a field of a form).
 *
 * Events: `input` after each change, `change` when the editor loses the focus after a change,
 * `diagnostics` when the query was checked, and `run` for Ctrl-Enter or Command-Enter.
 */
export class AqlEditor extends Base {
  static readonly formAssociated = true;
  static readonly observedAttributes = ["placeholder", "label", "readonly"];

  readonly #internals: ElementInternals;
  readonly #options = new Compartment();
  readonly #holder: HTMLElement;
  /**
   * The view. An element outside of the document has none, because listeners on the window would
   * keep it in memory.
   */
  #view: EditorView | undefined;
  /** The state of the element without a view. */
  #kept: EditorState;
  #services: EditorServices = withoutData;
  #diagnostics: readonly Diagnostic[] = [];
  /** The query when the editor got the focus. */
  #before = "";
  #wasConnected = false;

  constructor() {
    super();
    this.#internals = this.attachInternals();
    const root = this.attachShadow({ mode: "open", delegatesFocus: true });
    const style = new CSSStyleSheet();
    style.replaceSync(STYLE);
    const holder = (this.#holder = document.createElement("div"));
    holder.className = "holder";
    root.append(holder);
    this.#kept = EditorState.create({ extensions: [this.#extensions(), this.#options.of([])] });
    // CodeMirror adds its own style sheets before this one.
    root.adoptedStyleSheets = [style];
    holder.addEventListener("focusin", () => (this.#before = this.value));
    holder.addEventListener("focusout", () => this.#changed());
  }

  #viewOf(root: ShadowRoot): EditorView {
    return new EditorView({ parent: this.#holder, root, state: this.#kept });
  }

  get #state(): EditorState {
    return this.#view?.state ?? this.#kept;
  }

  #dispatch(change: TransactionSpec): void {
    if (this.#view) this.#view.dispatch(change);
    else this.#kept = this.#kept.update(change).state;
  }

  /** The query. Undo restores a replaced one. */
  get value(): string {
    return this.#state.doc.toString();
  }

  set value(q: string) {
    // As in a field of a form, `null` is the empty text, and any other value is its text.
    const insert = q === null ? "" : String(q);
    if (insert === this.value) return;
    const { length } = this.#state.doc;
    this.#dispatch({ changes: { from: 0, to: length, insert }, selection: { anchor: 0 } });
    // A view calls this itself.
    if (!this.#view) this.#entered(insert);
  }

  /** Whether the user cannot change the query. */
  get readOnly(): boolean {
    return this.hasAttribute("readonly");
  }

  set readOnly(is: boolean) {
    this.toggleAttribute("readonly", is);
  }

  /** The source of problems, completions and descriptions. Without data at first. */
  get services(): EditorServices {
    return this.#services;
  }

  set services(services: EditorServices | null) {
    this.#services = services ?? withoutData;
    if (this.#view) forceLinting(this.#view);
  }

  /** The problems of the query when it was last checked. */
  get diagnostics(): readonly Diagnostic[] {
    return this.#diagnostics;
  }

  /** Formats the query. Returns false, and changes nothing, if the text is not a query. */
  format(): boolean {
    try {
      this.value = format(this.value);
      return true;
    } catch {
      return false;
    }
  }

  /**
   * Selects a range of the query, in UTF-16 units, and scrolls there. An offset outside of the
   * query is its nearest end.
   */
  select(from: number, to = from): void {
    const end = this.#state.doc.length;
    const within = (offset: number) => Math.min(Math.max(Math.trunc(offset) || 0, 0), end);
    this.#dispatch({
      selection: { anchor: within(from), head: within(to) },
      scrollIntoView: true,
    });
    this.#view?.focus();
  }

  /** Moves the focus into the editor. */
  override focus(): void {
    this.#view?.focus();
  }

  /** @internal */
  connectedCallback(): void {
    if (this.shadowRoot) this.#view ??= this.#viewOf(this.shadowRoot);
    if (!this.#wasConnected && this.value === "") this.value = this.getAttribute("value") ?? "";
    this.#wasConnected = true;
    this.#configure();
  }

  /** @internal */
  disconnectedCallback(): void {
    this.#kept = this.#state;
    this.#view?.destroy();
    this.#view = undefined;
  }

  /** The form was reset: the initial query is there again. @internal */
  formResetCallback(): void {
    this.value = this.getAttribute("value") ?? "";
  }

  /** @internal */
  attributeChangedCallback(): void {
    if (this.#wasConnected) this.#configure();
  }

  #configure(): void {
    const extensions = [
      placeholder(this.getAttribute("placeholder") ?? "SELECT … FROM EHR e CONTAINS COMPOSITION c"),
      EditorState.readOnly.of(this.readOnly),
      EditorView.contentAttributes.of({
        "aria-label": this.getAttribute("label") ?? "AQL query",
        spellcheck: "false",
        autocapitalize: "off",
      }),
    ];
    this.#dispatch({ effects: this.#options.reconfigure(extensions) });
  }

  #extensions() {
    return aqlExtensions({
      texts,
      run: () => this.#send("run", this.value),
      format: () => this.format(),
      diagnose: (q) => this.#problems(q),
      complete: async (q, offset) => {
        await start();
        return this.#services.complete(q, offset);
      },
      hover: async (q, offset) => {
        await start();
        return this.#services.hover(q, offset);
      },
      changed: (q) => this.#entered(q),
      showDiagnostics: (problems) => {
        this.#diagnostics = problems as Diagnostic[];
        this.#send("diagnostics", this.#diagnostics);
      },
    });
  }

  /** Returns the problems with their places. A problem without a place is about the whole text. */
  async #problems(q: string): Promise<Problem[]> {
    await start();
    const found = await this.#services.diagnose(q);
    return found.map(({ from = 0, to = q.length, help = null, ...rest }) => ({
      ...rest,
      from,
      to,
      help,
    }));
  }

  #entered(q: string): void {
    this.#internals.setFormValue(q);
    this.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  }

  #changed(): void {
    if (this.value !== this.#before) this.dispatchEvent(new Event("change", { bubbles: true }));
    this.#before = this.value;
  }

  #send(type: "run" | "diagnostics", detail: unknown): void {
    this.dispatchEvent(new CustomEvent(type, { detail, bubbles: true, composed: true }));
  }
}

declare global {
  interface HTMLElementTagNameMap {
    "aql-editor": AqlEditor;
  }
}

if (typeof customElements !== "undefined") {
  startIn(browser);
  if (!customElements.get("aql-editor")) customElements.define("aql-editor", AqlEditor);
}

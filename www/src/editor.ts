// The query editor: CodeMirror in a shadow root. Its styles are constructed sheets, so the policy
// needs no `unsafe-inline`.
import { isolateHistory, redo, undo } from "@codemirror/commands";
import { forceLinting } from "@codemirror/lint";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, placeholder } from "@codemirror/view";
import { applyFix, aqlExtensions, type AqlHost } from "./aql-extensions";
import { h } from "./dom";
import type { Diagnostic, Place } from "./protocol";
import { texts } from "./texts";

export { drawn, fixName, theme } from "./aql-extensions";

/** The functions of the page that the editor calls. */
export type EditorHost = AqlHost;

/** The editor and its connection to the page. */
export class Editor {
  readonly view: EditorView;
  readonly #extensions: Extension;

  constructor(parent: HTMLElement, text: string, host: EditorHost) {
    const root = parent.attachShadow({ mode: "open" });
    const holder = h("div", { part: "holder" });
    holder.style.height = "100%";
    root.append(holder);
    this.#extensions = [
      aqlExtensions(host),
      placeholder("SELECT … FROM EHR e CONTAINS COMPOSITION c"),
      EditorView.contentAttributes.of({
        "aria-label": texts.query.text,
        spellcheck: "false",
        autocapitalize: "off",
      }),
    ];
    this.view = new EditorView({ parent: holder, root, state: this.#state(text) });
  }

  #state(doc: string): EditorState {
    return EditorState.create({ doc, extensions: this.#extensions });
  }

  /** Shows another query with its own undo steps. Returns the former one. */
  exchange(next: EditorState | string): EditorState {
    const former = this.view.state;
    this.view.setState(typeof next === "string" ? this.#state(next) : next);
    return former;
  }

  /** Returns the query. */
  get text(): string {
    return this.view.state.doc.toString();
  }

  /** Replaces the query. Undo restores the old one. */
  set text(text: string) {
    this.view.dispatch({
      changes: { from: 0, to: this.view.state.doc.length, insert: text },
      selection: { anchor: 0 },
    });
  }

  /**
   * Changes the query to another text as one step of undo. Only the differing part is replaced, so
   * that the cursor stays in its place.
   */
  rewrite(text: string): void {
    const old = this.text;
    const most = Math.min(old.length, text.length);
    let from = 0;
    while (from < most && old[from] === text[from]) from += 1;
    let same = 0;
    while (same < most - from && old.at(-1 - same) === text.at(-1 - same)) same += 1;
    this.view.dispatch({
      changes: { from, to: old.length - same, insert: text.slice(from, text.length - same) },
      annotations: isolateHistory.of("full"),
      scrollIntoView: true,
    });
  }

  /** Inserts a text at the cursor, in place of the selection. */
  insert(text: string): void {
    this.view.dispatch(this.view.state.replaceSelection(text), { scrollIntoView: true });
    this.view.focus();
  }

  /** Undoes the last change of the query, or makes it again. */
  step(direction: "undo" | "redo"): void {
    (direction === "undo" ? undo : redo)(this.view);
  }

  /** Checks the query at once, without the pause after typing. */
  check(): void {
    forceLinting(this.view);
  }

  /** Applies the change of a problem that was found in `q`, unless the query has changed since. */
  fix(problem: Diagnostic, q: string): void {
    applyFix(this.view, problem, q);
  }

  /** Selects a place in the query. */
  show({ from, to }: Place): void {
    const end = this.view.state.doc.length;
    this.view.dispatch({
      selection: { anchor: Math.min(from, end), head: Math.min(to, end) },
      scrollIntoView: true,
    });
    this.view.focus();
  }
}

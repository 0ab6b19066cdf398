// The query editor: CodeMirror in a shadow root. Its styles are constructed sheets, so the policy
// needs no `unsafe-inline`.
import {
  acceptCompletion,
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  type CompletionContext,
  type CompletionResult,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, indentOnInput } from "@codemirror/language";
import { forceLinting, linter, lintKeymap, type Diagnostic as Mark } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, Prec } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  hoverTooltip,
  keymap,
  lineNumbers,
  placeholder,
  type Tooltip,
} from "@codemirror/view";
import { aql } from "./aql-language";
import { h } from "./dom";
import type { Completions, Diagnostic, Hover, Place } from "./protocol";

/** The functions of the page that the editor calls. */
export interface EditorHost {
  run(): void;
  format(): void;
  diagnose(q: string): Promise<Diagnostic[]>;
  complete(q: string, offset: number): Promise<Completions>;
  hover(q: string, offset: number): Promise<Hover | null>;
  changed(q: string): void;
  showDiagnostics(problems: Diagnostic[]): void;
}

export const theme = EditorView.theme({
  "&": {
    color: "var(--ink)",
    backgroundColor: "transparent",
    fontSize: "var(--code-size)",
    height: "100%",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.65", overflow: "auto" },
  ".cm-content": { padding: "12px 0", caretColor: "var(--accent)" },
  ".cm-line": { padding: "0 14px 0 8px" },
  "@media (max-width: 700px)": {
    ".cm-lineWrapping": { wordBreak: "break-all" },
    ".cm-gutters": { display: "none" },
    ".cm-line": { paddingLeft: "12px" },
  },
  ".cm-gutters": {
    backgroundColor: "transparent",
    color: "var(--ink-faint)",
    border: "none",
    paddingLeft: "6px",
  },
  ".cm-activeLine": { backgroundColor: "var(--line-active)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--ink-soft)" },
  ".cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--selection) !important",
  },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": {
    backgroundColor: "var(--accent-soft)",
    outline: "1px solid var(--accent-line)",
  },
  ".cm-placeholder": { color: "var(--ink-faint)" },
  ".cm-tooltip": {
    backgroundColor: "var(--surface)",
    color: "var(--ink)",
    border: "1px solid var(--line)",
    borderRadius: "8px",
    boxShadow: "var(--shadow)",
    overflow: "hidden",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": {
    fontFamily: "var(--mono)",
    fontSize: "13px",
    maxHeight: "16em",
    maxWidth: "min(44rem, 92vw)",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "4px 10px", color: "var(--ink)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--accent)",
    color: "var(--on-accent)",
  },
  ".cm-meaning": { padding: "8px 12px", font: "14px/1.45 var(--sans)", maxWidth: "34rem" },
  ".cm-completionDetail": {
    color: "inherit",
    opacity: "0.75",
    fontStyle: "normal",
    marginLeft: "1.2em",
  },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
  ".cm-diagnostic": {
    padding: "8px 12px",
    borderLeft: "none",
    font: "14px/1.45 var(--sans)",
    maxWidth: "34rem",
  },
  ".cm-diagnosticAction": {
    display: "block",
    margin: "6px 0 0",
    padding: "5px 10px",
    borderRadius: "6px",
    backgroundColor: "var(--accent)",
    color: "var(--on-accent)",
    font: "13px var(--mono)",
    textAlign: "left",
    maxWidth: "100%",
    overflowWrap: "anywhere",
  },
  ".cm-diagnostic-error": { boxShadow: "inset 3px 0 0 var(--bad)" },
  ".cm-diagnostic-warning": { boxShadow: "inset 3px 0 0 var(--warn)" },
  ".cm-lintRange-error": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--bad) 1.5px",
    textUnderlineOffset: "4px",
    textDecorationSkipInk: "none",
  },
  ".cm-lintRange-warning": {
    backgroundImage: "none",
    textDecoration: "underline wavy var(--warn) 1.5px",
    textUnderlineOffset: "4px",
    textDecorationSkipInk: "none",
  },
  ".cm-panels": {
    backgroundColor: "var(--surface-sunk)",
    color: "var(--ink)",
    borderColor: "var(--line)",
  },
  ".cm-panels button, .cm-panels input": { font: "14px var(--sans)" },
});

/** Draws one problem for the tooltip: message, remedy, code. */
export function drawn(problem: Diagnostic): Node {
  const box = h("div", {}, problem.message);
  if (problem.help) box.append(h("div", {}, "Help: ", problem.help));
  box.append(" ", h("small", {}, problem.code));
  return box;
}

/** Returns the label of the button that applies the change of a problem. */
export function fixName({ fix }: Diagnostic): string {
  return fix && fix.from === fix.to ? `Insert ${fix.text}` : `Change to ${fix?.text ?? ""}`;
}

/** The editor and its connection to the page. */
export class Editor {
  readonly view: EditorView;
  #problems: Diagnostic[] = [];

  constructor(parent: HTMLElement, text: string, host: EditorHost) {
    const root = parent.attachShadow({ mode: "open" });
    const holder = h("div", { part: "holder" });
    holder.style.height = "100%";
    root.append(holder);
    const lint = async (view: EditorView): Promise<Mark[]> => {
      const q = view.state.doc.toString();
      this.#problems = q.trim() === "" ? [] : await host.diagnose(q).catch(() => []);
      // A newer text is checked again after the pause in typing.
      if (view.state.doc.toString() === q) host.showDiagnostics(this.#problems);
      const length = view.state.doc.length;
      return this.#problems.map((problem) => ({
        from: Math.min(problem.from, length),
        to: Math.min(Math.max(problem.to, problem.from), length),
        severity: problem.severity,
        message: problem.message,
        renderMessage: () => drawn(problem),
        ...(problem.fix
          ? { actions: [{ name: fixName(problem), apply: () => this.fix(problem, q) }] }
          : {}),
      }));
    };
    const complete = async (context: CompletionContext): Promise<CompletionResult | null> => {
      // A single letter is more often a variable than the start of a word.
      if (!context.explicit && !context.matchBefore(/\w\w$|[/[.$]\w?$/)) return null;
      const found = await host
        .complete(context.state.doc.toString(), context.pos)
        .catch(() => null);
      if (!found || context.aborted) return null;
      const { from, to } = found;
      // Without a request, only completions of the typed letters are offered: Enter accepts a
      // proposal and must not surprise.
      const written = context.state.sliceDoc(from, context.pos).toLowerCase();
      const options = context.explicit
        ? found.options
        : found.options.filter(({ label }) =>
            label
              .toLowerCase()
              .split(/[\s(]+/)
              .some((word) => word.startsWith(written)),
          );
      if (options.length === 0) return null;
      // The engine selects and orders the proposals, so they are requested again at each letter.
      return {
        from,
        to,
        filter: false,
        options: options.map(({ label, kind, detail, insert }) => ({
          label,
          type: kind,
          detail,
          apply: insert,
        })),
      };
    };
    const hover = hoverTooltip(
      async (view, position): Promise<Tooltip | null> => {
        const found = await host.hover(view.state.doc.toString(), position).catch(() => null);
        if (!found) return null;
        const { from, to, title, text } = found;
        return {
          pos: from,
          end: to,
          above: true,
          create: () => ({
            dom: h(
              "div",
              { class: "cm-meaning" },
              h("strong", {}, title),
              text ? h("div", {}, text) : null,
            ),
          }),
        };
      },
      { hoverTime: 350 },
    );
    const done = (act: () => void) => () => {
      act();
      return true;
    };
    const ours = Prec.highest(
      keymap.of([
        { key: "Mod-Enter", run: done(() => host.run()) },
        { key: "Shift-Alt-f", run: done(() => host.format()) },
        { key: "Tab", run: acceptCompletion },
      ]),
    );
    this.view = new EditorView({
      parent: holder,
      root,
      state: EditorState.create({
        doc: text,
        extensions: [
          ours,
          lineNumbers(),
          history(),
          drawSelection(),
          indentOnInput(),
          bracketMatching(),
          closeBrackets(),
          highlightActiveLine(),
          highlightSelectionMatches(),
          EditorView.lineWrapping,
          aql(),
          linter(lint, { delay: 250 }),
          autocompletion({ override: [complete], icons: false }),
          hover,
          placeholder("SELECT … FROM EHR e CONTAINS COMPOSITION c"),
          EditorView.contentAttributes.of({
            "aria-label": "AQL query",
            spellcheck: "false",
            autocapitalize: "off",
          }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) host.changed(update.state.doc.toString());
          }),
          keymap.of([
            ...closeBracketsKeymap,
            ...defaultKeymap,
            ...searchKeymap,
            ...historyKeymap,
            ...completionKeymap,
            ...lintKeymap,
          ]),
          theme,
        ],
      }),
    });
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

  /** Checks the query at once, without the pause after typing. */
  check(): void {
    forceLinting(this.view);
  }

  /** Applies the change of a problem that was found in `q`, unless the query has changed since. */
  fix({ fix }: Diagnostic, q: string): void {
    if (!fix || this.text !== q) return;
    const { from, to, text } = fix;
    this.view.dispatch({
      changes: { from, to, insert: text },
      selection: { anchor: from + text.length },
      userEvent: "input.fix",
    });
    this.check();
    this.view.focus();
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

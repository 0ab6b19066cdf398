// The CodeMirror extensions of an AQL editor, for the page and for the Web Component of the npm
// package: language, problems, completions, descriptions, keys and colors. The colors are CSS
// variables of the surrounding element.
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
import { EditorState, Prec, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  hoverTooltip,
  keymap,
  lineNumbers,
  type Tooltip,
} from "@codemirror/view";
import { aql } from "./aql-language";
import { h } from "./dom";
import type { Completions, Diagnostic, Hover } from "./protocol";
import type { EditorTexts } from "./texts/en/editor";
import { typeOverSelection } from "./type-over";

/** The functions of the host that the extensions call. */
export interface AqlHost {
  /** The texts of the editor in the language of the host. */
  texts: EditorTexts;
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
  ".cm-tooltip-autocomplete li[aria-selected] .cm-completionDetail": { opacity: "1" },
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

/** Draws one problem for the tooltip: message, remedy, code. The core writes English. */
export function drawn(problem: Diagnostic, texts: EditorTexts): Node {
  const box = h("div", { lang: "en" }, problem.message);
  if (problem.help) {
    const words = h("span", { lang: texts.language }, texts.help);
    box.append(h("div", {}, words, " ", h("span", { lang: "en" }, problem.help)));
  }
  box.append(" ", h("small", {}, problem.code));
  return box;
}

/** Returns the label of the button that applies the change of a problem. */
export function fixName({ fix }: Diagnostic, texts: EditorTexts): string {
  const text = fix?.text ?? "";
  return fix && fix.from === fix.to ? texts.insert({ text }) : texts.change({ text });
}

/** Applies the change of a problem that was found in `q`, unless the query has changed since. */
export function applyFix(view: EditorView, { fix }: Diagnostic, q: string): void {
  if (!fix || view.state.doc.toString() !== q) return;
  const { from, to, text } = fix;
  view.dispatch({
    changes: { from, to, insert: text },
    selection: { anchor: from + text.length },
    userEvent: "input.fix",
  });
  forceLinting(view);
  view.focus();
}

/** Marks the problems of the query after each pause in typing. */
function problems(host: AqlHost): Extension {
  const lint = async (view: EditorView): Promise<Mark[]> => {
    const q = view.state.doc.toString();
    const found = q.trim() === "" ? [] : await host.diagnose(q).catch(() => []);
    // The text has changed during the check. The newer text is checked after the pause in typing.
    if (view.state.doc.toString() === q) host.showDiagnostics(found);
    const length = view.state.doc.length;
    return found.map((problem) => ({
      from: Math.min(problem.from, length),
      to: Math.min(Math.max(problem.to, problem.from), length),
      severity: problem.severity,
      message: problem.message,
      renderMessage: () => drawn(problem, host.texts),
      ...(problem.fix
        ? {
            actions: [
              { name: fixName(problem, host.texts), apply: () => applyFix(view, problem, q) },
            ],
          }
        : {}),
    }));
  };
  return linter(lint, { delay: 250 });
}

/** Proposes completions. */
function completions(host: AqlHost): Extension {
  const propose = async (context: CompletionContext): Promise<CompletionResult | null> => {
    // A single letter is more often a variable than the start of a word.
    if (!context.explicit && !context.matchBefore(/\w\w$|[/[.$'"]\w?$/)) return null;
    const found = await host.complete(context.state.doc.toString(), context.pos).catch(() => null);
    if (!found || context.aborted) return null;
    const { from, to } = found;
    // An opening quote starts a value, and the engine then replaces from the quote on. A closing
    // quote needs no completion.
    const quote = context.matchBefore(/['"]$/);
    if (!context.explicit && quote && quote.from !== from) return null;
    // Unless the user requested completions, only those of the typed letters are offered: Enter
    // accepts the first one, which must not be an unrelated word.
    const typed = context.state.sliceDoc(from, context.pos).toLowerCase();
    // The label of a value has no quotes, its completion has them.
    const written = typed.replace(/^['"]/, "");
    const options = context.explicit
      ? found.options
      : found.options.filter(({ label }) =>
          label
            .toLowerCase()
            .split(/[\s(.]+/)
            .some((word) => word.startsWith(written)),
        );
    if (options.length === 0) return null;
    // A list under a word that is complete would cover what stands below, and take the next Enter.
    const complete = options.some(({ insert }) => insert.toLowerCase() === typed);
    if (complete && !context.explicit) return null;
    // The engine filters and orders the proposals. `filter: false` makes CodeMirror request them
    // again at each letter.
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
  return autocompletion({ override: [propose], icons: false });
}

/** Describes the word under the pointer. */
function descriptions(host: AqlHost): Extension {
  return hoverTooltip(
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
            { class: "cm-meaning", lang: "en" },
            h("strong", {}, title),
            text ? h("div", {}, text) : null,
          ),
        }),
      };
    },
    { hoverTime: 350 },
  );
}

/** The keys of the host, which precede those of CodeMirror. */
function keys(host: AqlHost): Extension {
  const done = (act: () => void) => () => {
    act();
    return true;
  };
  return Prec.highest(
    keymap.of([
      { key: "Mod-Enter", run: done(() => host.run()) },
      { key: "Shift-Alt-f", run: done(() => host.format()) },
      { key: "Tab", run: acceptCompletion },
    ]),
  );
}

/** Returns the extensions of an AQL editor. */
export function aqlExtensions(host: AqlHost): Extension {
  return [
    keys(host),
    lineNumbers(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    typeOverSelection,
    highlightActiveLine(),
    highlightSelectionMatches(),
    EditorView.lineWrapping,
    aql(),
    problems(host),
    completions(host),
    descriptions(host),
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
    EditorState.phrases.of(host.texts.phrases),
  ];
}

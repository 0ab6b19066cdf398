// The editor of a guide's text: CodeMirror in a shadow root, like the query editor. The marks are
// those of the core, which checks the text after each pause in typing.
import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  LanguageSupport,
  StreamLanguage,
  syntaxHighlighting,
  type StringStream,
} from "@codemirror/language";
import { lintKeymap, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState, Prec, type Extension } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  keymap,
  lineNumbers,
  placeholder,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { h } from "./dom";
import { drawn, theme } from "./editor";
import type { Diagnostic, Place } from "./protocol";
import { texts } from "./texts";
import { typeOverSelection } from "./type-over";

interface TokenState {
  /** Whether the line begins inside of a string, which ODIN allows. */
  isInString: boolean;
}

/** Reads the rest of a string. Returns whether it ends on this line. */
function stringEnds(stream: StringStream): boolean {
  return !!stream.match(/^(?:[^"\\]|\\.)*"/) || (stream.skipToEnd(), false);
}

function token(stream: StringStream, state: TokenState): string | null {
  if (state.isInString) {
    state.isInString = !stringEnds(stream);
    return "string";
  }
  if (stream.eatSpace()) return null;
  if (stream.match(/^--.*/)) return "lineComment";
  if (stream.match(/^"gt[\d.]+"/)) return "atom";
  if (stream.match(/^"(?:[^"\\]|\\.)*"(?=\s*:)/)) return "propertyName";
  if (stream.eat('"')) {
    state.isInString = !stringEnds(stream);
    return "string";
  }
  if (stream.match(/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/)) return "number";
  if (stream.match(/^\([A-Z_]+\)/)) return "typeName";
  if (stream.match(/^[A-Za-z_]\w*/)) return stream.match(/^\s*=/, false) ? "propertyName" : "bool";
  stream.next();
  return "punctuation";
}

const language = StreamLanguage.define<TokenState>({
  name: "gdl",
  startState: () => ({ isInString: false }),
  copyState: (state) => ({ ...state }),
  token,
  languageData: {
    commentTokens: { line: "--" },
    closeBrackets: { brackets: ["[", "{", '"'] },
  },
});

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--code-keyword)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: tags.bool, color: "var(--code-number)" },
  { tag: tags.atom, color: "var(--code-node)" },
  { tag: tags.typeName, color: "var(--code-type)" },
  { tag: tags.lineComment, color: "var(--ink-faint)", fontStyle: "italic" },
  { tag: tags.punctuation, color: "var(--ink-soft)" },
]);

/** The functions of the view that the editor calls. */
export interface GuideEditorHost {
  changed(text: string): void;
  /** Runs the guide on its form. */
  run(): void;
}

/** The editor. */
export class GuideEditor {
  readonly element = h("div", { id: "guide-editor", class: "editor guide-text" });
  readonly #view: EditorView;
  readonly #extensions: Extension;
  /** Whether the view is replacing the text. The view needs no report of this change. */
  #isLoading = false;

  constructor(host: GuideEditorHost) {
    const root = this.element.attachShadow({ mode: "open" });
    const holder = h("div", { part: "holder" });
    holder.style.height = "100%";
    root.append(holder);
    const run = () => {
      host.run();
      return true;
    };
    this.#extensions = [
      Prec.highest(keymap.of([{ key: "Mod-Enter", run }])),
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
      new LanguageSupport(language, [syntaxHighlighting(colours)]),
      EditorState.phrases.of(texts.editor.phrases),
      placeholder(texts.guideEdit.placeholder),
      EditorView.contentAttributes.of({
        "aria-label": texts.guideEdit.text,
        tabindex: "0",
        spellcheck: "false",
        autocapitalize: "off",
      }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged && !this.#isLoading) host.changed(update.state.doc.toString());
      }),
      keymap.of([
        ...closeBracketsKeymap,
        ...defaultKeymap,
        ...searchKeymap,
        ...historyKeymap,
        ...lintKeymap,
      ]),
      theme,
    ];
    this.#view = new EditorView({ parent: holder, root, state: this.#state("") });
  }

  #state(text: string): EditorState {
    return EditorState.create({ doc: text, extensions: this.#extensions });
  }

  get text(): string {
    return this.#view.state.doc.toString();
  }

  /** Shows another text, with a history of its own. */
  load(text: string): void {
    if (text === this.text) return;
    this.#isLoading = true;
    this.#view.setState(this.#state(text));
    this.#isLoading = false;
  }

  /** Replaces a range of the text as a step that can be undone. */
  replace({ from, to }: Place, insert: string): void {
    this.#view.dispatch({ changes: { from, to, insert } });
  }

  /** Marks the problems of the text. */
  mark(problems: Diagnostic[]): void {
    const { doc } = this.#view.state;
    const marks = problems.map((problem) => {
      const from = Math.min(problem.from, doc.length);
      return {
        from,
        // A problem may be about a whole rule. Only its first line is marked.
        to: Math.min(Math.max(problem.to, from), doc.lineAt(from).to),
        severity: problem.severity,
        message: problem.message,
        renderMessage: () => drawn(problem, texts.editor),
      };
    });
    marks.sort((a, b) => a.from - b.from);
    this.#view.dispatch(setDiagnostics(this.#view.state, marks));
  }

  /** Selects a place of the text. */
  show({ from, to }: Place): void {
    const end = this.#view.state.doc.length;
    // The cursor is placed at the start of the range, because a rule may be longer than the screen.
    const selection = { anchor: Math.min(to, end), head: Math.min(from, end) };
    this.#view.dispatch({
      selection,
      effects: EditorView.scrollIntoView(selection.head, { y: "center" }),
    });
    this.#view.focus();
  }
}

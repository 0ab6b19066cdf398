// The highlighting of AQL: a tokenizer for the editor. The engine decides about meaning and errors.
import {
  HighlightStyle,
  LanguageSupport,
  StreamLanguage,
  syntaxHighlighting,
  type StringStream,
} from "@codemirror/language";
import { tags, Tag } from "@lezer/highlight";
import { FUNCTIONS, KEYWORDS, LITERALS } from "./aql-words";

const keywords = new Set(KEYWORDS);
const literals = new Set(LITERALS);
const functions = new Set(FUNCTIONS);

const nodeCode = Tag.define(tags.atom);
const archetype = Tag.define(tags.labelName);
const parameter = Tag.define(tags.variableName);

interface State {
  /** The number of open square brackets. They enclose archetype ids, node codes and names. */
  brackets: number;
  /** Whether the last token was a dot or a slash, so that an attribute follows. */
  path: boolean;
}

function token(stream: StringStream, state: State): string | null {
  if (stream.eatSpace()) return null;
  const path = state.path;
  state.path = false;
  if (stream.match(/^--.*/)) return "lineComment";
  if (stream.match(/^'(?:[^'\\]|\\.)*'?/) || stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
  if (stream.match(/^\$[\w]+/)) return "parameter";
  if (state.brackets > 0) {
    if (stream.match(/^(?:id|at|ac)[0-9]+(?:\.[0-9]+)*\b/)) return "nodeCode";
    if (stream.match(/^[A-Za-z][\w-]*-[A-Za-z][\w-]*-[A-Za-z_]\w*\.[\w.-]+/)) return "archetype";
    if (stream.match(/^[A-Za-z][\w-]*::[\w./-]+/)) return "string";
  }
  if (stream.match(/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/)) return "number";
  if (stream.match(/^[A-Za-z_]\w*/)) {
    const word = stream.current();
    const lower = word.toLowerCase();
    if (path) return "propertyName";
    if (keywords.has(lower)) return "keyword";
    if (literals.has(lower)) return "atom";
    if (functions.has(lower) && stream.match(/^\s*\(/, false)) return "functionName";
    if (/^[A-Z][A-Z0-9_]+$/.test(word)) return "typeName";
    return "variableName";
  }
  if (stream.match(/^(?:<=|>=|!=|<>|=|<|>|\+|\*)/)) return "operator";
  const mark = stream.next();
  if (mark === "[") state.brackets += 1;
  else if (mark === "]") state.brackets = Math.max(0, state.brackets - 1);
  else if (mark === "/" || mark === ".") state.path = true;
  return mark && "[](){},".includes(mark) ? "punctuation" : "operator";
}

const language = StreamLanguage.define<State>({
  name: "aql",
  startState: () => ({ brackets: 0, path: false }),
  copyState: (state) => ({ ...state }),
  token,
  languageData: {
    commentTokens: { line: "--" },
    closeBrackets: { brackets: ["(", "[", "{", "'", '"'] },
  },
  tokenTable: { nodeCode, archetype, parameter, functionName: tags.function(tags.variableName) },
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-keyword)", fontWeight: "600" },
  { tag: tags.typeName, color: "var(--code-type)" },
  { tag: tags.string, color: "var(--code-string)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: tags.atom, color: "var(--code-number)" },
  { tag: nodeCode, color: "var(--code-node)" },
  { tag: archetype, color: "var(--code-archetype)" },
  { tag: parameter, color: "var(--code-parameter)", fontWeight: "600" },
  { tag: tags.propertyName, color: "var(--code-attribute)" },
  { tag: tags.function(tags.variableName), color: "var(--code-type)", fontStyle: "italic" },
  { tag: tags.lineComment, color: "var(--ink-faint)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.operator], color: "var(--ink-soft)" },
]);

/** Returns the AQL support of the editor. */
export function aql(): LanguageSupport {
  return new LanguageSupport(language, [syntaxHighlighting(colours)]);
}

// The texts of an editor. The npm package has them as well.

export const editor = {
  language: "en",
  help: "Help:",
  insert: ({ text }: { text: string }) => `Insert ${text}`,
  change: ({ text }: { text: string }) => `Change to ${text}`,
  /** The texts of CodeMirror by their English form. `$` is a number. */
  phrases: {
    Find: "Find",
    Replace: "Replace",
    next: "next",
    previous: "previous",
    all: "all",
    "match case": "match case",
    regexp: "regexp",
    "by word": "by word",
    replace: "replace",
    "replace all": "replace all",
    close: "close",
    "current match": "current match",
    "on line": "on line",
    "replaced $ matches": "replaced $ matches",
    "replaced match on line $": "replaced match on line $",
    "Go to line": "Go to line",
    go: "go",
    Completions: "Completions",
    Diagnostics: "Diagnostics",
    "No diagnostics": "No diagnostics",
    "Selection deleted": "Selection deleted",
    "Control character": "Control character",
  },
};

/** The texts of an editor in one language. */
export type EditorTexts = typeof editor;

// The texts of an editor in German.
import type { Texts } from "../../texts";

export const editor: Texts["editor"] = {
  language: "de",
  help: "Hilfe:",
  insert: ({ text }) => `${text} einfügen`,
  change: ({ text }) => `Ändern in ${text}`,
  phrases: {
    Find: "Suchen",
    Replace: "Ersetzen",
    next: "weiter",
    previous: "zurück",
    all: "alle",
    "match case": "Groß-/Kleinschreibung",
    regexp: "regulärer Ausdruck",
    "by word": "ganze Wörter",
    replace: "ersetzen",
    "replace all": "alle ersetzen",
    close: "schließen",
    "current match": "aktueller Treffer",
    "on line": "in Zeile",
    "replaced $ matches": "$ Treffer ersetzt",
    "replaced match on line $": "Treffer in Zeile $ ersetzt",
    "Go to line": "Gehe zu Zeile",
    go: "los",
    Completions: "Vorschläge",
    Diagnostics: "Probleme",
    "No diagnostics": "Keine Probleme",
    "Selection deleted": "Auswahl gelöscht",
    "Control character": "Steuerzeichen",
  },
};

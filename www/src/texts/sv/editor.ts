// The texts of an editor in Swedish.
import type { Texts } from "../../texts";

export const editor: Texts["editor"] = {
  language: "sv",
  help: "Hjälp:",
  insert: ({ text }) => `Infoga ${text}`,
  change: ({ text }) => `Ändra till ${text}`,
  phrases: {
    Find: "Sök",
    Replace: "Ersätt",
    next: "nästa",
    previous: "föregående",
    all: "alla",
    "match case": "skiftlägeskänslig",
    regexp: "reguljärt uttryck",
    "by word": "hela ord",
    replace: "ersätt",
    "replace all": "ersätt alla",
    close: "stäng",
    "current match": "aktuell träff",
    "on line": "på rad",
    "replaced $ matches": "ersatte $ träffar",
    "replaced match on line $": "ersatte träffen på rad $",
    "Go to line": "Gå till rad",
    go: "gå",
    Completions: "Förslag",
    Diagnostics: "Problem",
    "No diagnostics": "Inga problem",
    "Selection deleted": "Markeringen borttagen",
    "Control character": "Styrtecken",
  },
};
